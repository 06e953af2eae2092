package ottlvalue

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
)

// throughText is the way by JSON text, which Object has to agree with: what it
// gives is what reads back from a ledger.
func throughText(t *rapid.T, value any) (engine.Object, error) {
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return engine.ParseObject(text)
}

// drawAny draws a value in the types of OTTL, and the same in those of encoding/json.
func drawAny(t *rapid.T, depth int) (given, same any) {
	kinds := 8
	if depth <= 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return nil, nil
	case 1:
		b := rapid.Bool().Draw(t, "bool")
		return b, b
	case 2:
		n := rapid.Int64().Draw(t, "int")
		return n, n
	case 3:
		n := json.Number(rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,5})?`).Draw(t, "number"))
		return n, n
	case 4:
		f := rapid.Float64Range(-1e20, 1e20).Draw(t, "double")
		text, err := floatText(f)
		if err != nil {
			t.Fatal(err)
		}
		return f, json.Number(text)
	case 5:
		s := rapid.String().Draw(t, "text")
		return s, strings.ReplaceAll(s, "\x00", "\uFFFD")
	case 6:
		given, same := []any{}, []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			g, s := drawAny(t, depth-1)
			given, same = append(given, g), append(same, s)
		}
		return given, same
	case 7:
		return drawPdata(t)
	}
	return drawMap(t, depth)
}

func drawMap(t *rapid.T, depth int) (given, same map[string]any) {
	given, same = map[string]any{}, map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := rapid.SampledFrom([]string{"a", "A", "amount", "ü", "😀", "b\n", "x/y"}).Draw(t, "name")
		given[name], same[name] = drawAny(t, depth-1)
	}
	return given, same
}

// drawPdata draws a structure of OTLP.
func drawPdata(t *rapid.T) (given any, same map[string]any) {
	m := pcommon.NewMap()
	same = map[string]any{}
	if rapid.Bool().Draw(t, "text") {
		m.PutStr("text", "ü")
		same["text"] = "ü"
	}
	if rapid.Bool().Draw(t, "int") {
		m.PutInt("int", math.MinInt64)
		same["int"] = int64(math.MinInt64)
	}
	if rapid.Bool().Draw(t, "list") {
		list := m.PutEmptySlice("list")
		list.AppendEmpty().SetDouble(0.1)
		list.AppendEmpty().SetBool(true)
		list.AppendEmpty()
		list.AppendEmpty().SetEmptyMap().PutEmptyBytes("bytes").FromRaw([]byte{1, 2})
		same["list"] = []any{json.Number("0.1"), true, nil, map[string]any{"bytes": "AQI="}}
	}
	if rapid.Bool().Draw(t, "wrapped") {
		v := pcommon.NewValueMap()
		m.CopyTo(v.Map())
		return v, same
	}
	return m, same
}

// TestObjectIsWhatItsTextReadsAs for any value, and is refused where that is.
func TestObjectIsWhatItsTextReadsAs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		given, same := drawMap(t, 4)
		got, err := Object(given)
		want, wantErr := throughText(t, same)
		if (err == nil) != (wantErr == nil) {
			t.Fatalf("%v: %v, through text %v", given, err, wantErr)
		}
		if err != nil && !errors.Is(err, engine.ErrObject) {
			t.Fatal(err)
		}
		if got.Text() != want.Text() || got.Canonical() != want.Canonical() {
			t.Fatalf("got  %s\nwant %s", got.Text(), want.Text())
		}
	})
}

func TestObjectOfWhatIsRarelyMet(t *testing.T) {
	t.Parallel()
	twice := pcommon.NewMap()
	twice.PutStr("a", "1")
	if err := twice.FromRaw(map[string]any{"a": 1, "A": 2}); err != nil {
		t.Fatal(err)
	}
	endless := map[string]any{}
	endless["again"] = endless
	for name, c := range map[string]struct {
		given any
		want  string
	}{
		"nothing":       {nil, "null"},
		"not a number":  {map[string]any{"n": math.NaN(), "i": math.Inf(1), "m": []float64{math.Inf(-1), 1e21}}, `{"i":"+Inf","m":["-Inf",1000000000000000000000],"n":"NaN"}`},
		"bytes":         {map[string]any{"b": []byte{0xff}, "c": pcommon.NewByteSlice()}, `{"b":"/w==","c":""}`},
		"typed lists":   {map[string]any{"a": []string{"x"}, "b": []int64{1}, "c": []bool{true}, "d": 7}, `{"a":["x"],"b":[1],"c":[true],"d":7}`},
		"ids":           {map[string]any{"t": pcommon.TraceID{1}, "s": pcommon.SpanID{2}}, `{"s":"0200000000000000","t":"01000000000000000000000000000000"}`},
		"broken text":   {map[string]any{"a\xff": "\x00b\xff"}, `{"a` + "\uFFFD" + `":"` + "\uFFFDb\uFFFD" + `"}`},
		"unknown types": {map[string]any{"c": struct{ N int }{1}}, `{"c":"{1}"}`},
		"no number":     {map[string]any{"n": json.Number("0x10")}, `invalid JSON object: /n is no number: "0x10"`},
		"no map":        {[]any{1}, "invalid JSON object: the document is not an object; send {...}"},
		"names twice":   {twice, "invalid JSON object: /a stands twice in one object; keep one"},
		"without end":   {endless, "invalid JSON object: " + strings.Repeat("/again", engine.MaxObjectDepth) + " is nested deeper than 16 levels"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := Object(c.given)
			got := o.Text()
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
