package engine

import "strings"

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
func (v Value) Text() string {
	var b strings.Builder
	b.Grow(v.textBytes())
	v.write(&b, false)
	return b.String()
}

// Canonical is Text with every number that reads as one in the canonical form
// of decision D2, so that equal values print the same bytes (decision D24).
func (v Value) Canonical() string {
	var b strings.Builder
	v.write(&b, true)
	return b.String()
}

func (v Value) write(b *strings.Builder, canonical bool) {
	switch v.kind {
	case Bool:
		b.WriteString(v.text)
	case Number:
		b.WriteString(numberText(v.text, canonical))
	case String:
		writeString(b, v.text)
	case Array:
		writeArray(b, v.items, canonical)
	case Map:
		writeMap(b, v.members, canonical)
	default:
		b.WriteString("null")
	}
}

func numberText(text string, canonical bool) string {
	if !canonical {
		return text
	}
	if d, ok := ReadDecimal(text); ok {
		return d.String()
	}
	return text
}

func writeArray(b *strings.Builder, items []Value, canonical bool) {
	b.WriteByte('[')
	for i, item := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		item.write(b, canonical)
	}
	b.WriteByte(']')
}

func writeMap(b *strings.Builder, members []Member, canonical bool) {
	b.WriteByte('{')
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, m.Name)
		b.WriteByte(':')
		m.Value.write(b, canonical)
	}
	b.WriteByte('}')
}

// writeString escapes as RFC 8785 section 3.2.2.2 does.
func writeString(b *strings.Builder, text string) {
	const hex = "0123456789abcdef"
	b.WriteByte('"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b.WriteString(text[start:i])
		start = i + 1
		if short := shortEscape(c); short != 0 {
			b.WriteByte('\\')
			b.WriteByte(short)
			continue
		}
		b.WriteString(`\u00`)
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&0xf])
	}
	b.WriteString(text[start:])
	b.WriteByte('"')
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
