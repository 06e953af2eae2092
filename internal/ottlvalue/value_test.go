package ottlvalue

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// said is a result, or what was wrong.
func said[T any](value T, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(value)
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		given any
		want  string
	}{
		{nil, ""},
		{"a", "a"},
		{json.Number("180.50"), "180.50"},
		{int64(7), "7"},
		{0.1, "0.1"},
		{1e21, "1000000000000000000000"},
		{math.NaN(), "it is NaN; text or a number is needed"},
		{true, "true"},
		{pcommon.TraceID{1}, "01000000000000000000000000000000"},
		{pcommon.SpanID{1}, "0100000000000000"},
		{time.Date(2026, 9, 28, 12, 42, 0, 5, time.FixedZone("", 7200)), "2026-09-28T10:42:00.000000005Z"},
		{pcommon.NewValueDouble(0.1), "0.1"},
		{pcommon.NewValueInt(-3), "-3"},
		{pcommon.NewValueEmpty(), ""},
		{pcommon.NewValueMap(), "it is a map; text or a number is needed"},
		{pcommon.NewValueBytes(), "it is a byte string; text or a number is needed"},
		{[]any{}, "it is a list; text or a number is needed"},
		{struct{}{}, "it is a struct {}; text or a number is needed"},
	} {
		if got := said(Text(c.given)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.given, got, c.want)
		}
	}
}

func TestInstant(t *testing.T) {
	t.Parallel()
	noUnit := "it is a number, which could be seconds, milliseconds or nanoseconds; say which, like Unix(...) for seconds"
	for _, c := range []struct {
		given any
		want  string
	}{
		{time.Unix(1790592120, 999), "2026-09-28T10:42:00Z"},
		{"2026-09-28T12:42:00.9+02:00", "2026-09-28T10:42:00Z"},
		{pcommon.NewValueStr("2026-09-28T10:42:00Z"), "2026-09-28T10:42:00Z"},
		{"now", `invalid time: "now" is not an RFC 3339 time like 2026-09-28T10:42:00Z`},
		{int64(1790592120), noUnit},
		{pcommon.NewValueDouble(1), noUnit},
		{json.Number("1"), noUnit},
		{true, "it is a boolean; a time or RFC 3339 text is needed"},
	} {
		if got := said(Instant(c.given)); got != c.want {
			t.Errorf("%v: got %s, want %s", c.given, got, c.want)
		}
	}
}

func TestListsAndMaps(t *testing.T) {
	t.Parallel()
	slice, object := pcommon.NewValueSlice(), pcommon.NewValueMap()
	slice.Slice().AppendEmpty().SetStr("a")
	object.Map().PutInt("a", 1)
	for _, c := range []struct {
		given any
		list  []any
		isMap bool
	}{
		{nil, nil, true},
		{"a", []any{"a"}, false},
		{[]any{"a", 1}, []any{"a", 1}, false},
		{[]string{"a"}, []any{"a"}, false},
		{[]int64{1}, []any{int64(1)}, false},
		{[]float64{1}, []any{1.0}, false},
		{[]bool{true}, []any{true}, false},
		{slice, []any{"a"}, false},
		{object, []any{map[string]any{"a": int64(1)}}, true},
		{object.Map(), []any{map[string]any{"a": int64(1)}}, true},
		{map[string]any{"a": 1}, []any{map[string]any{"a": 1}}, true},
	} {
		if diff := cmp.Diff(c.list, List(c.given)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.given, diff)
		}
		if _, ok := Map(c.given); ok != c.isMap {
			t.Errorf("%v: a map is %v", c.given, ok)
		}
	}
}

func TestAHoleIsNoValue(t *testing.T) {
	t.Parallel()
	if err := Complete("order_<nil>"); !errors.Is(err, ErrPartMissing) {
		t.Errorf("got %v", err)
	}
	for _, whole := range []any{nil, "order_7", int64(7)} {
		if err := Complete(whole); err != nil {
			t.Errorf("%v: %v", whole, err)
		}
	}
}

// TestComputableLosesNoDigit: what OTTL gets reads as the number that was sent.
func TestComputableLosesNoDigit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		got, err := Text(Computable(json.Number(text)))
		if err != nil {
			t.Fatal(err)
		}
		want, ok := engine.ReadDecimal(text)
		if !ok {
			if got != text {
				t.Fatalf("%s became %s", text, got)
			}
			return
		}
		if read, ok := engine.ReadDecimal(got); !ok || read.Cmp(want) != 0 {
			t.Fatalf("%s became %s", text, got)
		}
	})
	got := Computable(map[string]any{"a": []any{json.Number("1"), json.Number("0.5"), "x", json.Number("12345678901234567890123")}})
	if diff := cmp.Diff(map[string]any{"a": []any{int64(1), 0.5, "x", "12345678901234567890123"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
