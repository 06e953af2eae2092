package engine

import "github.com/countersign-otel/countersign/engine/plainjson"

// mostValues is of how many values an object is held as such. A value takes 72
// bytes, of dense JSON like [0,0,0] for two of text: a push of 16 MB, in which no
// fact breaks a limit, took a gigabyte. An object of more values is its text,
// and what somebody asks for is read again.
const mostValues = 64

// packed is an object as what it prints: Text and Canonical, which are one and
// the same string where every number is written in its canonical form.
type packed struct{ text, canonical string }

// packDense packs an object of many values.
func packDense(value Value) Object {
	if value.count() <= mostValues {
		return Object{value: value}
	}
	return pack(value)
}

func pack(value Value) Object {
	p := &packed{text: value.Text()}
	p.canonical = p.text
	withBuffer(func(b []byte) []byte {
		if b = value.append(b, true); string(b) != p.text {
			p.canonical = string(b)
		}
		return b
	})
	return Object{Value{kind: Map}, p}
}

// count is how many values a value is made of, apart from itself.
func (v *Value) count() int {
	n := len(v.items) + len(v.members)
	for i := range v.items {
		n += v.items[i].count()
	}
	for i := range v.members {
		n += v.members[i].Value.count()
	}
	return n
}

// members reads them all.
func (p *packed) members() []Member {
	value, _ := plainObject(p.text) // what was printed is plain
	return value.members
}

// lookup reads the member named key, and goes over those before it.
func (p *packed) lookup(key string) (value Value) {
	r := plainReaders.Get().(*plainReader)
	defer r.release()
	r.Scanner = plainjson.Scanner{Text: p.text, At: 1}
	for r.Peek() == '"' {
		name, _ := r.String()
		r.At++ // the colon
		if name == key {
			value, _ = r.value(1)
			return value
		}
		r.At = endOf(p.text, r.At) + 1
	}
	return Value{}
}

// endOf is where the value at i of compact JSON ends.
func endOf(text string, i int) int {
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case '"':
			i = closing(text, i)
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
		if depth < 0 {
			return i
		}
	}
	return i
}

// closing is where the quote stands that ends a string at i.
func closing(text string, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i
}
