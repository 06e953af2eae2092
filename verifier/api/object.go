package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// object is a JSON object whose members are not decoded yet, so that numbers
// keep their exact text and every error can name its place.
type object struct {
	pointer string
	members map[string]json.RawMessage
	faults  *[]Fault
}

// parseBody reads a request body as one object with known members only. A text
// that is no JSON fails with 400; what is wrong inside is collected in faults.
func parseBody(body []byte, known []string, faults *[]Fault) (object, error) {
	if !utf8.Valid(body) {
		return object{}, problem(http.StatusBadRequest, CodeMalformed, "the body is not valid UTF-8 at byte %d", firstInvalid(body))
	}
	if !json.Valid(body) {
		return object{}, malformed(body)
	}
	whole := scanner{text: body}
	raw := whole.value()
	if kindOf(raw) != "an object" {
		return object{}, problem(http.StatusBadRequest, CodeMalformed, "the body is %s; send an object {...}", kindOf(raw))
	}
	return parseObject(raw, "", known, faults), nil
}

// malformed says where a text is no JSON.
func malformed(body []byte) *Problem {
	decoder := json.NewDecoder(bytes.NewReader(body))
	var first json.RawMessage
	err := decoder.Decode(&first)
	if err == nil {
		return problem(http.StatusBadRequest, CodeMalformed, "the body is followed by more text; send one object")
	}
	offset := decoder.InputOffset()
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF):
		return problem(http.StatusBadRequest, CodeMalformed, "the body is empty; send a JSON object")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return problem(http.StatusBadRequest, CodeMalformed, "the body is not JSON: it ends too early")
	case errors.As(err, &syntax):
		offset = syntax.Offset - 1 // it counts the byte that is wrong
	}
	return problem(http.StatusBadRequest, CodeMalformed, "the body is not JSON at byte %d: %v", offset, err)
}

func firstInvalid(text []byte) int {
	i := 0
	for i < len(text) {
		r, size := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return i
}

// parseObject splits valid JSON text of an object into its members. It gives up
// on an object with more wrong members than are reported: each costs more to
// explain than to send.
func parseObject(raw json.RawMessage, pointer string, known []string, faults *[]Fault) object {
	o := object{pointer, map[string]json.RawMessage{}, faults}
	wrong := 0
	each(raw, func(key string, value json.RawMessage) (goOn bool) {
		switch {
		case o.has(key):
			wrong++
			o.fail(key, "stands twice in one object; keep one")
		case known != nil && !contains(known, key):
			wrong++
			o.fail(key, "is not known%s; the members are %s", didYouMean(key, known), strings.Join(known, ", "))
		default:
			o.members[key] = value
		}
		return wrong < maxFaults
	})
	return o
}

// each calls f with the members of an object of valid JSON, in order, until it returns false.
func each(raw json.RawMessage, f func(key string, value json.RawMessage) (goOn bool)) {
	for s := inside(raw); s.more(); {
		key := textOf(s.name())
		if !f(key, s.value()) {
			return
		}
	}
}

func contains(list []string, text string) bool {
	for _, one := range list {
		if one == text {
			return true
		}
	}
	return false
}

func didYouMean(word string, known []string) string {
	if near := diagnostic.Nearest(word, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

// maxFaults bounds how many places of one body are reported.
const maxFaults = 100

func (o object) fail(key, format string, args ...any) {
	if len(*o.faults) < maxFaults {
		*o.faults = append(*o.faults, at(o.at(key), format, args...))
	}
}

func (o object) at(key string) string { return o.pointer + "/" + escape(key) }

// escape is RFC 6901's, for a key of bounded length.
func escape(key string) string {
	if len(key) > 80 {
		key = strings.ToValidUTF8(key[:80], "") + "..."
	}
	return pointerEscapes.Replace(key)
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

func (o object) has(key string) bool {
	_, ok := o.members[key]
	return ok
}

// sent says whether a member is there and not null.
func (o object) sent(key string) bool { return o.has(key) && !isNull(o.members[key]) }

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// kindOf names the kind of valid JSON text.
func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a text"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// text reads an optional text; null is as good as absent.
func (o object) text(key string) string {
	if !o.sent(key) {
		return ""
	}
	raw := o.members[key]
	if raw[0] != '"' {
		o.fail(key, "is %s; send a text", kindOf(raw))
		return ""
	}
	return textOf(raw)
}

// opaque reads a text of decision D6.
func (o object) opaque(key string, required bool) string {
	if !o.sent(key) {
		if required {
			o.fail(key, "is missing")
		}
		return ""
	}
	before := len(*o.faults)
	text := o.text(key)
	if len(*o.faults) > before {
		return ""
	}
	if halfPair(o.members[key]) {
		// Decoding makes the same U+FFFD of each, so that two ids would become one.
		o.fail(key, "has half of a surrogate pair; ids are valid UTF-8")
		return ""
	}
	if err := engine.CheckOpaque(key, text); err != nil {
		o.fail(key, "%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), engine.ErrOpaque.Error()+": "), key+" "))
	}
	return text
}

// halfPair says whether a JSON text escapes a UTF-16 surrogate without its other half.
func halfPair(raw json.RawMessage) bool {
	pending := false // a high surrogate waits for its low one
	for i := 0; i < len(raw); i++ {
		unit := uint64(0)
		if raw[i] == '\\' {
			i++
			if raw[i] == 'u' {
				unit, _ = strconv.ParseUint(string(raw[i+1:i+5]), 16, 16) // the text is valid JSON
				i += 4
			}
		}
		low := unit >= 0xDC00 && unit <= 0xDFFF
		if pending != low {
			return true
		}
		pending = unit >= 0xD800 && unit <= 0xDBFF
	}
	return false
}

// identifier reads an identifier of decision D6.
func (o object) identifier(key string, required bool) string {
	if !o.sent(key) {
		if required {
			o.fail(key, "is missing")
		}
		return ""
	}
	before := len(*o.faults)
	text := o.text(key)
	if len(*o.faults) > before {
		return ""
	}
	folded, err := engine.Identifier(text)
	if err != nil {
		o.fail(key, "is an %s", err)
	}
	return folded
}

// instant reads an RFC 3339 time; ok is false when there is none or a wrong one.
func (o object) instant(key string) (engine.Instant, bool) {
	if !o.sent(key) {
		return 0, false
	}
	raw := o.members[key]
	if kindOf(raw) == "a number" {
		o.fail(key, "is a number, and its unit cannot be known; send RFC 3339 text like 2026-09-28T10:42:00Z")
		return 0, false
	}
	before := len(*o.faults)
	text := o.text(key)
	if len(*o.faults) > before {
		return 0, false
	}
	instant, err := engine.ParseInstant(text)
	if err != nil {
		o.fail(key, "is an %s", err)
		return 0, false
	}
	return instant, true
}

func (o object) flag(key string) bool {
	if !o.sent(key) {
		return false
	}
	flag, err := strconv.ParseBool(string(o.members[key]))
	if raw := o.members[key]; err != nil || (raw[0] != 't' && raw[0] != 'f') {
		o.fail(key, "is %s; send true or false", kindOf(raw))
	}
	return flag
}

// count reads a whole number from 1 to 2^31-1; 0 when absent.
func (o object) count(key string) int {
	if !o.sent(key) {
		return 0
	}
	n, err := strconv.ParseInt(string(o.members[key]), 10, 32)
	if err != nil || n < 1 {
		o.fail(key, "is not a whole number from 1 to 2147483647")
		return 0
	}
	return int(n)
}

// data reads params or attributes within the limits of decision D35.
func (o object) data(key string) engine.Object {
	if !o.has(key) {
		return engine.EmptyObject()
	}
	parsed, err := engine.ParseObject(o.members[key])
	if err != nil {
		o.fail(key, "is an %s", err)
	}
	return parsed
}

// list calls f with every item of an optional list, or with none where there
// are more than limit.
func (o object) list(key string, limit int, f func(index int, raw json.RawMessage)) {
	if !o.sent(key) {
		return
	}
	raw := o.members[key]
	if raw[0] != '[' {
		o.fail(key, "is %s; send a list [...]", kindOf(raw))
		return
	}
	items, all := itemsOf(raw, limit)
	if !all {
		o.fail(key, "has more than %d items; send several requests", limit)
		return
	}
	for i, item := range items {
		f(i, item)
	}
}

// mapping returns a member that is an object of at most limit members, which are not checked.
func (o object) mapping(key string, limit int) (object, bool) {
	if !o.sent(key) {
		return object{}, false
	}
	raw := o.members[key]
	if raw[0] != '{' {
		o.fail(key, "is %s; send an object {...}", kindOf(raw))
		return object{}, false
	}
	if hasMoreMembers(raw, limit) {
		o.fail(key, "has more than %d members; send several requests", limit)
		return object{}, false
	}
	return parseObject(raw, o.at(key), nil, o.faults), true
}
