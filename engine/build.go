package engine

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Values that are built, rather than parsed, become an Object by [NewObject],
// which checks them by the limits that [ParseObject] has. Numbers are text:
// no binary floating point comes near a verdict (decision D2).

// NullValue makes a Value of kind Null.
func NullValue() Value { return Value{kind: Null} }

// BoolValue makes a Value of kind Bool.
func BoolValue(b bool) Value { return Value{kind: Bool, text: strconv.FormatBool(b)} }

// NumberValue makes a Value of kind Number with this exact text, which has to
// be a number as RFC 8259 section 6 writes it.
func NumberValue(text string) Value { return Value{kind: Number, text: text} }

// StringValue makes a Value of kind String.
func StringValue(text string) Value { return Value{kind: String, text: text} }

// ArrayValue makes a Value of kind Array. It keeps the slice.
func ArrayValue(items []Value) Value { return Value{kind: Array, items: items} }

// MapValue makes a Value of kind Map. It keeps the slice and sorts it.
func MapValue(members []Member) Value {
	sortMembers(members)
	return Value{kind: Map, members: members}
}

// sortMembers puts them in RFC 8785 order.
func sortMembers(members []Member) {
	slices.SortFunc(members, func(a, b Member) int { return compareUTF16(a.Name, b.Name) })
}

// NewObject makes an Object of a built value within the limits of decision
// D35, as [ParseObject] does of JSON: the bytes that count are those of its
// Text. It takes the value over and lowercases the names of its top level
// (decision D6). A value of kind Null gives the zero Object. Errors wrap
// ErrObject and name the JSON pointer.
func NewObject(v Value) (Object, error) {
	switch v.kind {
	case Null:
		return Object{}, nil
	case Map:
	default:
		return Object{}, objectError("", "is not an object; send {...}")
	}
	foldNames(v.members)
	var b bounds
	if wrong := b.check(&v, 0); wrong != nil {
		return Object{}, wrong.error()
	}
	if n := v.textBytes(); n > MaxObjectBytes {
		return Object{}, tooLong(n)
	}
	return Object{value: v}, nil
}

func foldNames(members []Member) {
	changed := false
	for i := range members {
		if folded := Fold(members[i].Name); folded != members[i].Name {
			members[i].Name, changed = folded, true
		}
	}
	if changed {
		sortMembers(members)
	}
}

// bounds counts what decision D35 limits. It allocates nothing unless
// something is wrong.
type bounds struct{ keys int }

// misfit is what is wrong with a value, and where: the steps of its JSON
// pointer, the last one first.
type misfit struct {
	path []string
	what string
}

func wrongf(format string, args ...any) *misfit { return &misfit{what: fmt.Sprintf(format, args...)} }

func (m *misfit) below(step string) *misfit {
	m.path = append(m.path, step)
	return m
}

func (m *misfit) error() error {
	slices.Reverse(m.path)
	return objectError((&objectParser{path: m.path}).pointer(), "%s", m.what)
}

func (b *bounds) check(v *Value, depth int) *misfit {
	switch v.kind {
	case Map, Array:
		if depth >= MaxObjectDepth {
			return wrongf("is nested deeper than %d levels", MaxObjectDepth)
		}
		if v.kind == Map {
			return b.checkMembers(v.members, depth+1)
		}
		return b.checkItems(v.items, depth+1)
	case String:
		return checkText(v.text)
	case Number:
		if !isNumber(v.text) {
			return wrongf("is no number: %.40q", v.text)
		}
	}
	return nil
}

func (b *bounds) checkItems(items []Value, depth int) *misfit {
	for i := range items {
		if wrong := b.check(&items[i], depth); wrong != nil {
			return wrong.below(strconv.Itoa(i))
		}
	}
	return nil
}

func (b *bounds) checkMembers(members []Member, depth int) *misfit {
	for i := range members {
		name := members[i].Name
		if checkText(name) != nil {
			return wrongf("has a name that is not valid UTF-8 or holds U+0000; remove it")
		}
		if b.keys++; b.keys > MaxObjectKeys {
			return wrongf("brings the document over %d keys", MaxObjectKeys)
		}
		if i > 0 && members[i-1].Name == name {
			return wrongf("stands twice in one object; keep one").below(name)
		}
		if wrong := b.check(&members[i].Value, depth); wrong != nil {
			return wrong.below(name)
		}
	}
	return nil
}

func checkText(text string) *misfit {
	switch {
	case strings.IndexByte(text, 0) >= 0:
		return wrongf("holds U+0000; remove it")
	case !utf8.ValidString(text):
		return wrongf("is not valid UTF-8")
	}
	return nil
}

// textBytes is the length of Text.
func (v Value) textBytes() int {
	switch v.kind {
	case Bool, Number:
		return len(v.text)
	case String:
		return textBytes(v.text)
	case Array:
		n := separators(len(v.items))
		for i := range v.items {
			n += v.items[i].textBytes()
		}
		return n
	case Map:
		n := separators(2 * len(v.members))
		for i := range v.members {
			n += textBytes(v.members[i].Name) + v.members[i].Value.textBytes()
		}
		return n
	}
	return len("null")
}

// separators is the length of the brackets around n parts and of what stands between them.
func separators(n int) int { return len("[]") + max(0, n-1) }

// textBytes is how long appendString writes the text.
func textBytes(text string) int {
	n := len(text) + len(`""`)
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 0x20 && c != '"' && c != '\\':
		case shortEscape(c) != 0:
			n++
		default:
			n += len(`\u0000`) - 1
		}
	}
	return n
}

// isNumber matches the grammar of RFC 8259 section 6.
func isNumber(text string) bool {
	text = strings.TrimPrefix(text, "-")
	i, ok := digits(text, 0)
	if !ok || i > 1 && text[0] == '0' {
		return false
	}
	if i < len(text) && text[i] == '.' {
		if i, ok = digits(text, i+1); !ok {
			return false
		}
	}
	if i == len(text) {
		return true
	}
	if text[i] != 'e' && text[i] != 'E' {
		return false
	}
	if i++; i < len(text) && (text[i] == '+' || text[i] == '-') {
		i++
	}
	i, ok = digits(text, i)
	return ok && i == len(text)
}
