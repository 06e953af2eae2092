// Package plainjson reads JSON as nearly everybody writes it, in one pass and
// with texts that are parts of the document. What is rare or wrong it does not
// read: whoever uses it then asks encoding/json, which also knows what is wrong
// and where. So there is one judge of JSON, and this package is only fast.
package plainjson

import (
	"strings"
	"unicode/utf8"
)

// Scanner goes over one document, which has to be valid UTF-8. Its methods
// begin at At and leave it behind what they read; where they say false, At
// means nothing any more.
type Scanner struct {
	Text string
	At   int
}

// Peek skips white space and returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	for s.At < len(s.Text) {
		switch c := s.Text[s.At]; c {
		case ' ', '\t', '\n', '\r':
			s.At++
		default:
			return c
		}
	}
	return 0
}

// Take is Peek for one byte that is taken where it is next.
func (s *Scanner) Take(c byte) bool {
	if s.Peek() != c {
		return false
	}
	s.At++
	return true
}

// Done says that nothing but white space is left.
func (s *Scanner) Done() bool { return s.Peek() == 0 && s.At == len(s.Text) }

// Word reads true, false or null, whichever is asked for.
func (s *Scanner) Word(word string) bool {
	if !strings.HasPrefix(s.Text[s.At:], word) {
		return false
	}
	s.At += len(word)
	return true
}

// Number reads a number by RFC 8259 section 6, as it is written.
func (s *Scanner) Number() (string, bool) {
	start := s.At
	s.skip('-')
	whole := s.At
	if !s.digits() || s.At > whole+1 && s.Text[whole] == '0' {
		return "", false
	}
	if s.skip('.') && !s.digits() {
		return "", false
	}
	if s.skip('e') || s.skip('E') {
		_ = s.skip('+') || s.skip('-')
		if !s.digits() {
			return "", false
		}
	}
	return s.Text[start:s.At], true
}

func (s *Scanner) skip(c byte) bool {
	if s.At == len(s.Text) || s.Text[s.At] != c {
		return false
	}
	s.At++
	return true
}

func (s *Scanner) digits() bool {
	start := s.At
	for s.At < len(s.Text) && s.Text[s.At]-'0' <= 9 {
		s.At++
	}
	return s.At > start
}

// String reads a text whose opening quote is next.
func (s *Scanner) String() (string, bool) {
	start := s.At + 1
	for i := start; i < len(s.Text); i++ {
		switch c := s.Text[i]; {
		case c == '"':
			s.At = i + 1
			return s.Text[start:i], true
		case c == '\\':
			return s.escaped(start, i)
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped is String with the first backslash at i.
func (s *Scanner) escaped(start, i int) (string, bool) {
	text := make([]byte, 0, i-start+32)
	for i < len(s.Text) {
		c := s.Text[i]
		if c != '\\' && c != '"' && c >= ' ' {
			i++
			continue
		}
		text = append(text, s.Text[start:i]...)
		if c == '"' {
			s.At = i + 1
			return string(text), true
		}
		if c != '\\' {
			return "", false
		}
		var ok bool
		if text, i, ok = s.escape(text, i+1); !ok {
			return "", false
		}
		start = i
	}
	return "", false
}

// escape reads what stands behind a backslash. Surrogates are rare, and not read.
func (s *Scanner) escape(text []byte, i int) (longer []byte, end int, ok bool) {
	if i == len(s.Text) {
		return nil, 0, false
	}
	switch c := s.Text[i]; c {
	case '"', '\\', '/':
		return append(text, c), i + 1, true
	case 'b':
		return append(text, '\b'), i + 1, true
	case 'f':
		return append(text, '\f'), i + 1, true
	case 'n':
		return append(text, '\n'), i + 1, true
	case 'r':
		return append(text, '\r'), i + 1, true
	case 't':
		return append(text, '\t'), i + 1, true
	case 'u':
		r, ok := hex4(s.Text[i+1:])
		return utf8.AppendRune(text, r), i + 5, ok && (r < 0xD800 || r > 0xDFFF)
	}
	return nil, 0, false
}

func hex4(text string) (r rune, ok bool) {
	if len(text) < 4 {
		return 0, false
	}
	for i := range 4 {
		c := text[i]
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20-'a' <= 5:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
