package agentactionprocessor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

const samples = "dialect/testdata/spans"

func readJSON(t *testing.T, data []byte, into any) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, path ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestTryOfEverySample compares with what must come out of each, field by
// field under the names of the command line.
func TestTryOfEverySample(t *testing.T) {
	t.Parallel()
	var expected map[string][]map[string]any
	readJSON(t, readFile(t, samples, "_expected.json"), &expected)
	renamed := map[string]string{"args": "arguments", "mcp_session": "", "mcp_server": "", "workflow": ""}
	for name, calls := range expected {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Try(NewTryConfig(), readFile(t, samples, name+".json"))
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(found)
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			readJSON(t, text, &got)
			if len(got) != len(calls) {
				t.Fatalf("%d calls, want %d", len(got), len(calls))
			}
			for _, want := range calls {
				match := find(got, want)
				for field, value := range want {
					as, other := renamed[field]
					if !other {
						as = field
					}
					if as == "" {
						continue
					}
					if diff := cmp.Diff(value, match[as]); diff != "" {
						t.Errorf("%v: %s (-want +got):\n%s", want["span_id"], as, diff)
					}
				}
			}
		})
	}
}

// find is the call with the span id, or without one the call id, of want.
func find(calls []map[string]any, want map[string]any) map[string]any {
	key := "span_id"
	if want[key] == nil {
		key = "call_id"
	}
	for _, call := range calls {
		if call[key] == want[key] {
			return call
		}
	}
	return nil
}

func TestTryShowsWhatEveryRuleRecords(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{
		{
			Name: "refunds", Tool: "send_*", Contract: "refund_workflow", ContractVersion: 2, SubjectKind: "order",
			SubjectID: `ToolArgument("order_id")`, Channel: `"chat"`,
			Params: ParamsConfig{Values: map[string]string{"amount": `ToolArgument("amount")`}},
		},
		{Tool: "send_refund", Contract: "large_refunds", SubjectID: `ToolArgument("order_id")`, Condition: `ToolArgument("amount") > 100`},
		{Tool: "get_weather", Contract: "weather", SubjectID: `ToolArgument("order_id")`},
	}
	found, err := Try(config, readFile(t, samples, "genai-semconv.json"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(found, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, filepath.Join("testdata", "try.json"), append(got, '\n'))
}

// TestTryAgreesWithTheProcessor: what try shows is what is recorded.
func TestTryAgreesWithTheProcessor(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Rules = append(verifiedRules("SessionID()"), refundRule())
	config.Rules[2].Contract = "third_workflow"
	td := refundTraces()
	putMetadata(firstSpan(td).Attributes())
	found, err := TryTraces(config, td)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, result := range found {
		for _, rule := range result.Rules {
			if rule.Action != nil {
				shown = append(shown, rule.Action.ContractID+" "+rule.Action.ActionID)
			}
		}
	}
	var recorded []string
	for _, a := range processWith(t, td, config).Actions {
		recorded = append(recorded, a.Action.ContractID+" "+a.Action.ActionID)
	}
	if diff := cmp.Diff(recorded, shown); diff != "" {
		t.Errorf("(-recorded +shown):\n%s", diff)
	}
	if len(recorded) != 4 {
		t.Errorf("recorded %q", recorded)
	}
}

func TestTryChangesNothing(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	td := refundTraces()
	firstSpan(td).Attributes().PutStr("countersign.actions", "forged")
	td.MarkReadOnly()
	if found, err := TryTraces(config, td); err != nil || len(found) != 1 {
		t.Errorf("%v, %v", found, err)
	}
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Attributes().PutStr("countersign.x", "")
	ld.MarkReadOnly()
	if found, err := TryLogs(config, ld); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTryReadsSeveralDocuments(t *testing.T) {
	t.Parallel()
	both := append(readFile(t, samples, "genai-semconv.json"), readFile(t, samples, "claude-code-logs.json")...)
	found, err := Try(NewTryConfig(), both)
	if err != nil {
		t.Fatal(err)
	}
	dialects := map[string]int{}
	for _, result := range found {
		dialects[result.Dialect]++
	}
	if dialects["genai"] != 2 || dialects["claude_code_logs"] == 0 {
		t.Errorf("found %v", dialects)
	}
	if found, err := Try(NewTryConfig(), nil); err != nil || found == nil || len(found) != 0 {
		t.Errorf("no input: %v, %v", found, err)
	}
}

// TestTryShowsMetadataThatDoesNotRead: what the processor marks, the tool says.
func TestTryShowsMetadataThatDoesNotRead(t *testing.T) {
	t.Parallel()
	payload := `{"session_id":"s","actions":[{"type":"shell","reference_id":"r-0"},{"type":"mcp","reference_id":"r-1","server_url":"https://mcp.example.com","tool_name":"refund_order"}]}`
	traces := func(payload string) string {
		return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"` + testTrace + `","spanId":"` + testSpan + `","attributes":[` +
			`{"key":"verified_actions_version","value":{"stringValue":"1"}},{"key":"verified_actions_payload","value":{"stringValue":` + quoted(t, payload) + `}}]}]}]}]}`
	}
	logs := strings.NewReplacer("resourceSpans", "resourceLogs", "scopeSpans", "scopeLogs", `"spans"`, `"logRecords"`).Replace(traces(payload))
	shell := `actions[0]: invalid verified action: type "shell": write web, llm, mcp or integration`
	for name, tc := range map[string]struct{ input, want string }{
		"one action of two": {traces(payload), testSpan + " <nil> " + shell + "\n" + testSpan + " refund_order "},
		"the same in a log": {logs, testSpan + " <nil> " + shell + "\n" + testSpan + " refund_order "},
		"no JSON":           {traces(`{"actions":`), testSpan + " <nil> invalid verified action: the payload does not read: unexpected end of JSON input"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Try(NewDefaultConfig(), []byte(tc.input))
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, r := range found {
				tool := "<nil>"
				if r.Tool != nil {
					tool = *r.Tool
				}
				lines = append(lines, *r.SpanID+" "+tool+" "+r.Why)
			}
			slices.Sort(lines)
			if diff := cmp.Diff(tc.want, strings.Join(lines, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func quoted(t *testing.T, text string) string {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTryErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ input, want string }{
		"no JSON": {"nope", ":1:2: is not JSON: invalid character 'o' in literal null (expecting 'u'); write true, false or null, or a text in double quotes"},
		"no OTLP": {`{"spans":[]}`, ":1:1: is no OTLP/JSON: it has neither resourceSpans nor resourceLogs at the top; write what an OTLP exporter sends as JSON"},
		"a list":  {" []", ":1:2: is no OTLP/JSON: it has neither resourceSpans nor resourceLogs at the top; write what an OTLP exporter sends as JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Try(NewDefaultConfig(), []byte(tc.input))
			if err == nil || err.Error() != tc.want {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

func TestFindConfig(t *testing.T) {
	t.Parallel()
	conf := confmap.NewFromStringMap(map[string]any{"processors": map[string]any{
		"agent_action/a": map[string]any{"tenant": "acme"},
		"agent_action/b": nil,
		"agent_action/c": map[string]any{"dialects": []any{"nope"}},
		"batch":          nil,
	}})
	config, err := FindConfig(conf, "a")
	if err != nil || config.Tenant != "acme" {
		t.Errorf("%+v, %v", config, err)
	}
	if config, err = FindConfig(conf, "b"); err != nil || config.VerifiedActions.VersionKey == "" {
		t.Errorf("%+v, %v", config, err)
	}
	for name, want := range map[string]string{
		"":  "processors: there are agent_action/a and agent_action/b and agent_action/c; say which",
		"d": "processors: there is no agent_action/d",
	} {
		if _, err := FindConfig(conf, name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if _, err := FindConfig(conf, "c"); err == nil {
		t.Error("a wrong configuration is taken")
	}
	if _, err := FindConfig(confmap.New(), ""); err == nil || err.Error() != "processors: there is no agent_action" {
		t.Errorf("got %v", err)
	}
}

// FuzzTry: nothing that comes as OTLP/JSON makes the processor panic.
func FuzzTry(f *testing.F) {
	for _, name := range []string{"genai-semconv", "claude-code-logs", "strands"} {
		data, err := os.ReadFile(filepath.Join(samples, name+".json"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	config := NewTryConfig()
	config.Rules = []RuleConfig{
		{Tool: "*", Contract: "c", SubjectID: `ToolArgument("order_id")`},
		{Condition: `ToolResult("a.0") != nil`, Contract: "d", SubjectID: `Concat([ToolName(), ToolArgument("a.b")], "-")`},
	}
	p, err := newBareAnnotator(config)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = p.tryDocument(data)
		if td, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(data); err == nil {
			_, _ = p.traces(t.Context(), td)
		}
		if ld, err := new(plog.JSONUnmarshaler).UnmarshalLogs(data); err == nil {
			_, _ = p.logs(t.Context(), ld)
		}
	})
}
