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
	// body is read when a rule first asks for it.
	body     any
	bodyErr  error
	bodyRead bool
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
	if !e.bodyRead {
		e.bodyRead = true
		e.body, e.bodyErr = readBody(e.log.Body())
	}
	return e.body, e.bodyErr
}

func readBody(body pcommon.Value) (any, error) {
	switch body.Type() {
	case pcommon.ValueTypeStr:
		return readText(body.Str())
	case pcommon.ValueTypeBytes:
		return readText(string(body.Bytes().AsRaw()))
	}
	return body.AsRaw(), nil
}

func readText(text string) (any, error) {
	if len(text) > maxBody {
		return nil, fmt.Errorf("%w: it has %d bytes; at most %d are read", errBody, len(text), maxBody)
	}
	if trimmed := strings.TrimLeft(text, " \t\r\n"); trimmed == "" || (trimmed[0] != '{' && trimmed[0] != '[') {
		return text, nil
	}
	value, err := parseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return value, nil
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
