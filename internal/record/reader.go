package record

import (
	"errors"
	"fmt"
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// ErrRecord is wrapped by every error about an attribute that this package cannot have written.
var ErrRecord = errors.New("invalid record")

// reader reads the fields of one map and keeps the first error.
type reader struct {
	fields pcommon.Map
	err    error
}

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s %s", ErrRecord, field, fmt.Sprintf(format, args...))
	}
}

// get returns the field when it has the wanted type.
func (r *reader) get(field string, want pcommon.ValueType) (pcommon.Value, bool) {
	value, ok := r.fields.Get(field)
	if !ok {
		return value, false
	}
	if value.Type() != want {
		r.fail(field, "is a %s; a %s was expected", value.Type(), want)
		return value, false
	}
	return value, true
}

func (r *reader) text(field string) string {
	value, ok := r.get(field, pcommon.ValueTypeStr)
	if !ok {
		return ""
	}
	return value.Str()
}

func (r *reader) nanos(field string) int64 {
	value, ok := r.get(field, pcommon.ValueTypeInt)
	if !ok {
		return 0
	}
	if value.Int() < 0 {
		r.fail(field, "is negative")
	}
	return value.Int()
}

func (r *reader) version() int {
	value, ok := r.get(contractVersionField, pcommon.ValueTypeInt)
	if !ok {
		return 0
	}
	if value.Int() < 1 || value.Int() > math.MaxInt32 {
		r.fail(contractVersionField, "is %d; a version is 1 or more", value.Int())
	}
	return int(value.Int())
}

func (r *reader) instant(field string) engine.Instant {
	value, ok := r.get(field, pcommon.ValueTypeStr)
	if !ok {
		r.fail(field, "is missing")
		return 0
	}
	instant, err := engine.ParseInstant(value.Str())
	if err != nil {
		r.fail(field, "is no time: %v", err)
	}
	return instant
}

func (r *reader) object(field string) engine.Object {
	value, ok := r.get(field, pcommon.ValueTypeStr)
	if !ok {
		return engine.Object{}
	}
	object, err := engine.ParseObject([]byte(value.Str()))
	if err != nil {
		r.fail(field, "does not read: %v", err)
	}
	return object
}

func (r *reader) trust(field string) engine.Trust {
	value, ok := r.get(field, pcommon.ValueTypeStr)
	if !ok {
		return engine.UnknownTrust
	}
	trust, err := engine.ParseTrust(value.Str())
	if err != nil {
		r.fail(field, "does not read: %v", err)
	}
	return trust
}
