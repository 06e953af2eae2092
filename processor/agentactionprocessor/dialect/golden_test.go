package dialect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const samples = "testdata/spans"

// everything recognises all dialects, experimental ones too.
func everything(t testing.TB) *Recognizer {
	t.Helper()
	var names []string
	for _, info := range Names() {
		names = append(names, info.Name)
	}
	r, err := New(names...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decode(t testing.TB, text []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(samples, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func sampleTraces(t testing.TB, name string) ptrace.Traces {
	t.Helper()
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(readFile(t, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return td
}

func sampleLogs(t testing.TB, name string) plog.Logs {
	t.Helper()
	ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(readFile(t, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return ld
}

func sampleBatch(t testing.TB, r *Recognizer, name string) Batch {
	t.Helper()
	if strings.HasSuffix(name, "-logs") {
		return r.Logs(sampleLogs(t, name))
	}
	return r.Traces(sampleTraces(t, name))
}

// asWritten gives a call the form that _expected.json has. Null there means
// not captured.
func asWritten(call Call) map[string]any {
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	m := map[string]any{
		"tool":        text(call.Tool),
		"call_id":     text(call.CallID),
		"args":        nil,
		"result":      call.Result.Value,
		"outcome":     string(call.Outcome),
		"agent":       text(call.Agent),
		"session":     text(call.Session),
		"workflow":    text(call.Workflow),
		"mcp_session": text(call.MCPSession),
		"mcp_server":  text(call.MCPServer),
	}
	if call.Arguments.State == Present {
		m["args"] = call.Arguments.Value
	}
	if !call.SpanID.IsEmpty() {
		m["span_id"] = call.SpanID.String()
	}
	return m
}

func TestSamplesComeOutAsExpected(t *testing.T) {
	t.Parallel()
	var expected map[string][]map[string]any
	decode(t, readFile(t, "_expected.json"), &expected)
	if len(expected) != 24 {
		t.Fatalf("expected 24 samples, _expected.json has %d", len(expected))
	}
	r := everything(t)
	for name, want := range expected {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			batch := sampleBatch(t, r, name).Complete()
			found := map[any]map[string]any{}
			for _, call := range batch.Calls {
				if call.Problems != nil {
					t.Errorf("%s: problems %q", call.SpanID, call.Problems)
				}
				found[identity(asWritten(call))] = asWritten(call)
			}
			if len(batch.Calls) != len(want) {
				t.Errorf("found %d calls, expected %d", len(batch.Calls), len(want))
			}
			for _, entry := range want {
				got := found[identity(entry)]
				for field := range got {
					if _, said := entry[field]; !said {
						delete(got, field)
					}
				}
				if diff := cmp.Diff(entry, got); diff != "" {
					t.Errorf("%v (-expected +found):\n%s", identity(entry), diff)
				}
			}
		})
	}
}

// identity of a span is its id, of a log record its call id.
func identity(m map[string]any) any {
	if id, ok := m["span_id"]; ok {
		return id
	}
	return m["call_id"]
}

// TestDefaultsLeaveExperimentalDialectsOut. Dify's spans are found without
// its dialect too: they have what genai recognises.
// TestEveryDialectHasASample in which it comes first. agent.action.* has none:
// nobody's telemetry with it is at hand, so that it is off and has its test in
// TestFields.
func TestEveryDialectHasASample(t *testing.T) {
	t.Parallel()
	r := everything(t)
	files, err := filepath.Glob("testdata/spans/[a-z]*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d samples, %v", len(files), err)
	}
	sampled := map[string]bool{agentAction.Name: true}
	for _, file := range files {
		for _, call := range sampleBatch(t, r, strings.TrimSuffix(filepath.Base(file), ".json")).Calls {
			sampled[call.Dialect] = true
		}
	}
	for _, info := range Names() {
		if !sampled[info.Name] {
			t.Errorf("%s has no sample", info.Name)
		}
	}
	if agentAction.DefaultOn {
		t.Error("a dialect without a sample is on")
	}
}

func TestDefaultsLeaveExperimentalDialectsOut(t *testing.T) {
	t.Parallel()
	r, err := New()
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string][]map[string]any
	decode(t, readFile(t, "_expected.json"), &expected)
	for name, want := range expected {
		wanted := len(want)
		if name == "n8n" || name == "codex-logs" {
			wanted = 0
		}
		found := sampleBatch(t, r, name).Calls
		if len(found) != wanted {
			t.Errorf("%s: %d calls, expected %d", name, len(found), wanted)
		}
		for _, call := range found {
			if name == "dify" && call.Dialect != "genai" {
				t.Errorf("dify: found by %s", call.Dialect)
			}
		}
	}
}

var update = os.Getenv("UPDATE_GOLDEN") != ""

// TestSamplesGolden pins everything that is said of each sample, also where
// each field came from. UPDATE_GOLDEN=1 go test -run TestSamplesGolden writes
// the files anew.
func TestSamplesGolden(t *testing.T) {
	t.Parallel()
	r := everything(t)
	files, err := filepath.Glob(filepath.Join(samples, "[a-z]*.json"))
	if err != nil || len(files) != 24 {
		t.Fatalf("found %d samples (%v), expected 24", len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := describe(t, sampleBatch(t, r, name).Complete())
			golden := filepath.Join("testdata", "golden", name+".json")
			if update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("differs from %s (-want +got); if it is meant, run UPDATE_GOLDEN=1 go test -run TestSamplesGolden:\n%s", golden, diff)
			}
		})
	}
}

func describe(t testing.TB, b Batch) []byte {
	t.Helper()
	calls := []map[string]any{}
	for _, call := range b.Calls {
		m := asWritten(call)
		m["dialect"], m["sources"], m["merged"] = call.Dialect, call.Sources.Map(), len(call.Merged)
		m["start"], m["end"], m["observed"] = call.Start.AsTime(), call.End.AsTime(), uint64(call.Observed)
		calls = append(calls, m)
	}
	var contexts []map[string]any
	for _, c := range b.Contexts {
		contexts = append(contexts, map[string]any{"span_id": c.SpanID.String(), "agent": c.Agent, "session": c.Session})
	}
	skipped := map[string]string{}
	for _, s := range b.Skipped {
		skipped[s.SpanID.String()] = s.Why
	}
	text, err := json.MarshalIndent(map[string]any{"calls": calls, "contexts": contexts, "skipped": skipped}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}
