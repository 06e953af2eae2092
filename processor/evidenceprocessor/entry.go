package evidenceprocessor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/delivery"
)

// entry is one log record while it is judged.
type entry struct {
	log plog.LogRecord
	// delivered: an evidence receiver says how the record came.
	delivered bool
	delivery  delivery.Delivery
	// body is read when a rule first asks for it. Where it is an object, and
	// only members of it were asked for, it is members, and body is nil.
	body     any
	bodyErr  error
	bodyRead bool
	isFlat   bool
	members  []bodyMember
	// source is that of the rule which is asked.
	source string
	// item is what for_each is at.
	item any
	// context is what expressions are evaluated with.
	context evalContext
	// fact is the last one that a rule made.
	fact engine.Fact
}

// maxBody bounds what is parsed, in bytes.
const maxBody = 16 << 20

// errBody is wrapped by the error about a body that does not read, which is
// said once for a record and not once a rule.
var errBody = errors.New("the body does not read")

// json is the record's body as a JSON value. A body that does not look like
// JSON is its text; one that looks like it and is not is an error.
func (e *entry) json() (any, error) {
	e.read()
	if e.isFlat && e.body == nil {
		e.body = objectOf(e.members)
	}
	return e.body, e.bodyErr
}

// first is what a selector names first in the body; nil for nothing.
func (e *entry) first(s *selector) (any, error) {
	e.read()
	if !e.isFlat || !s.plain || s.whole == "" {
		body, err := e.json()
		if err != nil {
			return nil, err
		}
		return s.first(body), nil
	}
	if len(s.steps) > 1 {
		if m := e.member(s.whole); m != nil {
			return m.any(), nil
		}
	}
	m := e.member(s.steps[0].name)
	if m == nil {
		return nil, nil
	}
	value := m.any()
	for i := 1; i < len(s.steps) && value != nil; i++ {
		value = member(value, s.steps[i].name)
	}
	return value, nil
}

// text is first where that is a text of the top level, without an interface;
// ok is false where it may be anything else.
func (e *entry) text(s *selector) (text string, ok bool) {
	if e.read(); !e.isFlat || !s.plain || len(s.steps) != 1 {
		return "", false
	}
	m := e.member(s.steps[0].name)
	if m == nil || !m.isText {
		return "", false
	}
	return m.text, true
}

// member is the last one of its name.
func (e *entry) member(name string) *bodyMember {
	for i := len(e.members) - 1; i >= 0; i-- {
		if e.members[i].name == name {
			return &e.members[i]
		}
	}
	return nil
}

func (e *entry) read() {
	if e.bodyRead {
		return
	}
	e.bodyRead = true
	switch body := e.log.Body(); body.Type() {
	case pcommon.ValueTypeStr:
		e.readText(body.Str())
	case pcommon.ValueTypeBytes:
		e.readText(string(body.Bytes().AsRaw()))
	default:
		e.body = body.AsRaw()
	}
}

func (e *entry) readText(text string) {
	if len(text) > maxBody {
		e.bodyErr = fmt.Errorf("%w: it has %d bytes; at most %d are read", errBody, len(text), maxBody)
		return
	}
	if trimmed := strings.TrimLeft(text, " \t\r\n"); trimmed == "" || (trimmed[0] != '{' && trimmed[0] != '[') {
		e.body = text
		return
	}
	if e.members, e.isFlat = flatObject(text, e.members[:0]); e.isFlat {
		return
	}
	var err error
	if e.body, err = parseJSON(text); err != nil {
		e.body, e.bodyErr = nil, fmt.Errorf("%w: %w", errBody, err)
	}
}

// evalContext carries the record to the functions of an expression. It is its
// own Value, so that passing it on allocates nothing.
type evalContext struct {
	context.Context
	entry *entry
}

type entryKey struct{}

// Value returns the record for entryKey.
func (c *evalContext) Value(key any) any {
	if key == (entryKey{}) {
		return c.entry
	}
	return c.Context.Value(key)
}

func entryFrom(ctx context.Context) *entry {
	e, _ := ctx.Value(entryKey{}).(*entry)
	return e
}
