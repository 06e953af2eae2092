package engine

import "sync"

// Kind is the JSON kind of a Value.
type Kind uint8

// The JSON kinds. The zero Kind is an absent value.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Map
)

// Value is one JSON value of a fact's attributes or an action's params. The
// zero Value is absent.
type Value struct {
	kind    Kind
	text    string // a string's content, a number's exact text, "true" or "false"
	items   []Value
	members []Member // sorted by name
}

// Member is a name and a value of a JSON object.
type Member struct {
	Name  string
	Value Value
}

// Kind returns the JSON kind.
func (v Value) Kind() Kind { return v.kind }

// Scalar returns the text that equality compares (decision D4): a string's
// content, a number's exact text, true or false. An object, array, null or
// absent value has none.
func (v Value) Scalar() (text string, ok bool) {
	switch v.kind {
	case String, Number, Bool:
		return v.text, true
	}
	return "", false
}

// Decimal reads the value as a number (decision D2): a JSON number, or a
// string that spells one. Booleans and everything else do not read as numbers.
func (v Value) Decimal() (Decimal, bool) {
	if v.kind != Number && v.kind != String {
		return Decimal{}, false
	}
	return ReadDecimal(v.text)
}

// Equal compares two values by decision D4: as numbers when both read as
// numbers, else as text folding ASCII letters only. What has no scalar text
// equals nothing.
func (v Value) Equal(other Value) bool {
	a, ok := v.Scalar()
	if !ok {
		return false
	}
	b, ok := other.Scalar()
	if !ok {
		return false
	}
	if x, ok := v.Decimal(); ok {
		if y, ok := other.Decimal(); ok {
			return x.Cmp(y) == 0
		}
	}
	return Fold(a) == Fold(b)
}

// Text is compact JSON with keys in RFC 8785 order and numbers as they were
// sent. An absent value prints as null.
func (v Value) Text() string { return v.json(false) }

// Canonical is Text with every number that reads as one in the canonical form
// of decision D2, so that equal values print the same bytes (decision D24).
func (v Value) Canonical() string { return v.json(true) }

func (v Value) json(canonical bool) (text string) {
	withBuffer(func(b []byte) []byte {
		b = v.append(b, canonical)
		text = string(b)
		return b
	})
	return text
}

// buffers are where JSON is written before its length is known.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// withBuffer lends an empty buffer. What write returns is used again.
func withBuffer(write func([]byte) []byte) {
	b := buffers.Get().(*[]byte)
	*b = write((*b)[:0])
	buffers.Put(b)
}

func (v Value) append(b []byte, canonical bool) []byte {
	switch v.kind {
	case Bool:
		return append(b, v.text...)
	case Number:
		return append(b, numberText(v.text, canonical)...)
	case String:
		return AppendString(b, v.text)
	case Array:
		return appendArray(b, v.items, canonical)
	case Map:
		return appendMap(b, v.members, canonical)
	}
	return append(b, "null"...)
}

func numberText(text string, canonical bool) string {
	if !canonical || isCanonical(text) {
		return text
	}
	if d, ok := ReadDecimal(text); ok {
		return d.String()
	}
	return text
}

// isCanonical knows most of the numbers that are written in their canonical
// form, like 120 and 180.5, without reading them.
func isCanonical(number string) bool {
	const most = 18 // digits; the limits of decision D2 are far away
	if len(number) > most || number == "" || number[0] == '0' && len(number) > 1 && number[1] != '.' {
		return false
	}
	whole, ok := digits(number, 0)
	if whole == len(number) || !ok || number[whole] != '.' {
		return ok && whole == len(number)
	}
	end, ok := digits(number, whole+1)
	return ok && end == len(number) && number[end-1] != '0'
}

func appendArray(b []byte, items []Value, canonical bool) []byte {
	b = append(b, '[')
	for i := range items {
		if i > 0 {
			b = append(b, ',')
		}
		b = items[i].append(b, canonical)
	}
	return append(b, ']')
}

func appendMap(b []byte, members []Member, canonical bool) []byte {
	b = append(b, '{')
	for i := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendString(b, members[i].Name), ':')
		b = members[i].Value.append(b, canonical)
	}
	return append(b, '}')
}

// AppendString appends a text as a JSON string, escaped as RFC 8785 section
// 3.2.2.2 says. The text must be valid UTF-8.
func AppendString(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, text[start:i]...)
		start = i + 1
		if short := shortEscape(c); short != 0 {
			b = append(b, '\\', short)
			continue
		}
		b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
	}
	b = append(b, text[start:]...)
	return append(b, '"')
}

func shortEscape(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

// Canonicalized is the text of a scalar in the form in which equal values
// agree (decision D4): a canonical decimal where it reads as a number, else
// the text with ASCII letters folded. It is empty for what equals nothing.
func (v Value) Canonicalized() string {
	if d, ok := v.Decimal(); ok {
		return d.String()
	}
	text, _ := v.Scalar()
	return Fold(text)
}
