package evidenceprocessor

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine/plainjson"
)

// parseJSON keeps numbers as they were sent. Texts of the value are parts of the given one where they can be.
func parseJSON(text string) (any, error) {
	if value, ok := plainValue(text); ok {
		return value, nil
	}
	return judgeJSON(text)
}

// judgeJSON is parseJSON of what is rare or wrong.
func judgeJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("it is no JSON at byte %d: %w", decoder.InputOffset(), err)
	}
	if rest := text[decoder.InputOffset():]; strings.TrimLeft(rest, " \t\r\n") != "" {
		return nil, fmt.Errorf("there is more behind the JSON at byte %d", decoder.InputOffset())
	}
	return value, nil
}

// maxPlainDepth is how deep anybody nests who means it.
const maxPlainDepth = 64

// plainReader reads in one pass what holds nothing rare, as encoding/json does.
type plainReader struct{ plainjson.Scanner }

func plainValue(text string) (any, bool) {
	if !utf8.ValidString(text) {
		return nil, false
	}
	p := plainReader{plainjson.Scanner{Text: text}}
	value, ok := p.value(0)
	return value, ok && p.Done()
}

func (p *plainReader) value(depth int) (any, bool) {
	switch c := p.Peek(); {
	case c == '"':
		text, ok := p.String()
		return text, ok
	case c == '-', '0' <= c && c <= '9':
		text, ok := p.Number()
		return json.Number(text), ok
	case c == 't':
		return true, p.Word("true")
	case c == 'f':
		return false, p.Word("false")
	case c == 'n':
		return nil, p.Word("null")
	case depth == maxPlainDepth:
		return nil, false
	case c == '{':
		return p.object(depth + 1)
	case c == '[':
		return p.list(depth + 1)
	}
	return nil, false
}

func (p *plainReader) list(depth int) (any, bool) {
	p.At++
	items := []any{}
	if p.Take(']') {
		return items, true
	}
	for {
		item, ok := p.value(depth)
		if !ok {
			return nil, false
		}
		items = append(items, item)
		if p.Take(']') {
			return items, true
		}
		if !p.Take(',') {
			return nil, false
		}
	}
}

// object: of several members of one name the last one counts.
func (p *plainReader) object(depth int) (any, bool) {
	p.At++
	object := map[string]any{}
	if p.Take('}') {
		return object, true
	}
	for {
		if p.Peek() != '"' {
			return nil, false
		}
		name, ok := p.String()
		if !ok || !p.Take(':') {
			return nil, false
		}
		if object[name], ok = p.value(depth); !ok {
			return nil, false
		}
		if p.Take('}') {
			return object, true
		}
		if !p.Take(',') {
			return nil, false
		}
	}
}

// bodyMember is one of an object's members. A text stands apart, because as an
// interface it would take memory of its own.
type bodyMember struct {
	name, text string
	isText     bool
	value      any
}

func (m *bodyMember) any() any {
	if m.isText {
		return m.text
	}
	return m.value
}

// objectOf makes a map of members: the last of one name counts.
func objectOf(members []bodyMember) map[string]any {
	object := make(map[string]any, len(members))
	for i := range members {
		object[members[i].name] = members[i].any()
	}
	return object
}

// maxFlat is how many members are few enough to be looked through for each selector.
const maxFlat = 64

// flatObject is plainValue of an object with few members, without a map of
// them: most rules ask for no more than some of them.
func flatObject(text string, members []bodyMember) ([]bodyMember, bool) {
	if !utf8.ValidString(text) {
		return members, false
	}
	p := plainReader{plainjson.Scanner{Text: text}}
	if !p.Take('{') {
		return members, false
	}
	if p.Take('}') {
		return members, p.Done()
	}
	for len(members) < maxFlat {
		m, ok := p.member()
		if !ok {
			return members, false
		}
		members = append(members, m)
		if p.Take('}') {
			return members, p.Done()
		}
		if !p.Take(',') {
			return members, false
		}
	}
	return members, false
}

func (p *plainReader) member() (m bodyMember, ok bool) {
	if p.Peek() != '"' {
		return m, false
	}
	if m.name, ok = p.String(); !ok || !p.Take(':') {
		return m, false
	}
	if m.isText = p.Peek() == '"'; m.isText {
		m.text, ok = p.String()
		return m, ok
	}
	m.value, ok = p.value(1)
	return m, ok
}
