package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// grammar is the notation a text is read in.
type grammar bool

const (
	jsonGrammar   grammar = false
	pythonGrammar grammar = true
)

// parser reads one JSON text or one Python literal. The caller bounds the
// length of the text; the parser bounds its nesting.
type parser struct {
	text  string
	at    int
	depth int
	in    grammar
	// damage is set where what does not read is lost alone (see parseDamaged);
	// path then leads to the value that is read.
	damage *Damage
	path   []string
}

// parseJSON reads JSON as RFC 8259 has it, but refuses duplicate keys, U+0000
// and nesting over MaxDepth, keeps numbers as json.Number, and reads NaN,
// Infinity and -Infinity, which Python's json module writes, as strings.
func parseJSON(text string) (any, error) { return parse(text, jsonGrammar) }

// parsePython reads what Python's repr writes for None, booleans, numbers,
// strings, Decimal, lists, tuples, sets and dictionaries with string or
// integer keys. Everything else is an error; nothing is evaluated.
func parsePython(text string) (any, error) { return parse(text, pythonGrammar) }

func parse(text string, in grammar) (any, error) {
	if !utf8.ValidString(text) {
		return nil, errNotUTF8
	}
	p := parser{text: text, in: in}
	v, err := p.value()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.text) {
		return nil, p.unexpected("end of text")
	}
	return v, nil
}

var errNotUTF8 = errors.New("not valid UTF-8")

func (p *parser) unexpected(wanted string) error {
	if p.at >= len(p.text) {
		return &syntaxError{p.at, "text ends, expected " + wanted, "expected " + wanted}
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return &syntaxError{p.at, fmt.Sprintf("%q, expected %s", r, wanted), "expected " + wanted}
}

// syntaxError says where a text does not read. Reason shows nothing of the text.
type syntaxError struct {
	at           int
	what, reason string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("offset %d: %s", e.at, e.what) }

func (p *parser) space() {
	for p.at < len(p.text) {
		switch p.text[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end of the text.
func (p *parser) peek() byte {
	p.space()
	if p.at >= len(p.text) {
		return 0
	}
	return p.text[p.at]
}

func (p *parser) take(c byte) bool {
	if p.peek() != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) value() (any, error) {
	switch c := p.peek(); {
	case c == '{':
		return p.nested(p.object)
	case c == '[':
		return p.nested(func() (any, error) { return p.list(']') })
	case c == '(' && p.in == pythonGrammar:
		return p.nested(p.tuple)
	case c == '"', c == '\'' && p.in == pythonGrammar:
		return p.str()
	case c == '-' || isDigit(c):
		return p.number()
	case isLetter(c):
		return p.name()
	default:
		return nil, p.unexpected("a value")
	}
}

// nested reads a container whose opening bracket is next.
func (p *parser) nested(read func() (any, error)) (any, error) {
	if p.depth == MaxDepth {
		if p.damage != nil {
			return p.skip()
		}
		why := fmt.Sprintf("nested deeper than %d", MaxDepth)
		return nil, &syntaxError{p.at, why, why}
	}
	p.depth++
	p.at++
	v, err := read()
	p.depth--
	return v, err
}

func (p *parser) list(end byte) (any, error) {
	items := []any{}
	if p.take(end) {
		return items, nil
	}
	for {
		item, err := p.element(len(items))
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		done, err := p.next(end)
		if err != nil || done {
			return items, err
		}
	}
}

// next reads the comma after an element, or the end of the container.
func (p *parser) next(end byte) (done bool, err error) {
	if p.take(end) {
		return true, nil
	}
	if !p.take(',') {
		return false, p.unexpected("a comma or '" + string(end) + "'")
	}
	return p.in == pythonGrammar && p.take(end), nil
}

// tuple reads after "(". A single element in brackets is no tuple unless a
// comma follows it.
func (p *parser) tuple() (any, error) {
	if p.take(')') {
		return []any{}, nil
	}
	first, err := p.element(0)
	if err != nil {
		return nil, err
	}
	if !p.take(',') {
		return nil, p.unexpected("a comma")
	}
	rest, err := p.list(')')
	if err != nil {
		return nil, err
	}
	return append([]any{first}, rest.([]any)...), nil
}

// object reads after "{": an object, a dictionary, or a set.
func (p *parser) object() (any, error) {
	object := map[string]any{}
	if p.take('}') {
		return object, nil
	}
	var lost names
	for first := true; ; first = false {
		p.space()
		at := p.at
		var name string
		if p.in == jsonGrammar && p.at < len(p.text) && p.text[p.at] == '"' {
			var err error
			if name, err = p.quoted(); err != nil {
				return nil, err
			}
		} else {
			key, err := p.value()
			if err != nil {
				return nil, err
			}
			if first && p.in == pythonGrammar && p.peek() != ':' {
				return p.set(key)
			}
			var ok bool
			if name, ok = p.key(key); !ok {
				return nil, &syntaxError{at, "expected a key", "expected a key"}
			}
		}
		if !p.take(':') {
			return nil, p.unexpected("a colon")
		}
		if _, known := object[name]; known || lost[name] {
			if p.damage == nil {
				return nil, &syntaxError{at, fmt.Sprintf("key %q stands twice", name), "a key stands twice"}
			}
			delete(object, name)
			lost = p.loseTwin(lost, name, at)
		}
		value, err := p.within(name)
		switch {
		case err != nil:
			return nil, err
		case value == (lostValue{}):
			lost = lost.with(name)
		case !lost[name]:
			object[name] = value
		}
		done, err := p.next('}')
		if err != nil || done {
			return object, err
		}
	}
}

// set reads the rest of a Python set after its first element.
func (p *parser) set(first any) (any, error) {
	done, err := p.next('}')
	if err != nil {
		return nil, err
	}
	if done {
		return []any{first}, nil
	}
	rest, err := p.list('}')
	if err != nil {
		return nil, err
	}
	return append([]any{first}, rest.([]any)...), nil
}

// key accepts what Python's json module turns into a key without loss.
func (p *parser) key(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		integer := p.in == pythonGrammar && !strings.ContainsAny(v.String(), ".eE")
		return v.String(), integer
	default:
		return "", false
	}
}

func (p *parser) number() (any, error) {
	start := p.at
	if p.text[p.at] == '-' {
		p.at++
		if p.at < len(p.text) && isLetter(p.text[p.at]) {
			return p.negativeInfinity()
		}
	}
	if !p.digits() {
		return nil, p.unexpected("a digit")
	}
	whole := strings.TrimPrefix(p.text[start:p.at], "-")
	if len(whole) > 1 && whole[0] == '0' {
		return nil, &syntaxError{start, "number with a leading zero", "number with a leading zero"}
	}
	if p.at < len(p.text) && p.text[p.at] == '.' {
		p.at++
		if !p.digits() {
			return nil, p.unexpected("a digit")
		}
	}
	if p.at < len(p.text) && (p.text[p.at] == 'e' || p.text[p.at] == 'E') {
		p.at++
		if p.at < len(p.text) && (p.text[p.at] == '+' || p.text[p.at] == '-') {
			p.at++
		}
		if !p.digits() {
			return nil, p.unexpected("a digit")
		}
	}
	return json.Number(p.text[start:p.at]), nil
}

func (p *parser) digits() bool {
	start := p.at
	for p.at < len(p.text) && isDigit(p.text[p.at]) {
		p.at++
	}
	return p.at > start
}

func (p *parser) negativeInfinity() (any, error) {
	start := p.at
	v, err := p.name()
	if err != nil {
		return nil, err
	}
	if v != "Infinity" {
		p.at = start
		return nil, p.unexpected("a digit")
	}
	return "-Infinity", nil
}

// name reads a word that stands for a value.
func (p *parser) name() (any, error) {
	start := p.at
	for p.at < len(p.text) && (isLetter(p.text[p.at]) || isDigit(p.text[p.at]) || p.text[p.at] == '_') {
		p.at++
	}
	word := p.text[start:p.at]
	if p.in == pythonGrammar {
		switch word {
		case "None":
			return nil, nil
		case "True":
			return true, nil
		case "False":
			return false, nil
		case "nan":
			return "NaN", nil
		case "inf":
			return "Infinity", nil
		case "Decimal":
			return p.decimal()
		case "set":
			if p.take('(') && p.take(')') {
				return []any{}, nil
			}
		}
	} else {
		switch word {
		case "null":
			return nil, nil
		case "true":
			return true, nil
		case "false":
			return false, nil
		case "NaN", "Infinity":
			return word, nil
		}
	}
	return nil, &syntaxError{start, fmt.Sprintf("%.40q is no value", word), "a word that is no value"}
}

// decimal reads the rest of Decimal('12.50'), how Python shows exact money.
func (p *parser) decimal() (any, error) {
	if !p.take('(') {
		return nil, p.unexpected("'('")
	}
	if c := p.peek(); c != '\'' && c != '"' {
		return nil, p.unexpected("a quote")
	}
	text, err := p.str()
	if err != nil {
		return nil, err
	}
	if !p.take(')') {
		return nil, p.unexpected("')'")
	}
	inner := parser{text: text.(string)}
	if c := inner.peek(); c != '-' && !isDigit(c) {
		return text, nil // NaN, Infinity
	}
	number, err := inner.number()
	if err != nil {
		return nil, err
	}
	if inner.at < len(inner.text) {
		return nil, inner.unexpected("end of number")
	}
	return number, nil
}

// str reads a quoted string; the quote is next.
func (p *parser) str() (any, error) {
	s, err := p.quoted()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// quoted is str without the interface, which costs an allocation.
func (p *parser) quoted() (string, error) {
	quote := p.text[p.at]
	p.at++
	start := p.at
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == quote:
			s := p.text[start:p.at]
			p.at++
			return s, nil
		case c == '\\', c == 0 && p.damage != nil:
			return p.escaped(quote, p.text[start:p.at])
		case c < ' ' && p.damage == nil:
			return "", p.unexpected("no control character in a string")
		default:
			p.at++
		}
	}
	return "", p.unexpected("a closing quote")
}

// escaped reads on from the first backslash of a string.
func (p *parser) escaped(quote byte, before string) (string, error) {
	var b strings.Builder
	b.WriteString(before)
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == quote:
			p.at++
			return b.String(), nil
		case c == 0 && p.damage != nil:
			p.replaceZero(p.at)
			b.WriteRune(utf8.RuneError)
			p.at++
		case c < ' ' && p.damage == nil:
			return "", p.unexpected("no control character in a string")
		case c == '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	return "", p.unexpected("a closing quote")
}

// escape reads one escape sequence. Unpaired surrogates become U+FFFD, U+0000
// is refused (D35), or becomes U+FFFD too where it must not cost the rest.
func (p *parser) escape() (rune, error) {
	start := p.at
	p.at++ // the backslash
	if p.at >= len(p.text) {
		return 0, p.unexpected("an escape sequence")
	}
	c := p.text[p.at]
	p.at++
	var r rune
	var ok bool
	switch c {
	case '"', '\\':
		return rune(c), nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok = p.unicode()
	case '/':
		r, ok = '/', p.in == jsonGrammar
	case 'b':
		r, ok = '\b', p.in == jsonGrammar
	case 'f':
		r, ok = '\f', p.in == jsonGrammar
	case '\'':
		r, ok = '\'', p.in == pythonGrammar
	case 'x':
		r, ok = p.hex(2)
		ok = ok && p.in == pythonGrammar
	case 'U':
		r, ok = p.hex(8)
		ok = ok && p.in == pythonGrammar
	}
	if ok && r == 0 && p.damage != nil {
		p.replaceZero(start)
		return utf8.RuneError, nil
	}
	if !ok || r == 0 || r > utf8.MaxRune {
		p.at = start
		return 0, p.unexpected("an escape sequence for a character other than U+0000")
	}
	return r, nil // WriteRune makes a surrogate U+FFFD
}

// unicode reads the four digits after \u, and the second half of a pair.
func (p *parser) unicode() (rune, bool) {
	r, ok := p.hex(4)
	if !ok || !utf16.IsSurrogate(r) || p.in == pythonGrammar {
		return r, ok
	}
	if !strings.HasPrefix(p.text[p.at:], `\u`) {
		return utf8.RuneError, true
	}
	start := p.at
	p.at += 2
	low, ok := p.hex(4)
	if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
		return pair, true
	}
	p.at = start // the second escape is read again, on its own
	return utf8.RuneError, true
}

func (p *parser) hex(digits int) (rune, bool) {
	if len(p.text)-p.at < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(p.text[p.at:p.at+digits], 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, false
	}
	p.at += digits
	return rune(n), true
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
