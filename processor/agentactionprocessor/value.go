package agentactionprocessor

import (
	"encoding/json"
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

// plain turns a JSON value of a call into what OTTL computes with. A whole
// number becomes an int64 and a decimal a float64 where that loses nothing;
// any other number stays as text, which still reads as the same number.
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

// textOf is the text of a scalar that an expression gave: an id, a channel.
// It is empty for nil, and an error for what is no scalar.
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
		return textOfAttribute(v)
	}
	return "", fmt.Errorf("it is a %s; text or a number is needed", kindOf(value))
}

func textOfAttribute(v pcommon.Value) (string, error) {
	switch v.Type() {
	case pcommon.ValueTypeMap, pcommon.ValueTypeSlice, pcommon.ValueTypeBytes:
		return "", fmt.Errorf("it is a %s; text or a number is needed", strings.ToLower(v.Type().String()))
	case pcommon.ValueTypeDouble:
		return floatText(v.Double())
	}
	return v.AsString(), nil
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
	}
	return fmt.Sprintf("%T", value)
}

// instantOf is a moment that an expression gave: a time, RFC 3339 text, or
// Unix nanoseconds as OTLP writes them.
func instantOf(value any) (engine.Instant, error) {
	switch v := value.(type) {
	case time.Time:
		return engine.InstantOf(v)
	case int64:
		if v < 0 {
			return 0, fmt.Errorf("%w: %d nanoseconds are before the year 1970", engine.ErrInstant, v)
		}
		return engine.InstantOfNanos(uint64(v)), nil
	case string:
		return engine.ParseInstant(v)
	case json.Number:
		nanos, err := strconv.ParseInt(v.String(), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %.40q are no whole nanoseconds", engine.ErrInstant, v.String())
		}
		return instantOf(nanos)
	}
	return 0, fmt.Errorf("it is a %s; a time, RFC 3339 text or Unix nanoseconds are needed", kindOf(value))
}

// appendJSON writes any value of a call or of an expression as JSON. Numbers
// keep their exact text, doubles are their shortest decimal text (decision
// D2), and texts become valid UTF-8 without U+0000 (decision D35). It stops
// within a few levels behind the depth that engine.ParseObject allows, so that what
// is nested without end is refused there and costs nothing here.
func appendJSON(dst []byte, value any, depth int) []byte {
	if depth > engine.MaxObjectDepth+1 {
		return append(dst, "null"...)
	}
	switch v := value.(type) {
	case nil:
		return append(dst, "null"...)
	case string:
		return appendString(dst, v)
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
	case []any:
		return appendList(dst, v, depth)
	}
	return appendOther(dst, value, depth)
}

// appendOther writes what OTTL hands out beside plain values.
func appendOther(dst []byte, value any, depth int) []byte {
	switch v := value.(type) {
	case pcommon.Map:
		return appendObject(dst, v.AsRaw(), depth)
	case pcommon.Slice:
		return appendList(dst, v.AsRaw(), depth)
	case pcommon.Value:
		return appendJSON(dst, v.AsRaw(), depth)
	case []string:
		return appendItems(dst, v, depth)
	case []int64:
		return appendItems(dst, v, depth)
	case []float64:
		return appendItems(dst, v, depth)
	case []bool:
		return appendItems(dst, v, depth)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	}
	if text, err := textOf(value); err == nil {
		return appendString(dst, text)
	}
	return appendString(dst, fmt.Sprint(value))
}

func appendItems[T any](dst []byte, items []T, depth int) []byte {
	list := make([]any, len(items))
	for i, item := range items {
		list[i] = item
	}
	return appendList(dst, list, depth)
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
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	slices.Sort(names)
	dst = append(dst, '{')
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = appendJSON(dst, object[name], depth+1)
	}
	return append(dst, '}')
}

func appendFloat(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return appendString(dst, strconv.FormatFloat(v, 'g', -1, 64))
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
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
