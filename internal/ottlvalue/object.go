package ottlvalue

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Object makes an engine.Object of a map of any values that OTTL hands out.
// Numbers keep their exact text, doubles are their shortest decimal text
// (decision D2), byte strings are base64, and texts become valid UTF-8 without
// U+0000. Nil gives the zero Object. Errors wrap engine.ErrObject and name the
// JSON pointer (decision D35).
func Object(value any) (engine.Object, error) { return engine.NewObject(valueOf(value, 0)) }

// Member is one of an Object's values, with what Object says of values.
func Member(value any) engine.Value { return valueOf(value, 1) }

// Members are those of an Object, in any order, with room for more.
func Members(object map[string]any, more int) []engine.Member { return membersOf(object, 0, more) }

func membersOf(object map[string]any, depth, more int) []engine.Member {
	members := make([]engine.Member, 0, len(object)+more)
	for name, item := range object {
		members = append(members, engine.Member{Name: storable(name), Value: valueOf(item, depth+1)})
	}
	return members
}

// valueOf stops just behind the depth that an Object may have: what is nested
// without end is refused there and costs nothing here.
func valueOf(value any, depth int) engine.Value {
	if depth > engine.MaxObjectDepth+1 {
		return engine.NullValue()
	}
	switch v := value.(type) {
	case nil:
		return engine.NullValue()
	case string:
		return engine.StringValue(storable(v))
	case json.Number:
		return engine.NumberValue(v.String())
	case bool:
		return engine.BoolValue(v)
	case map[string]any:
		return engine.MapValue(membersOf(v, depth, 0))
	case []any:
		return arrayOf(v, depth)
	case int64:
		return engine.NumberValue(strconv.FormatInt(v, 10))
	case float64:
		return doubleOf(v)
	}
	return otherOf(value, depth)
}

// otherOf is what is rarely met.
func otherOf(value any, depth int) engine.Value {
	switch v := value.(type) {
	case pcommon.Value:
		return valueOf(inner(v), depth)
	case pcommon.Map:
		members := make([]engine.Member, 0, v.Len())
		for name, item := range v.All() {
			members = append(members, engine.Member{Name: storable(name), Value: valueOf(inner(item), depth+1)})
		}
		return engine.MapValue(members)
	case pcommon.Slice:
		items := make([]engine.Value, 0, v.Len())
		for _, item := range v.All() {
			items = append(items, valueOf(inner(item), depth+1))
		}
		return engine.ArrayValue(items)
	case pcommon.ByteSlice:
		return bytesOf(v.AsRaw())
	case []byte:
		return bytesOf(v)
	case []string:
		return arrayOf(v, depth)
	case []int64:
		return arrayOf(v, depth)
	case []float64:
		return arrayOf(v, depth)
	case []bool:
		return arrayOf(v, depth)
	case int:
		return engine.NumberValue(strconv.Itoa(v))
	}
	if text, err := Text(value); err == nil {
		return engine.StringValue(storable(text))
	}
	return engine.StringValue(storable(fmt.Sprint(value)))
}

func arrayOf[T any](list []T, depth int) engine.Value {
	items := make([]engine.Value, len(list))
	for i := range list {
		items[i] = valueOf(list[i], depth+1)
	}
	return engine.ArrayValue(items)
}

func bytesOf(b []byte) engine.Value {
	return engine.StringValue(base64.StdEncoding.EncodeToString(b))
}

// doubleOf is a number, or a text for what is none.
func doubleOf(v float64) engine.Value {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return engine.StringValue(strconv.FormatFloat(v, 'g', -1, 64))
	}
	return engine.NumberValue(strconv.FormatFloat(v, 'f', -1, 64))
}

// storable is text that any store takes (decision D35).
func storable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexByte(text, 0) < 0 {
		return text
	}
	return strings.ReplaceAll(text, "\x00", "\uFFFD")
}
