package api

import (
	"bytes"
	"encoding/json"
)

// scanner goes over JSON text that is known to be valid, and makes nothing of
// it: what it returns are parts of the text. A body of dense JSON, millions of
// values of a byte, then takes no more than its length while it is taken apart,
// and what is not looked at is not built.
type scanner struct {
	text []byte
	at   int
}

// inside begins behind the bracket that opens a list or an object.
func inside(raw json.RawMessage) scanner {
	s := scanner{text: raw}
	s.space()
	s.at++
	return s
}

// more says whether another item or member follows, and goes there.
func (s *scanner) more() bool {
	s.space()
	if s.at < len(s.text) && s.text[s.at] == ',' {
		s.at++
		s.space()
	}
	return s.at < len(s.text) && s.text[s.at] != ']' && s.text[s.at] != '}'
}

// name returns that of the member that is next, and goes to its value.
func (s *scanner) name() json.RawMessage {
	name := s.value()
	s.space()
	s.at++ // the colon
	return name
}

// value returns the value that is next.
func (s *scanner) value() json.RawMessage {
	s.space()
	start := s.at
	if start == len(s.text) {
		return nil
	}
	switch s.text[start] {
	case '"':
		s.string()
	case '[', '{':
		s.nested()
	default:
		s.word()
	}
	return s.text[start:s.at:s.at]
}

func (s *scanner) space() {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// word goes behind a number, true, false or null.
func (s *scanner) word() {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c == ',' || c == ']' || c == '}' || isSpace(c) {
			return
		}
	}
}

// string goes behind a text.
func (s *scanner) string() {
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case '\\':
			s.at++
		case '"':
			s.at++
			return
		}
	}
	s.at = len(s.text)
}

// nested goes behind a list or an object.
func (s *scanner) nested() {
	depth := 0
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case '"':
			s.string()
			continue
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		}
		s.at++
		if depth == 0 {
			return
		}
	}
}

// textOf decodes a JSON text that is valid UTF-8.
func textOf(raw json.RawMessage) (text string) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	_ = json.Unmarshal(raw, &text) // the text is valid
	return text
}

// itemsOf are those of a list; all is false where there are more than limit, which are not returned.
func itemsOf(list json.RawMessage, limit int) (items []json.RawMessage, all bool) {
	for s := inside(list); s.more(); {
		if len(items) == limit {
			return nil, false
		}
		items = append(items, s.value())
	}
	return items, true
}

func hasMoreMembers(object json.RawMessage, limit int) bool {
	n := 0
	for s := inside(object); s.more() && n <= limit; n++ {
		s.name()
		s.value()
	}
	return n > limit
}

// isEmpty says whether a list or an object holds nothing.
func isEmpty(raw json.RawMessage) bool {
	s := inside(raw)
	return !s.more()
}
