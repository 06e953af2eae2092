package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of JSON from outside (decision D35).
const (
	MaxObjectBytes = 64 << 10
	MaxObjectDepth = 16
	MaxObjectKeys  = 256
)

// ErrObject is wrapped by every error about params or attributes that break a limit.
var ErrObject = errors.New("invalid JSON object")

// Object is a JSON object from outside: a fact's attributes, an action's
// params. The zero Object means "not captured", which is not empty (decision D33).
type Object struct {
	value Value
	// packed stands in for the members of value where there are very many.
	packed *packed
}

// EmptyObject is the object without members, {}.
func EmptyObject() Object { return Object{value: Value{kind: Map}} }

// ParseObject reads a JSON object within the limits of decision D35: at most
// 64 KiB, depth 16 and 256 keys in all, valid UTF-8 without U+0000, no
// duplicate keys. Names of the top level are identifiers to the contract
// language, so they are lowercased by ASCII rules (decision D6). JSON null
// gives the zero Object. Errors wrap ErrObject and name the JSON pointer.
func ParseObject(data []byte) (Object, error) {
	if len(data) > MaxObjectBytes { // before it is copied
		return Object{}, tooLong(len(data))
	}
	return ReadObject(string(data))
}

// ReadObject is ParseObject of a text, which the Object then keeps parts of.
func ReadObject(text string) (Object, error) {
	if len(text) > MaxObjectBytes {
		return Object{}, tooLong(len(text))
	}
	if !utf8.ValidString(text) {
		return Object{}, objectError("", "is not valid UTF-8")
	}
	value, ok := plainObject(text)
	if !ok {
		judged, err := judgeObject(text)
		if err != nil {
			return Object{}, err
		}
		value = judged.value
	}
	return packDense(value), nil
}

func tooLong(n int) error {
	return objectError("", "has %d bytes; at most %d are allowed", n, MaxObjectBytes)
}

// judgeObject is ReadObject of what is rare or wrong.
func judgeObject(text string) (Object, error) {
	p := objectParser{decoder: json.NewDecoder(strings.NewReader(text))}
	p.decoder.UseNumber()
	value, err := p.value(0)
	if err != nil {
		return Object{}, err
	}
	if _, err := p.decoder.Token(); !errors.Is(err, io.EOF) {
		return Object{}, objectError("", "is followed by more text; send one object")
	}
	switch value.kind {
	case Map:
		return Object{value: value}, nil
	case Null:
		return Object{}, nil
	}
	return Object{}, objectError("", "is not an object; send {...}")
}

// Captured says whether there is an object at all (decision D33).
func (o Object) Captured() bool { return o.value.kind == Map }

// Len is the number of members.
func (o Object) Len() int { return len(o.Members()) }

// Lookup returns the member named key, or an absent Value.
func (o Object) Lookup(key string) Value {
	if o.packed != nil {
		return o.packed.lookup(key)
	}
	for i := range o.value.members {
		if o.value.members[i].Name == key {
			return o.value.members[i].Value
		}
	}
	return Value{}
}

// Members are those of the top level in RFC 8785 order. They must not be changed.
func (o Object) Members() []Member {
	if o.packed != nil {
		return o.packed.members()
	}
	return o.value.members
}

// Keys lists the names of the top level in RFC 8785 order.
func (o Object) Keys() []string {
	members := o.Members()
	keys := make([]string, len(members))
	for i, m := range members {
		keys[i] = m.Name
	}
	return keys
}

// Text is compact JSON with numbers as they were sent; null when not captured.
func (o Object) Text() string {
	if o.packed != nil {
		return o.packed.text
	}
	return o.value.Text()
}

// AppendText appends Text.
func (o Object) AppendText(b []byte) []byte {
	if o.packed != nil {
		return append(b, o.packed.text...)
	}
	return o.value.append(b, false)
}

// Canonical is the canonical JSON text of decisions D24 and D36; null when not captured.
func (o Object) Canonical() string {
	if o.packed != nil {
		return o.packed.canonical
	}
	return o.value.Canonical()
}

func (o Object) appendCanonical(b []byte) []byte {
	if o.packed != nil {
		return append(b, o.packed.canonical...)
	}
	return o.value.append(b, true)
}

// MarshalJSON prints Text.
func (o Object) MarshalJSON() ([]byte, error) { return []byte(o.Text()), nil }

// UnmarshalJSON reads what ParseObject reads.
func (o *Object) UnmarshalJSON(data []byte) error {
	parsed, err := ParseObject(data)
	if err != nil {
		return err
	}
	*o = parsed
	return nil
}

type objectParser struct {
	decoder *json.Decoder
	path    []string // JSON pointer, not yet escaped
	keys    int
}

func (p *objectParser) pointer() string {
	var b strings.Builder
	for _, step := range p.path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(step)))
	}
	return b.String()
}

func (p *objectParser) fail(format string, args ...any) error {
	return objectError(p.pointer(), format, args...)
}

func objectError(pointer, format string, args ...any) error {
	if pointer == "" {
		pointer = "the document"
	}
	return fmt.Errorf("%w: %s %s", ErrObject, pointer, fmt.Sprintf(format, args...))
}

func (p *objectParser) value(depth int) (Value, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return Value{}, p.syntax(err)
	}
	switch t := token.(type) {
	case json.Delim:
		if depth >= MaxObjectDepth {
			return Value{}, p.fail("is nested deeper than %d levels", MaxObjectDepth)
		}
		if t == '{' {
			return p.members(depth + 1)
		}
		return p.items(depth + 1)
	case json.Number:
		return Value{kind: Number, text: t.String()}, nil
	case string:
		return p.text(t)
	case bool:
		return Value{kind: Bool, text: strconv.FormatBool(t)}, nil
	}
	return Value{kind: Null}, nil
}

func (p *objectParser) text(text string) (Value, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return Value{}, p.fail("holds U+0000; remove it")
	}
	return Value{kind: String, text: text}, nil
}

func (p *objectParser) items(depth int) (Value, error) {
	list := Value{kind: Array}
	for p.decoder.More() {
		p.path = append(p.path, strconv.Itoa(len(list.items)))
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.path = p.path[:len(p.path)-1]
		list.items = append(list.items, item)
	}
	return list, p.end()
}

func (p *objectParser) members(depth int) (Value, error) {
	object := Value{kind: Map}
	seen := map[string]bool{}
	for p.decoder.More() {
		key, err := p.key(depth)
		if err != nil {
			return Value{}, err
		}
		p.path = append(p.path, key)
		if seen[key] {
			return Value{}, p.fail("stands twice in one object; keep one")
		}
		seen[key] = true
		value, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		p.path = p.path[:len(p.path)-1]
		object.members = append(object.members, Member{key, value})
	}
	sortMembers(object.members)
	return object, p.end()
}

func (p *objectParser) key(depth int) (string, error) {
	token, err := p.decoder.Token()
	if err != nil {
		return "", p.syntax(err)
	}
	key, ok := token.(string)
	if !ok {
		return "", p.fail("has a name that is no string")
	}
	if strings.IndexByte(key, 0) >= 0 {
		return "", p.fail("has a name that holds U+0000; remove it")
	}
	if p.keys++; p.keys > MaxObjectKeys {
		return "", p.fail("brings the document over %d keys", MaxObjectKeys)
	}
	if depth == 1 {
		key = Fold(key)
	}
	return key, nil
}

// end consumes the closing delimiter.
func (p *objectParser) end() error {
	if _, err := p.decoder.Token(); err != nil {
		return p.syntax(err)
	}
	return nil
}

func (p *objectParser) syntax(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return p.fail("ends too early")
	}
	return p.fail("is not JSON at byte %d: %v", p.decoder.InputOffset(), err)
}

// compareUTF16 orders strings by their UTF-16 code units (RFC 8785 section
// 3.2.3). It differs from byte order only where one side has a character
// beyond U+FFFF and the other one from U+E000 to U+FFFF.
func compareUTF16(a, b string) int {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		return int(utf16Rank(a[i])) - int(utf16Rank(b[i]))
	}
	return len(a) - len(b)
}

// utf16Rank maps the first differing UTF-8 byte to its rank in UTF-16 order:
// lead bytes of four-byte sequences (surrogates) sort below 0xEE and 0xEF.
func utf16Rank(c byte) byte {
	switch {
	case c == 0xEE || c == 0xEF:
		return c + 0x10
	case c >= 0xF0:
		return c - 2
	}
	return c
}
