package dialect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// TestD33_SentinelsAreNotCaptured: they are compared whole, before parsing.
func TestD33_SentinelsAreNotCaptured(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"None", "N/A", "<REDACTED>", "__REDACTED__", "<not serializable>", "null", "", "[Scrubbed due to 'session']"} {
		if got := understandArguments(reportedText(text), nil); got.State != NotCaptured || got.Raw != "" {
			t.Errorf("arguments %q: %+v, expected not captured", text, got)
		}
	}
	for _, text := range []string{"<REDACTED>", "__REDACTED__", "<not specified>", "<not serializable>"} {
		if got := understandResult(reportedText(text)); got.State != NotCaptured {
			t.Errorf("result %q: %+v, expected not captured", text, got)
		}
	}
	for _, text := range []string{"{}", `"None"`, "none", " N/A"} {
		if got := understandArguments(reportedText(text), nil); got.State != Present {
			t.Errorf("arguments %q: not captured, expected to be present", text)
		}
	}
}

func TestArgumentsBecomeAnObject(t *testing.T) {
	t.Parallel()
	city := object{"city": "Paris"}
	traceloopEnvelopes := traceloop.envelopes(nil)
	tests := []struct {
		name string
		text string
		open envelopes
		want object
	}{
		{"JSON", `{"city":"Paris"}`, nil, city},
		{"Python", `{'city': 'Paris'}`, nil, city},
		{"JSON in JSON", `"{\"city\":\"Paris\"}"`, nil, city},
		{"Python in JSON", `"{'city': 'Paris'}"`, nil, city},
		{"empty", `{}`, nil, object{}},
		{"text", `Paris`, nil, object{"_raw": "Paris"}},
		{"quoted text", `"Paris"`, nil, object{"_raw": "Paris"}},
		{"list", `[1, 2.50]`, nil, object{"_raw": "[1, 2.50]"}},
		{"number", `12.50`, nil, object{"_raw": "12.50"}},
		{"key twice", `{"a":1,"b":3,"a":2}`, nil, object{"b": json.Number("3")}},
		{"cut JSON", `{"a":1,"b`, nil, object{"_raw": `{"a":1,"b`}},
		{"not-a-number beside money", `{"a":NaN,"b":12.50}`, nil, object{"a": "NaN", "b": json.Number("12.50")}},
		{"broken UTF-8 and U+0000", "\xff\x00", nil, object{"_raw": "\uFFFD\uFFFD"}},
		{"four times JSON", quoted(quoted(quoted(`{"a":1}`))), nil, object{"a": json.Number("1")}},
		{"too often JSON", quoted(quoted(quoted(quoted(`{"a":1}`)))), nil, object{"_raw": quoted(`{"a":1}`)}},

		{"genai keeps input", `{"input":"x"}`, nil, object{"input": "x"}},
		{"genai keeps kwargs", `{"kwargs":{"a":"x"}}`, nil, object{"kwargs": object{"a": "x"}}},
		{"genai keeps args", `{"args":["{}"]}`, nil, object{"args": []any{"{}"}}},

		{"LangChain's inputs", `{"input_str":"x","inputs":{"city":"Paris"},"tags":[]}`, traceloopEnvelopes, city},
		{"LangChain's text", `{"input_str":"{'city': 'Paris'}","metadata":{}}`, traceloopEnvelopes, city},
		{"LangChain's plain text", `{"input_str":"Paris","metadata":{}}`, traceloopEnvelopes, object{"_raw": "Paris"}},
		{"a parameter named input_str", `{"input_str":"x"}`, traceloopEnvelopes, object{"input_str": "x"}},
		{"kwargs", `{"args":[],"kwargs":{"city":"Paris"}}`, traceloopEnvelopes, city},
		{"positional arguments", `{"args":["Paris"],"kwargs":{}}`, traceloopEnvelopes, object{"args": []any{"Paris"}, "kwargs": object{}}},
		{"JavaScript", `{"args":["{\"city\":\"Paris\"}"]}`, traceloopEnvelopes, city},
		{"JavaScript, one text", `{"args":["Paris"]}`, traceloopEnvelopes, object{"args": []any{"Paris"}}},
		{"MCP", `{"tool_name":"get_weather","arguments":{"city":"Paris"}}`, traceloopEnvelopes, city},
		{"a tool that calls tools", `{"args":[],"kwargs":{"tool_name":"x","arguments":{}}}`, traceloopEnvelopes, object{"tool_name": "x", "arguments": object{}}},

		{"LangSmith", `{"input":"{'city': 'Paris'}"}`, envelopes{inputEnvelope}, city},
		{"LangSmith, object", `{"input":{"city":"Paris"}}`, envelopes{inputEnvelope}, city},
		{"LangSmith, a parameter named input", `{"input":"{'input': 'Paris'}"}`, envelopes{inputEnvelope}, object{"input": "Paris"}},
		{"LangSmith, two members", `{"input":"x","other":1}`, envelopes{inputEnvelope}, object{"input": "x", "other": json.Number("1")}},
		{"LlamaIndex", `{"kwargs":{"city":"Paris"}}`, envelopes{kwargsEnvelope}, city},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := understandArguments(reportedText(test.text), test.open)
			if diff := cmp.Diff(any(test.want), got.Value); diff != "" {
				t.Error(diff)
			}
			if got.Raw != test.text || got.RawSHA256 != "" || got.Bytes != len(test.text) || got.Truncated {
				t.Errorf("raw %q, hash %s, %d bytes, truncated %v", got.Raw, got.RawSHA256, got.Bytes, got.Truncated)
			}
		})
	}
}

func quoted(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func TestD35_LargeValuesAreHashedNotParsed(t *testing.T) {
	t.Parallel()
	fits := `{"a":"` + strings.Repeat("x", MaxValueBytes-8) + `"}`
	if got := understandArguments(reportedText(fits), nil); got.Truncated || got.Value == nil {
		t.Errorf("%d bytes: not parsed", len(fits))
	}
	large := fits + " "
	got := understandArguments(reportedText(large), nil).Captured
	want := Captured{State: Present, RawSHA256: sum(large), Bytes: MaxValueBytes + 1, Truncated: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	result := understandResult(reportedText(large)).Captured
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
}

func structure(t *testing.T, v any) reported {
	t.Helper()
	value := pcommon.NewValueEmpty()
	if err := value.FromRaw(v); err != nil {
		t.Fatal(err)
	}
	return reportedValue(value, true)
}

func TestStructuresKeepNumbers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   any
		want any
		raw  string
	}{
		{12.5, json.Number("12.5"), `{"x":12.5}`},
		{18.0, json.Number("18"), `{"x":18}`},
		{0.1, json.Number("0.1"), `{"x":0.1}`},
		{1e300, json.Number("1e+300"), `{"x":1e+300}`},
		{1e-7, json.Number("1e-07"), `{"x":1e-07}`},
		{int64(9007199254740993), json.Number("9007199254740993"), `{"x":9007199254740993}`},
		{math.NaN(), "NaN", `{"x":"NaN"}`},
		{math.Inf(1), "Infinity", `{"x":"Infinity"}`},
		{math.Inf(-1), "-Infinity", `{"x":"-Infinity"}`},
		{true, true, `{"x":true}`},
		{nil, nil, `{"x":null}`},
		{[]byte("ab"), "YWI=", `{"x":"YWI="}`},
		{"a\"\\\n<é", "a\"\\\n<é", `{"x":"a\"\\\u000a<é"}`},
		{[]any{"a", object{}}, []any{"a", object{}}, `{"x":["a",{}]}`},
	}
	for _, test := range tests {
		got := understandArguments(structure(t, object{"x": test.in}), nil)
		if diff := cmp.Diff(any(object{"x": test.want}), got.Value); diff != "" {
			t.Errorf("%v: %s", test.in, diff)
		}
		if got.Raw != test.raw || got.RawSHA256 != "" {
			t.Errorf("%v: raw %s, expected %s", test.in, got.Raw, test.raw)
		}
		if !json.Valid([]byte(got.Raw)) {
			t.Errorf("%v: raw %s is no JSON", test.in, got.Raw)
		}
	}
}

func TestStructuresBreakingLimits(t *testing.T) {
	t.Parallel()
	large := understandArguments(structure(t, object{"x": strings.Repeat("y", MaxValueBytes)}), nil)
	text := `{"x":"` + strings.Repeat("y", MaxValueBytes) + `"}`
	want := Captured{State: Present, RawSHA256: sum(text), Bytes: len(text), Truncated: true}
	if diff := cmp.Diff(want, large.Captured); diff != "" {
		t.Error(diff)
	}

	deep := pcommon.NewValueMap()
	at := deep.Map()
	for range 10_000 {
		at = at.PutEmptyMap("x")
	}
	got := understandArguments(reportedValue(deep, true), nil)
	if !got.Truncated || got.Value != nil || got.Raw != "" || len(got.RawSHA256) != 64 {
		t.Errorf("10000 deep: %+v, expected to be truncated", got.Captured)
	}

	list := understandArguments(structure(t, []any{"a"}), nil)
	if diff := cmp.Diff(any(object{"_raw": `["a"]`}), list.Value); diff != "" {
		t.Error(diff)
	}
	zero := understandArguments(structure(t, object{"x": "a\x00"}), nil)
	if diff := cmp.Diff(any(object{"x": "a\uFFFD"}), zero.Value); diff != "" {
		t.Error(diff)
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]any{
		`{"temp_c":18.0}`:   object{"temp_c": json.Number("18.0")},
		`{'temp_c': 18.0}`:  object{"temp_c": json.Number("18.0")},
		`18C and sunny`:     "18C and sunny",
		`None`:              "None",
		`[1]`:               []any{json.Number("1")},
		``:                  "",
		`{"a":1,"a":2}`:     `{"a":1,"a":2}`,
		"broken \xff\x00":   "broken \uFFFD\uFFFD",
		`content='x' id=()`: `content='x' id=()`,
	} {
		got := understandResult(reportedText(text))
		if diff := cmp.Diff(want, got.Value); diff != "" || got.State != Present {
			t.Errorf("%q: %s", text, diff)
		}
	}
}
