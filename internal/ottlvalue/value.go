package ottlvalue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// ErrPartMissing says that an expression lacks one of its parts, see [Complete].
var ErrPartMissing = errors.New("a part of the expression gave no value")

// hole is what OTTL's Concat and Format write for a part that is not there.
const hole = "<nil>"

// Complete refuses a text with a hole in it: OTTL writes one for a part that
// is not there, and an id made of it would be the same for everything that
// lacks the part. The error is ErrPartMissing.
func Complete(value any) error {
	if text, ok := value.(string); ok && strings.Contains(text, hole) {
		return ErrPartMissing
	}
	return nil
}

// Computable turns a JSON value, with numbers as json.Number, into what OTTL
// computes with. A whole number becomes an int64 and a decimal a float64 where
// that loses nothing; any other number stays text, which still reads as the
// same number.
func Computable(value any) any {
	switch v := value.(type) {
	case json.Number:
		return ComputableNumber(v.String())
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = Computable(item)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = Computable(item)
		}
		return list
	}
	return value
}

// ComputableNumber is Computable for the text of a number.
func ComputableNumber(text string) any {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return whole
	}
	exact, ok := engine.ReadDecimal(text)
	if !ok {
		return text
	}
	double, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	shortest, ok := engine.ReadDecimal(strconv.FormatFloat(double, 'g', -1, 64))
	if !ok || shortest.Cmp(exact) != 0 {
		return text
	}
	return double
}

// Text is the text of a scalar: an id, a channel. It is empty for nil, and an
// error for what is no scalar.
func Text(value any) (string, error) {
	switch v := value.(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return floatText(v)
	case bool:
		return strconv.FormatBool(v), nil
	case pcommon.TraceID:
		return v.String(), nil
	case pcommon.SpanID:
		return v.String(), nil
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	case pcommon.Value:
		return Text(inner(v))
	}
	return "", fmt.Errorf("it is a %s; text or a number is needed", Kind(value))
}

// inner is AsRaw without the copies of what is no scalar.
func inner(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeMap:
		return v.Map()
	case pcommon.ValueTypeSlice:
		return v.Slice()
	case pcommon.ValueTypeBytes:
		return v.Bytes()
	}
	return v.AsRaw()
}

// floatText is the shortest decimal text (decision D2).
func floatText(v float64) (string, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "", fmt.Errorf("it is %v; text or a number is needed", v)
	}
	return strconv.FormatFloat(v, 'f', -1, 64), nil
}

// Kind is what errors call a value.
func Kind(value any) string {
	switch value.(type) {
	case map[string]any, pcommon.Map:
		return "map"
	case []any, pcommon.Slice, []string, []int64, []float64, []bool:
		return "list"
	case []byte, pcommon.ByteSlice:
		return "byte string"
	case int64, float64, json.Number:
		return "number"
	case bool:
		return "boolean"
	}
	return fmt.Sprintf("%T", value)
}

var errTimeUnit = errors.New("it is a number, which could be seconds, milliseconds or nanoseconds; say which, like Unix(...) for seconds")

// Instant is a moment that an expression gave: a time, or RFC 3339 text. A
// number is an error, because its unit cannot be known.
func Instant(value any) (engine.Instant, error) {
	switch v := value.(type) {
	case time.Time:
		return engine.InstantOf(v)
	case string:
		return engine.ParseInstant(v)
	case int64, float64, json.Number:
		return 0, errTimeUnit
	case pcommon.Value:
		return Instant(inner(v))
	}
	return 0, fmt.Errorf("it is a %s; a time or RFC 3339 text is needed", Kind(value))
}

// List is a list that an expression gave. What is no list is a list of one, nil one of none.
func List(value any) []any {
	switch v := value.(type) {
	case nil:
		return nil
	case []any:
		return v
	case pcommon.Slice:
		return v.AsRaw()
	case pcommon.Map:
		return []any{v.AsRaw()}
	case pcommon.Value:
		return List(inner(v))
	case []string:
		return anyOf(v)
	case []int64:
		return anyOf(v)
	case []float64:
		return anyOf(v)
	case []bool:
		return anyOf(v)
	}
	return []any{value}
}

func anyOf[T any](items []T) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// Map is a map that an expression gave; ok is false for what is none. Nil is an empty one.
func Map(value any) (object map[string]any, ok bool) {
	switch v := value.(type) {
	case nil:
		return nil, true
	case map[string]any:
		return v, true
	case pcommon.Map:
		return v.AsRaw(), true
	case pcommon.Value:
		if v.Type() == pcommon.ValueTypeMap {
			return v.Map().AsRaw(), true
		}
	}
	return nil, false
}

// SortedNames keeps the order of evaluation, and with it that of errors, the same.
func SortedNames[T any](values map[string]T) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
