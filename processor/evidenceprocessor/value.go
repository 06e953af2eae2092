package evidenceprocessor

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// plain turns a JSON value into what OTTL computes with. A whole number
// becomes an int64 and a decimal a float64 where that loses nothing; any other
// number stays as text, which still reads as the same number.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		return plainNumber(v.String())
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = plain(item)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(item)
		}
		return list
	}
	return value
}

func plainNumber(text string) any {
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

// textOf is the text of a scalar. It is empty for nil, and an error for what is no scalar.
func textOf(value any) (string, error) {
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
		return textOf(rawOf(v))
	}
	return "", fmt.Errorf("it is a %s; text or a number is needed", kindOf(value))
}

// rawOf is AsRaw without the copies of what is no scalar.
func rawOf(v pcommon.Value) any {
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

func kindOf(value any) string {
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

// instantOf is a moment that an expression gave: a time, or RFC 3339 text.
func instantOf(value any) (engine.Instant, error) {
	switch v := value.(type) {
	case time.Time:
		return engine.InstantOf(v)
	case string:
		return engine.ParseInstant(v)
	case int64, float64, json.Number:
		return 0, errTimeUnit
	case pcommon.Value:
		return instantOf(rawOf(v))
	}
	return 0, fmt.Errorf("it is a %s; a time or RFC 3339 text is needed", kindOf(value))
}

// listOf is a list that an expression gave. What is no list is a list of one, nil one of none.
func listOf(value any) []any {
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
		return listOf(v.AsRaw())
	case []string:
		return anyOf(v)
	case []int64:
		return anyOf(v)
	}
	return []any{value}
}

// mapOf is a map that an expression gave. Nil is an empty one.
func mapOf(value any) (map[string]any, bool) {
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

func anyOf[T any](items []T) []any {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return list
}

// appendJSON writes any value of an expression as JSON. Numbers keep their
// exact text, doubles are their shortest decimal text (decision D2), and texts
// become valid UTF-8 without U+0000 (decision D35). It stops just behind the
// depth that engine.ParseObject allows, so that what is nested without end is
// refused there and costs nothing here.
func appendJSON(dst []byte, value any, depth int) []byte {
	if depth > engine.MaxObjectDepth+1 {
		return append(dst, "null"...)
	}
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case json.Number:
		return append(dst, v...)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendFloat(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case map[string]any:
		return appendObject(dst, v, depth)
	case pcommon.Map:
		return appendObject(dst, v.AsRaw(), depth)
	case []any, pcommon.Slice, []string, []int64:
		return appendList(dst, listOf(v), depth)
	case pcommon.Value:
		return appendJSON(dst, v.AsRaw(), depth)
	}
	if text, err := textOf(value); err == nil {
		return appendString(dst, text)
	}
	return appendString(dst, fmt.Sprint(value))
}

func appendList(dst []byte, list []any, depth int) []byte {
	dst = append(dst, '[')
	for i, item := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendJSON(dst, item, depth+1)
	}
	return append(dst, ']')
}

// appendObject sorts the names, so that what is wrong with an object is said
// of the same name every time.
func appendObject(dst []byte, object map[string]any, depth int) []byte {
	dst = append(dst, '{')
	for i, name := range sortedNames(object) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = appendJSON(dst, object[name], depth+1)
	}
	return append(dst, '}')
}

// sortedNames keeps the order of evaluation, and with it that of errors, the same.
func sortedNames[T any](values map[string]T) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func appendFloat(dst []byte, v float64) []byte {
	text, err := floatText(v)
	if err != nil {
		return appendString(dst, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return append(dst, text...)
}

func appendString(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(text[i:])
			dst = utf8.AppendRune(dst, r) // U+FFFD for what is not valid
			i += size
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == 0:
			dst = utf8.AppendRune(dst, utf8.RuneError)
		case c < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// clip bounds what is written on telemetry: errors of expressions may repeat what was sent.
func clip(text string) string {
	const most = 1024
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
