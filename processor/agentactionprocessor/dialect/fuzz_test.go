package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// storableValue fails when a value is not what every store takes: nested too
// deep, a number that is none, text with broken UTF-8 or U+0000.
func storableValue(t *testing.T, v any, depth int) {
	t.Helper()
	if depth > MaxDepth+1 {
		t.Fatal("nested too deep")
	}
	switch v := v.(type) {
	case nil, bool:
	case json.Number:
		if !json.Valid([]byte(v)) {
			t.Fatalf("%q is no number", v)
		}
	case string:
		if !storable(v) {
			t.Fatalf("%q cannot be stored", v)
		}
	case []any:
		for _, item := range v {
			storableValue(t, item, depth+1)
		}
	case map[string]any:
		for key, item := range v {
			storableValue(t, key, depth+1)
			storableValue(t, item, depth+1)
		}
	default:
		t.Fatalf("%T is no JSON value", v)
	}
}

func FuzzPythonLiteral(f *testing.F) {
	for _, seed := range []string{
		`{'city': 'Paris', 'n': [1, 2.5, -3e+10], "q": 'it\'s', 't': (1,), 's': {1, 2}, 'x': None, 'y': True}`,
		`{'amount': Decimal('12.50'), 'when': datetime.datetime(2026, 1, 1)}`,
		`{'a': '\x41\u00e9\U0001f600\ud800\n'}`, `set()`, `((((`, `{1: 'a', '1': 'b'}`, `nan`, `-`, `'\U00110000'`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parsePython(text)
		if err != nil {
			return
		}
		storableValue(t, v, 0)
		// what was read, written as JSON, reads the same
		again, err := parseJSON(textOf(v))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(v, again) {
			t.Fatalf("%#v became %#v", v, again)
		}
	})
}

// FuzzArguments holds the JSON reader against the standard library's, and
// what becomes of arguments against what stores take.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{
		`{"city":"Paris","amount":12.50}`, `"{\"a\":1}"`, `Paris`, `{"a":1,"a":2}`, `{"a":NaN}`, `[1,2]`, `{'city': 'Paris'}`,
		`{"input_str":"{'a': 1}","inputs":{"a":1},"metadata":{},"kwargs":{"tool_call_id":"x"}}`,
		`{"args":["{\"a\":1}"]}`, `{"args":[],"kwargs":{}}`, `{"tool_name":"x","arguments":{}}`, `{"input":"{'a': 1}"}`,
		`{"type":"tool","data":{"tool_call_id":"x","content":"{}"}}`, `"\ud83d\ude00\ud800"`, `"\u0000"`, "\xff", `<REDACTED>`, strings.Repeat("[", 100),
	} {
		f.Add(seed)
	}
	open := append(traceloop.envelopes(nil), inputEnvelope, kwargsEnvelope)
	f.Fuzz(func(t *testing.T, text string) {
		sameAsStandard(t, text)
		for _, unwrap := range []envelopes{nil, open} {
			got := understandArguments(reportedText(text), unwrap)
			if _, ok := got.Value.(map[string]any); got.State == Present && !got.Truncated && !ok {
				t.Fatalf("%T is no object", got.Value)
			}
			storableValue(t, got.Value, 0)
			envelopeCallID(got.outer)
		}
		result := understandResult(reportedText(text))
		storableValue(t, result.Value, 0)
		if m, ok := toolMessage(result.outer); ok {
			storableValue(t, m.answer(), 0)
		}
		saysError(result.outer)
	})
}

// sameAsStandard: what both readers take, they read alike; what only one
// takes has a reason.
func sameAsStandard(t *testing.T, text string) {
	t.Helper()
	ours, err := parseJSON(text)
	var theirs any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	theirErr := decoder.Decode(&theirs)
	if theirErr == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			theirErr = errors.New("trailing text")
		}
	}
	switch {
	case err == nil && theirErr == nil:
		if !reflect.DeepEqual(ours, theirs) {
			t.Fatalf("%q: read %#v, the standard library %#v", text, ours, theirs)
		}
	case err == nil:
		if !strings.Contains(text, "NaN") && !strings.Contains(text, "Infinity") {
			t.Fatalf("%q: read, the standard library says %v", text, theirErr)
		}
	case theirErr == nil:
		for _, reason := range []string{"stands twice", "U+0000", "nested deeper", "UTF-8"} {
			if strings.Contains(err.Error(), reason) {
				return
			}
		}
		t.Fatalf("%q: %v, the standard library reads it", text, err)
	}
}

// FuzzSpan feeds whole batches, as protobuf and as JSON, spans and logs.
func FuzzSpan(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(samples, "[a-z]*.json"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no samples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
		if bytes.Contains(text, []byte("resourceLogs")) {
			continue
		}
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(text)
		if err != nil {
			f.Fatal(err)
		}
		proto, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(proto)
	}
	r := everything(f)
	f.Fuzz(func(t *testing.T, batch []byte) {
		if td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(batch); err == nil {
			checkBatch(t, r.Traces(td))
			checkAlone(t, r, td)
		}
		if td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(batch); err == nil {
			checkBatch(t, r.Traces(td))
			checkAlone(t, r, td)
		}
		if ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(batch); err == nil {
			checkBatch(t, r.Logs(ld))
		}
		if ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(batch); err == nil {
			checkBatch(t, r.Logs(ld))
		}
	})
}

// checkAlone: every call of a batch is one on its own, and no span is lost.
func checkAlone(t *testing.T, r *Recognizer, td ptrace.Traces) {
	t.Helper()
	alone := 0
	eachSpan(td, noMarks, func(_ marks, p place) {
		if _, ok := r.Span(p.resource, p.scope, p.span); ok {
			alone++
		}
	})
	together := 0
	for _, call := range r.Traces(td).Calls {
		together += 1 + len(call.Merged)
	}
	if alone != together {
		t.Fatalf("%d calls span by span, %d in the batch", alone, together)
	}
}

func checkBatch(t *testing.T, b Batch) {
	t.Helper()
	for _, call := range b.Complete().Calls {
		storableValue(t, call.Arguments.Value, 0)
		storableValue(t, call.Result.Value, 0)
		for _, text := range []string{call.Tool, call.CallID, call.Agent, call.Session, call.Workflow, call.MCPSession} {
			if textProblem(text) != "" {
				t.Fatalf("%q %s", text, textProblem(text))
			}
		}
		if call.Dialect == "" || call.Outcome == "" || len(call.Problems) > maxProblems {
			t.Fatalf("%+v", call.ToolCall)
		}
	}
	for _, c := range b.Contexts {
		if c.Agent == "" && c.Session == "" || textProblem(c.Agent) != "" || textProblem(c.Session) != "" {
			t.Fatalf("%+v", c)
		}
	}
}
