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
type reader struct{ err error }

func (r *reader) fail(field, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s %s", ErrRecord, field, fmt.Sprintf(format, args...))
	}
}

// is says whether the field has the wanted type.
func (r *reader) is(field string, value pcommon.Value, want pcommon.ValueType) bool {
	if value.Type() == want {
		return true
	}
	r.fail(field, "is a %s; a %s was expected", value.Type(), want)
	return false
}

func (r *reader) text(field string, value pcommon.Value) string {
	if !r.is(field, value, pcommon.ValueTypeStr) {
		return ""
	}
	return value.Str()
}

func (r *reader) nanos(field string, value pcommon.Value) int64 {
	if !r.is(field, value, pcommon.ValueTypeInt) {
		return 0
	}
	if value.Int() < 0 {
		r.fail(field, "is negative")
	}
	return value.Int()
}

func (r *reader) version(field string, value pcommon.Value) int {
	if !r.is(field, value, pcommon.ValueTypeInt) {
		return 0
	}
	if value.Int() < 1 || value.Int() > math.MaxInt32 {
		r.fail(field, "is %d; a version is 1 or more", value.Int())
	}
	return int(value.Int())
}

// noInstant marks a moment that was not sent.
const noInstant engine.Instant = -1

func (r *reader) instant(field string, value pcommon.Value) engine.Instant {
	if !r.is(field, value, pcommon.ValueTypeStr) {
		return 0
	}
	instant, err := engine.ParseInstant(value.Str())
	if err != nil {
		r.fail(field, "is no time: %v", err)
	}
	return instant
}

func (r *reader) object(field string, value pcommon.Value) engine.Object {
	if !r.is(field, value, pcommon.ValueTypeStr) {
		return engine.Object{}
	}
	object, err := engine.ReadObject(value.Str())
	if err != nil {
		r.fail(field, "does not read: %v", err)
	}
	return object
}

func (r *reader) trust(field string, value pcommon.Value) engine.Trust {
	if !r.is(field, value, pcommon.ValueTypeStr) {
		return engine.UnknownTrust
	}
	trust, err := engine.ParseTrust(value.Str())
	if err != nil {
		r.fail(field, "does not read: %v", err)
	}
	return trust
}
