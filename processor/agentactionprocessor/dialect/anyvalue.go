package dialect

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// structureText writes an OTLP structure as JSON text, in the order it came.
// It keeps at most MaxValueBytes of the text and hashes all of it, so that the
// memory used does not grow with the input.
type structureText struct {
	text    []byte
	beyond  int       // bytes past the limit
	sum     *textHash // nil within the limit
	tooDeep bool
	quote   []byte // of one text after the other
}

func textOfStructure(v pcommon.Value) *structureText {
	t := &structureText{}
	t.value(v, 0)
	return t
}

// over reports whether the structure broke a limit.
func (t *structureText) over() bool { return t.tooDeep || t.sum != nil }

// size is the length of the whole text.
func (t *structureText) size() int { return len(t.text) + t.beyond }

// digest is the lower-case hex SHA-256 of the whole text.
func (t *structureText) digest() string {
	t.hash()
	return t.sum.hex()
}

// hash starts hashing with what was kept.
func (t *structureText) hash() {
	if t.sum == nil {
		t.sum = newTextHash()
		t.sum.Write(t.text)
	}
}

// raw adds to the text, or past the limit to the hash only.
func (t *structureText) raw(s string) {
	if t.fits(len(s)) {
		t.text = append(t.text, s...)
		return
	}
	t.hash()
	t.sum.add(s)
	t.beyond += len(s)
}

// write is raw for bytes.
func (t *structureText) write(s []byte) {
	if t.fits(len(s)) {
		t.text = append(t.text, s...)
		return
	}
	t.hash()
	t.sum.Write(s)
	t.beyond += len(s)
}

func (t *structureText) fits(n int) bool { return t.sum == nil && len(t.text)+n <= MaxValueBytes }

// textHash hashes texts of any length without a copy of them.
type textHash struct {
	hash.Hash
	part [4096]byte
}

func newTextHash() *textHash { return &textHash{Hash: sha256.New()} }

func (h *textHash) add(text string) {
	for len(text) > 0 {
		n := copy(h.part[:], text)
		h.Write(h.part[:n])
		text = text[n:]
	}
}

// hex is the sum in lower case.
func (h *textHash) hex() string { return hex.EncodeToString(h.Sum(nil)) }

// hashOf is the lower-case hex SHA-256 of a text.
func hashOf(text string) string {
	h := newTextHash()
	h.add(text)
	return h.hex()
}

func (t *structureText) quoted(s string) {
	if len(s) <= MaxValueBytes {
		t.quote = quote(t.quote[:0], s)
		t.write(t.quote)
		return
	}
	t.raw(`"`)
	t.raw(s) // past the limit the text is only hashed: no need to escape it
	t.raw(`"`)
}

func (t *structureText) value(v pcommon.Value, depth int) {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		if t.deeper(depth) {
			return
		}
		open := "{"
		for key, item := range v.Map().All() {
			t.raw(open)
			t.quoted(key)
			t.raw(":")
			t.value(item, depth+1)
			open = ","
		}
		if open == "{" {
			t.raw("{")
		}
		t.raw("}")
	case pcommon.ValueTypeSlice:
		if t.deeper(depth) {
			return
		}
		t.raw("[")
		for i, item := range v.Slice().All() {
			if i > 0 {
				t.raw(",")
			}
			t.value(item, depth+1)
		}
		t.raw("]")
	default:
		t.scalar(v)
	}
}

func (t *structureText) deeper(depth int) bool {
	if depth < MaxDepth {
		return false
	}
	t.tooDeep = true
	t.raw("null")
	return true
}

func (t *structureText) scalar(v pcommon.Value) {
	if v.Type() == pcommon.ValueTypeStr {
		t.quoted(v.Str())
		return
	}
	switch s := scalarOf(v).(type) {
	case nil:
		t.raw("null")
	case bool:
		t.raw(strconv.FormatBool(s))
	case json.Number:
		t.raw(s.String())
	case string:
		t.quoted(s)
	}
}

// scalarOf turns a value that holds no other values into its JSON counterpart.
func scalarOf(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return json.Number(strconv.FormatInt(v.Int(), 10))
	case pcommon.ValueTypeDouble:
		return numberOf(v.Double())
	case pcommon.ValueTypeBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())
	default:
		return nil
	}
}

// numberOf is the shortest decimal text that reads back as f (D2); what is no
// number becomes a string.
func numberOf(f float64) any {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return json.Number(strconv.FormatFloat(f, format, -1, 64))
}

var (
	errKeyTwice = errors.New("key stands twice")
	errText     = errors.New("string is not valid UTF-8 or holds U+0000")
)

// structureOf turns an OTLP value into maps, slices and scalars. The caller
// has checked its depth and size.
func structureOf(v pcommon.Value) (any, error) {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		object := make(map[string]any, v.Map().Len())
		for key, item := range v.Map().All() {
			if _, twice := object[key]; twice {
				return nil, errKeyTwice
			}
			value, err := structureOf(item)
			if err != nil {
				return nil, err
			}
			if !storable(key) {
				return nil, errText
			}
			object[key] = value
		}
		return object, nil
	case pcommon.ValueTypeSlice:
		items := make([]any, 0, v.Slice().Len())
		for _, item := range v.Slice().All() {
			value, err := structureOf(item)
			if err != nil {
				return nil, err
			}
			items = append(items, value)
		}
		return items, nil
	case pcommon.ValueTypeStr:
		if !storable(v.Str()) {
			return nil, errText
		}
	}
	return scalarOf(v), nil
}

func storable(s string) bool {
	return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// textOf writes a parsed value as JSON text with sorted keys.
func textOf(v any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return "" // cannot happen: only maps, slices, strings, booleans and valid numbers
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const hexDigits = "0123456789abcdef"

// quote appends s as a JSON string; broken UTF-8 becomes U+FFFD.
func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return append(b, '"')
}
