package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const samples = "../../processor/agentactionprocessor/dialect/testdata/spans"

// tried is one recognised tool call, in the part that the samples' list of expected calls has too.
type tried struct {
	SpanID  string
	Tool    string
	CallID  any
	Args    any
	Agent   any
	Session any
	Outcome string
}

// TestRulesTryShowsEveryDialect runs `rules try` over telemetry of every
// instrumentation, without a configuration: all dialects, no rules.
func TestRulesTryShowsEveryDialect(t *testing.T) {
	t.Parallel()
	expected := readJSON[map[string][]map[string]any](t, filepath.Join(samples, "_expected.json"))
	files, err := filepath.Glob(filepath.Join(samples, "[a-z]*.json"))
	if err != nil || len(files) < len(expected) {
		t.Fatalf("%d samples of %d, %v", len(files), len(expected), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := command(t, "rules", "try", "--input", file, "-o", "json")
			if code != 0 {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var got, want []tried
			for _, line := range decodeAll(t, stdout) {
				got = append(got, tried{text(line["span_id"]), text(line["tool"]), line["call_id"], line["arguments"], line["agent"], line["session"], text(line["outcome"])})
			}
			// The list's order is not that of the file.
			order := func(a, b tried) int { return strings.Compare(a.SpanID+a.Tool, b.SpanID+b.Tool) }
			listed := slices.SortedFunc(slices.Values(expected[name]), func(a, b map[string]any) int {
				return strings.Compare(text(a["span_id"])+text(a["tool"]), text(b["span_id"])+text(b["tool"]))
			})
			slices.SortFunc(got, order)
			for i, call := range listed {
				one := tried{text(call["span_id"]), text(call["tool"]), call["call_id"], call["args"], call["agent"], call["session"], text(call["outcome"])}
				if i < len(got) { // what the list leaves out is not looked at
					one = fill(one, call, got[i])
				}
				want = append(want, one)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("recognised calls (-want +got):\n%s", diff)
			}
		})
	}
}

func fill(want tried, call map[string]any, got tried) tried {
	for key, take := range map[string]func(){
		"span_id": func() { want.SpanID = got.SpanID }, "call_id": func() { want.CallID = got.CallID },
		"args": func() { want.Args = got.Args }, "agent": func() { want.Agent = got.Agent },
		"session": func() { want.Session = got.Session }, "outcome": func() { want.Outcome = got.Outcome },
	} {
		if _, listed := call[key]; !listed {
			take()
		}
	}
	return want
}

// TestRulesTryShowsMetadataThatDoesNotRead to people too, and counts no call of it.
func TestRulesTryShowsMetadataThatDoesNotRead(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "spans.json")
	if err := os.WriteFile(file, []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"spanId":"1112131415161718","attributes":[
		{"key":"verified_actions_version","value":{"stringValue":"1"}},
		{"key":"verified_actions_payload","value":{"stringValue":"{\"actions\":"}}]}]}]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(t, "rules", "try", "--input", file)
	want := `does not read  verified_actions  span 1112131415161718
  invalid verified action: the payload does not read: unexpected end of JSON input
0 tool calls recognised
`
	if diff := cmp.Diff(want, stdout); code != 0 || diff != "" {
		t.Errorf("exit code %d, %s (-want +got):\n%s", code, stderr, diff)
	}
}

func text(v any) string { s, _ := v.(string); return s }

// decodeAll reads one JSON array, or objects after each other.
func decodeAll(t *testing.T, stdout string) []map[string]any {
	t.Helper()
	if strings.HasPrefix(strings.TrimSpace(stdout), "[") {
		var list []map[string]any
		if err := json.Unmarshal([]byte(stdout), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	var list []map[string]any
	decoder := json.NewDecoder(strings.NewReader(stdout))
	for decoder.More() {
		var one map[string]any
		if err := decoder.Decode(&one); err != nil {
			t.Fatalf("%v in %s", err, stdout)
		}
		list = append(list, one)
	}
	return list
}

func readJSON[T any](t *testing.T, path string) (v T) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}
