package engine

import (
	"slices"
	"strings"
	"sync"

	"github.com/countersign-otel/countersign/engine/plainjson"
)

// plainReader reads objects that break no limit and hold nothing rare, in one
// pass. Of all others it says no more than that: judgeObject says what is wrong.
type plainReader struct {
	plainjson.Scanner
	keys int
	// open are the members that were read of objects which are not yet at their
	// end, listed the items of arrays: a long one then takes no more than it needs.
	open   []Member
	listed []Value
}

var plainReaders = sync.Pool{New: func() any { return new(plainReader) }}

func plainObject(text string) (Value, bool) {
	p := plainReaders.Get().(*plainReader)
	defer p.release()
	p.Scanner = plainjson.Scanner{Text: text}
	if p.Peek() != '{' {
		return Value{}, false
	}
	value, ok := p.value(0)
	return value, ok && p.Done()
}

// release keeps the room for members and items, and nothing of what stood there.
// Both are bounded by MaxObjectBytes. An array of tens of thousands of items whose
// room grew anew each time took five times the memory of its values, and most of
// the time that it took to read.
func (p *plainReader) release() {
	room, listed := p.open[:cap(p.open)], p.listed
	clear(room)
	clear(listed)
	*p = plainReader{open: room[:0], listed: listed[:0]}
	plainReaders.Put(p)
}

func (p *plainReader) value(depth int) (Value, bool) {
	switch c := p.Peek(); {
	case c == '"':
		text, ok := p.text()
		return Value{kind: String, text: text}, ok
	case c == '-', '0' <= c && c <= '9':
		text, ok := p.Number()
		return Value{kind: Number, text: text}, ok
	case c == 't':
		return Value{kind: Bool, text: "true"}, p.Word("true")
	case c == 'f':
		return Value{kind: Bool, text: "false"}, p.Word("false")
	case c == 'n':
		return Value{kind: Null}, p.Word("null")
	case depth >= MaxObjectDepth:
		return Value{}, false
	case c == '{':
		return p.members(depth + 1)
	case c == '[':
		return p.items(depth + 1)
	}
	return Value{}, false
}

func (p *plainReader) text() (string, bool) {
	text, ok := p.String()
	return text, ok && strings.IndexByte(text, 0) < 0
}

func (p *plainReader) items(depth int) (Value, bool) {
	p.At++
	list := Value{kind: Array}
	if p.Take(']') {
		return list, true
	}
	first := len(p.listed)
	for {
		item, ok := p.value(depth)
		if !ok {
			return Value{}, false
		}
		p.listed = append(p.listed, item)
		if p.Take(']') {
			break
		}
		if !p.Take(',') {
			return Value{}, false
		}
	}
	list.items = slices.Clone(p.listed[first:])
	clear(p.listed[first:])
	p.listed = p.listed[:first]
	return list, true
}

func (p *plainReader) members(depth int) (Value, bool) {
	p.At++
	object := Value{kind: Map}
	if p.Take('}') {
		return object, true
	}
	first := len(p.open)
	for {
		m, ok := p.member(depth)
		if !ok {
			return Value{}, false
		}
		p.open = append(p.open, m)
		if p.Take('}') {
			break
		}
		if !p.Take(',') {
			return Value{}, false
		}
	}
	object.members = slices.Clone(p.open[first:])
	p.open = p.open[:first]
	sortMembers(object.members)
	return object, !twice(object.members)
}

func (p *plainReader) member(depth int) (m Member, ok bool) {
	if p.keys++; p.keys > MaxObjectKeys || p.Peek() != '"' {
		return Member{}, false
	}
	if m.Name, ok = p.text(); !ok || !p.Take(':') {
		return Member{}, false
	}
	if depth == 1 {
		m.Name = Fold(m.Name)
	}
	m.Value, ok = p.value(depth)
	return m, ok
}

// twice says whether a name stands twice among members in order.
func twice(members []Member) bool {
	for i := 1; i < len(members); i++ {
		if members[i].Name == members[i-1].Name {
			return true
		}
	}
	return false
}
