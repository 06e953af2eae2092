package aevs

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// MaxDepth bounds the nesting of a receipt.
const MaxDepth = 256

// ErrJSON is wrapped by every error about text that has no canonical form.
var ErrJSON = errors.New("invalid JSON")

// Canonical returns the canonical form of a JSON text: keys in byte order, no
// spaces, only what JSON demands escaped, strings (not keys) in Unicode
// normalization form C, floats as strings with six decimals.
func Canonical(text []byte) ([]byte, error) {
	s, err := newScanner(text)
	if err != nil {
		return nil, err
	}
	s.normalize = true
	out, err := s.value(nil)
	if err != nil {
		return nil, err
	}
	return out, s.end()
}

// member is one member of an object, its value in canonical form.
type member struct {
	key   string
	value []byte
}

// members reads an object and returns its members in byte order of their keys.
func members(text []byte, normalize bool) ([]member, error) {
	s, err := newScanner(text)
	if err != nil {
		return nil, err
	}
	s.normalize = normalize
	s.space()
	if s.peek() != '{' {
		return nil, s.fail("an object was expected")
	}
	list, err := s.members()
	if err != nil {
		return nil, err
	}
	return list, s.end()
}

// appendObject writes members, which are in order, except the one called without.
func appendObject(out []byte, list []member, without string) []byte {
	out = append(out, '{')
	first := true
	for i := range list {
		if list[i].key == without {
			continue
		}
		if !first {
			out = append(out, ',')
		}
		first = false
		out = appendString(out, list[i].key)
		out = append(out, ':')
		out = append(out, list[i].value...)
	}
	return append(out, '}')
}

// scanner reads JSON and writes its canonical form.
type scanner struct {
	in        []byte
	at        int
	depth     int
	normalize bool
}

func newScanner(text []byte) (scanner, error) {
	if !utf8.Valid(text) {
		return scanner{}, fmt.Errorf("%w: it is not valid UTF-8", ErrJSON)
	}
	return scanner{in: text}, nil
}

func (s *scanner) fail(text string) error {
	return fmt.Errorf("%w at byte %d: %s", ErrJSON, s.at, text)
}

func (s *scanner) space() {
	for s.at < len(s.in) {
		switch s.in[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

// peek is the next byte, 0 at the end. A byte 0 stands nowhere in JSON.
func (s *scanner) peek() byte {
	if s.at < len(s.in) {
		return s.in[s.at]
	}
	return 0
}

func (s *scanner) end() error {
	s.space()
	if s.at < len(s.in) {
		return s.fail("something stands behind the value")
	}
	return nil
}

func (s *scanner) value(out []byte) ([]byte, error) {
	s.space()
	switch c := s.peek(); {
	case c == '{':
		return s.object(out)
	case c == '[':
		return s.array(out)
	case c == '"':
		return s.text(out)
	case c == '-' || '0' <= c && c <= '9':
		return s.number(out)
	}
	for _, word := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(s.in[s.at:], []byte(word)) {
			s.at += len(word)
			return append(out, word...), nil
		}
	}
	return nil, s.fail("a value was expected")
}

func (s *scanner) enter() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail(fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.at++
	s.space()
	return nil
}

func (s *scanner) leave() {
	s.depth--
	s.at++
}

// span is where in the output a member of an object stands.
type span struct {
	key        string
	start, end int
}

func (s *scanner) object(out []byte) ([]byte, error) {
	start := len(out)
	out = append(out, '{')
	var spans []span
	ordered := true
	err := s.eachMember(func(key string) error {
		if len(spans) > 0 {
			ordered = ordered && spans[len(spans)-1].key < key
			out = append(out, ',')
		}
		from := len(out)
		out = append(appendString(out, key), ':')
		var err error
		if out, err = s.value(out); err != nil {
			return err
		}
		spans = append(spans, span{key, from, len(out)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !ordered {
		if out, err = s.reorder(out, start, spans); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// reorder puts the members of the object that starts at start in order.
func (s *scanner) reorder(out []byte, start int, spans []span) ([]byte, error) {
	written := slices.Clone(out[start:])
	slices.SortFunc(spans, func(a, b span) int { return strings.Compare(a.key, b.key) })
	out = append(out[:start], '{')
	for i, m := range spans {
		if i > 0 {
			if spans[i-1].key == m.key {
				return nil, s.twice(m.key)
			}
			out = append(out, ',')
		}
		out = append(out, written[m.start-start:m.end-start]...)
	}
	return out, nil
}

func (s *scanner) twice(key string) error {
	return s.fail(fmt.Sprintf("the key %q stands twice in one object", clip(key)))
}

func (s *scanner) members() ([]member, error) {
	var list []member
	err := s.eachMember(func(key string) error {
		value, err := s.value(nil)
		list = append(list, member{key, value})
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b member) int { return strings.Compare(a.key, b.key) })
	for i := 1; i < len(list); i++ {
		if list[i-1].key == list[i].key {
			return nil, s.twice(list[i].key)
		}
	}
	return list, nil
}

// eachMember reads an object; read reads the value that follows the key.
func (s *scanner) eachMember(read func(key string) error) error {
	if err := s.enter(); err != nil {
		return err
	}
	for first := true; s.peek() != '}'; first = false {
		if !first {
			if s.peek() != ',' {
				return s.fail("a comma or } was expected")
			}
			s.at++
			s.space()
		}
		if s.peek() != '"' {
			return s.fail("a key was expected")
		}
		key, err := s.quoted()
		if err != nil {
			return err
		}
		s.space()
		if s.peek() != ':' {
			return s.fail("a colon was expected")
		}
		s.at++
		if err := read(key); err != nil {
			return err
		}
		s.space()
	}
	s.leave()
	return nil
}

func (s *scanner) array(out []byte) ([]byte, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	out = append(out, '[')
	for first := true; s.peek() != ']'; first = false {
		if !first {
			if s.peek() != ',' {
				return nil, s.fail("a comma or ] was expected")
			}
			s.at++
			out = append(out, ',')
		}
		var err error
		if out, err = s.value(out); err != nil {
			return nil, err
		}
		s.space()
	}
	s.leave()
	return append(out, ']'), nil
}

// number writes whole numbers as they are, and others as text with six decimals.
func (s *scanner) number(out []byte) ([]byte, error) {
	from := s.at
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if s.digits() == 0 {
		return nil, s.fail("a digit was expected")
	}
	whole := true
	if s.peek() == '.' {
		s.at++
		if whole = false; s.digits() == 0 {
			return nil, s.fail("a digit was expected")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if whole = false; s.digits() == 0 {
			return nil, s.fail("a digit was expected")
		}
	}
	text := s.in[from:s.at]
	if !whole {
		return appendFloat(out, string(text)), nil
	}
	if string(text) == "-0" {
		text = text[1:]
	}
	return append(out, text...), nil
}

func (s *scanner) digits() int {
	from := s.at
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at - from
}

func appendFloat(out []byte, text string) []byte {
	value, _ := strconv.ParseFloat(text, 64) // out of range: an infinity
	if math.IsInf(value, 0) {
		return append(out, "null"...)
	}
	out = append(out, '"')
	out = strconv.AppendFloat(out, value, 'f', 6, 64)
	return append(out, '"')
}

// text writes a string that is a value.
func (s *scanner) text(out []byte) ([]byte, error) {
	text, err := s.quoted()
	if err != nil {
		return nil, err
	}
	if s.normalize && !norm.NFC.IsNormalString(text) {
		text = norm.NFC.String(text)
	}
	return appendString(out, text), nil
}

// quoted reads a string.
func (s *scanner) quoted() (string, error) {
	s.at++
	from := s.at
	for s.at < len(s.in) {
		switch c := s.in[s.at]; {
		case c == '"':
			text := string(s.in[from:s.at])
			s.at++
			return text, nil
		case c == '\\':
			return s.escaped(append([]byte(nil), s.in[from:s.at]...))
		case c < ' ':
			return "", s.fail("a control character stands in a string")
		}
		s.at++
	}
	return "", s.fail("a string does not end")
}

var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escaped reads the rest of a string that has escapes.
func (s *scanner) escaped(text []byte) (string, error) {
	for s.at < len(s.in) {
		c := s.in[s.at]
		switch {
		case c == '"':
			s.at++
			return string(text), nil
		case c < ' ':
			return "", s.fail("a control character stands in a string")
		case c != '\\':
			text = append(text, c)
			s.at++
			continue
		}
		s.at++
		c = s.peek()
		if c == 'u' {
			r, err := s.unicode()
			if err != nil {
				return "", err
			}
			text = utf8.AppendRune(text, r)
			continue
		}
		plain, ok := escapes[c]
		if !ok {
			return "", s.fail("an escape that JSON does not know")
		}
		text = append(text, plain)
		s.at++
	}
	return "", s.fail("a string does not end")
}

// unicode reads uXXXX, and the second half where that is one of a pair.
func (s *scanner) unicode() (rune, error) {
	high, err := s.hex4()
	if err != nil {
		return 0, err
	}
	const surrogates, low, end = 0xd800, 0xdc00, 0xe000
	if high < surrogates || high >= end {
		return high, nil
	}
	if high >= low || !bytes.HasPrefix(s.in[s.at:], []byte(`\u`)) {
		return 0, s.fail("an unpaired surrogate")
	}
	s.at++
	second, err := s.hex4()
	if err != nil {
		return 0, err
	}
	if second < low || second >= end {
		return 0, s.fail("an unpaired surrogate")
	}
	return (high-surrogates)<<10 + (second - low) + 0x10000, nil
}

func (s *scanner) hex4() (rune, error) {
	const digits = 4
	if s.at+1+digits > len(s.in) {
		return 0, s.fail("four hexadecimal digits were expected")
	}
	value := rune(0)
	for _, c := range s.in[s.at+1 : s.at+1+digits] {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, s.fail("four hexadecimal digits were expected")
		}
		value = value<<4 | rune(digit)
	}
	s.at += 1 + digits
	return value, nil
}

// appendString writes a string as the SDK does: only quotes, backslashes and
// control characters below a space are escaped.
func appendString(out []byte, text string) []byte {
	out = append(out, '"')
	from := 0
	for i := range len(text) {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[from:i]...)
		from = i + 1
		out = appendEscape(out, c)
	}
	out = append(out, text[from:]...)
	return append(out, '"')
}

func appendEscape(out []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(out, '\\', c)
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	}
	const hex = "0123456789abcdef"
	return append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
}

// clip bounds hostile text that is repeated in an error.
func clip(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
