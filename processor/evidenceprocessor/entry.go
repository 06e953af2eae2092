package evidenceprocessor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

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
		return readText([]byte(body.Str()))
	case pcommon.ValueTypeBytes:
		return readText(body.Bytes().AsRaw())
	}
	return body.AsRaw(), nil
}

func readText(text []byte) (any, error) {
	if len(text) > maxBody {
		return nil, fmt.Errorf("%w: it has %d bytes; at most %d are read", errBody, len(text), maxBody)
	}
	if trimmed := bytes.TrimLeft(text, " \t\r\n"); len(trimmed) == 0 || (trimmed[0] != '{' && trimmed[0] != '[') {
		return string(text), nil
	}
	value, err := parseJSON(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	return value, nil
}

// parseJSON keeps numbers as they were sent.
func parseJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("it is no JSON at byte %d: %w", decoder.InputOffset(), err)
	}
	if rest := text[decoder.InputOffset():]; len(bytes.TrimLeft(rest, " \t\r\n")) > 0 {
		return nil, fmt.Errorf("there is more behind the JSON at byte %d", decoder.InputOffset())
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
