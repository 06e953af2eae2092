package dialect

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

func number(s string) json.Number { return json.Number(s) }

func genaiTool(id, parent byte, scope, tool, callID string) testSpan {
	attrs := object{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
	if callID != "" {
		attrs["gen_ai.tool.call.id"] = callID
	}
	return testSpan{id: id, parent: parent, scope: scope, name: "execute_tool " + tool, attrs: attrs}
}

func mcpTool(id, parent byte, scope, tool, callID string) testSpan {
	s := genaiTool(id, parent, scope, tool, callID)
	s.kind = ptrace.SpanKindClient
	s.attrs["mcp.method.name"] = "tools/call"
	return s
}

// calls lists the spans that are recorded and what each was made of.
func calls(b Batch) []string {
	var list []string
	for _, c := range b.Calls {
		line := fmt.Sprint(c.SpanID[7])
		for range c.Merged {
			line += "+"
		}
		list = append(list, line)
	}
	return list
}

func TestD32_OneCallOneAction(t *testing.T) {
	t.Parallel()
	plain := func(id, parent byte) testSpan { return testSpan{id: id, parent: parent, name: "POST"} }
	agent := func(id, parent byte) testSpan {
		return testSpan{id: id, parent: parent, attrs: object{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "sub"}}
	}
	tests := []struct {
		name  string
		spans []testSpan
		want  []string
	}{
		{"mcp inside, no ids", []testSpan{genaiTool(1, 0, "s", "t", ""), mcpTool(2, 1, "s", "t", "")}, []string{"1+"}},
		{"inner comes first", []testSpan{mcpTool(2, 1, "s", "t", ""), genaiTool(1, 0, "s", "t", "c")}, []string{"1+"}},
		{"other scope inside", []testSpan{genaiTool(1, 0, "s", "t", "c"), genaiTool(2, 1, "z", "t", "")}, []string{"1+"}},
		{"recursion of the same scope", []testSpan{genaiTool(1, 0, "s", "t", ""), genaiTool(2, 1, "s", "t", "")}, []string{"1", "2"}},
		{"different ids", []testSpan{genaiTool(1, 0, "s", "t", "a"), mcpTool(2, 1, "z", "t", "b")}, []string{"1", "2"}},
		{"equal ids", []testSpan{genaiTool(1, 0, "s", "t", "a"), genaiTool(2, 1, "s", "t", "a")}, []string{"1+"}},
		{"equal ids, other tool, same scope", []testSpan{genaiTool(1, 0, "s", "t", "a"), genaiTool(2, 1, "s", "u", "a")}, []string{"1", "2"}},
		{"equal ids, other name, other scope", []testSpan{genaiTool(1, 0, "s", "t", "a"), genaiTool(2, 1, "z", "u", "a")}, []string{"1+"}},
		{"different tools", []testSpan{genaiTool(1, 0, "s", "t", ""), mcpTool(2, 1, "z", "u", "")}, []string{"1", "2"}},
		{"spans between", []testSpan{genaiTool(1, 0, "s", "t", ""), plain(2, 1), plain(3, 2), mcpTool(4, 3, "z", "t", "")}, []string{"1+"}},
		{"an agent between", []testSpan{genaiTool(1, 0, "s", "t", ""), agent(2, 1), mcpTool(3, 2, "z", "t", "")}, []string{"1", "3"}},
		{"another call between", []testSpan{genaiTool(1, 0, "s", "t", ""), genaiTool(2, 1, "s", "u", ""), mcpTool(3, 2, "z", "t", "")}, []string{"1", "2", "3"}},
		{"three of one", []testSpan{genaiTool(1, 0, "s", "t", ""), genaiTool(2, 1, "z", "t", ""), mcpTool(3, 2, "y", "t", "")}, []string{"1++"}},
		{"siblings", []testSpan{plain(9, 0), genaiTool(1, 9, "s", "t", ""), mcpTool(2, 9, "z", "t", "")}, []string{"1", "2"}},
		{"each other's parents", []testSpan{genaiTool(1, 2, "s", "t", ""), genaiTool(2, 1, "z", "t", "")}, []string{"1+"}},
		{"its own parent", []testSpan{genaiTool(1, 1, "s", "t", ""), mcpTool(2, 2, "z", "t", "")}, []string{"1", "2"}},
		{"nameless", []testSpan{genaiTool(1, 0, "s", "", ""), mcpTool(2, 1, "z", "", "")}, []string{"1", "2"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := everything(t).Traces(tracesOf(t, test.spans...))
			if diff := cmp.Diff(test.want, calls(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestD32_OtherTracesAreOther: span ids repeat between traces.
// TestReleasedMemoryKeepsNothing: a batch in memory that others had before
// comes out as one in memory of its own.
func TestReleasedMemoryKeepsNothing(t *testing.T) {
	t.Parallel()
	r := everything(t)
	full := genaiTool(1, 0, "s", "t", "c")
	for key, value := range (object{
		"gen_ai.tool.call.arguments": `{"a":1}`, "gen_ai.tool.call.result": "{}", "gen_ai.agent.name": "agent",
		"gen_ai.conversation.id": "session", "gen_ai.workflow.name": "workflow", "error.type": "timeout", "mcp.method.name": "tools/call",
	}) {
		full.attrs[key] = value
	}
	var many []testSpan
	for id := range byte(40) { // more than one chunk
		s := full
		s.id = id + 1
		many = append(many, s)
	}
	for range 3 {
		before := r.Traces(tracesOf(t, many...))
		if len(before.Calls) != len(many) || before.Calls[39].Agent != "agent" {
			t.Fatalf("%d calls", len(before.Calls))
		}
		before.Release()
		bare := tracesOf(t, genaiTool(2, 0, "s", "u", ""), genaiTool(3, 0, "s", "u", ""))
		after := r.Traces(bare)
		span := bare.ResourceSpans().At(0).ScopeSpans().At(0)
		want, _ := r.Span(bare.ResourceSpans().At(0).Resource(), span.Scope(), span.Spans().At(0))
		if diff := cmp.Diff(want, after.Calls[0].ToolCall); diff != "" {
			t.Fatal(diff)
		}
		after.Release()
		if len(after.Calls) != 0 {
			t.Error("calls whose memory was given back can still be reached")
		}
	}
}

func TestD32_OtherTracesAreOther(t *testing.T) {
	t.Parallel()
	td := tracesOf(t, genaiTool(1, 0, "s", "t", ""), mcpTool(2, 1, "z", "t", ""))
	td.ResourceSpans().At(0).ScopeSpans().At(1).Spans().At(0).SetTraceID(pcommon.TraceID{15: 2})
	if diff := cmp.Diff([]string{"1", "2"}, calls(everything(t).Traces(td))); diff != "" {
		t.Error(diff)
	}
}

// TestD13_MergingLeavesTheCallIDAlone: the action's id rests on the span
// itself, whatever came in the same batch.
func TestD13_MergingLeavesTheCallIDAlone(t *testing.T) {
	t.Parallel()
	inner := mcpTool(2, 1, "z", "t", "c")
	inner.attrs["gen_ai.tool.call.arguments"] = `{"a":1}`
	inner.attrs["gen_ai.tool.call.result"] = `{"b":2}`
	inner.attrs["mcp.session.id"] = "m"
	inner.attrs["server.address"] = "mcp.example.com"
	inner.attrs["gen_ai.conversation.id"] = "s"
	b := everything(t).Traces(tracesOf(t, genaiTool(1, 0, "s", "t", ""), inner))
	got := b.Calls[0]
	if got.CallID != "" || got.MCPSession != "m" || got.MCPServer != "mcp.example.com" || got.Session != "s" {
		t.Errorf("%+v", got.ToolCall)
	}
	if diff := cmp.Diff([]any{object{"a": number("1")}, object{"b": number("2")}}, []any{got.Arguments.Value, got.Result.Value}); diff != "" {
		t.Error(diff)
	}
	if got, want := got.Sources.Map()["arguments"], "genai:attr:gen_ai.tool.call.arguments of span 0000000000000002"; got != want {
		t.Errorf("source %q, expected %q", got, want)
	}
	want := []Skipped{{Position{0, 1, 0}, pcommon.SpanID{7: 2}, "reports the same call as span 0000000000000001"}}
	if diff := cmp.Diff(want, b.Skipped); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Position{{0, 1, 0}}, got.Merged); diff != "" {
		t.Error(diff)
	}
}

func TestClaudeChildren(t *testing.T) {
	t.Parallel()
	tool := testSpan{id: 1, name: claudeTool}
	child := func(name string, attrs object) testSpan {
		return testSpan{id: 2, parent: 1, name: name, attrs: attrs}
	}
	failed := child(claudeExecution, object{})
	failed.status = ptrace.StatusCodeError
	reject := child(claudeBlocked, object{"decision": "reject"})
	tests := []struct {
		name  string
		spans []testSpan
		want  Outcome
	}{
		{"none", []testSpan{tool}, Unknown},
		{"accepted only", []testSpan{tool, child(claudeBlocked, object{"decision": "accept"})}, Unknown},
		{"rejected", []testSpan{tool, reject}, NotExecuted},
		{"rejected, then run", []testSpan{tool, reject, child(claudeExecution, object{"success": "true"})}, Success},
		{"run, then rejected", []testSpan{child(claudeExecution, object{"success": true}), reject, tool}, Success},
		{"failed", []testSpan{tool, child(claudeExecution, object{"success": "false"})}, Error},
		{"failed by status", []testSpan{tool, failed}, Error},
		{"says nothing", []testSpan{tool, child(claudeExecution, object{})}, Unknown},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := everything(t).Traces(tracesOf(t, test.spans...))
			if len(b.Calls) != 1 || b.Calls[0].Outcome != test.want {
				t.Errorf("%+v, expected one call, %s", b.Calls, test.want)
			}
		})
	}
}

// TestD31_CompletedFromTheLastStartedContext of the same trace whose interval
// contains the start of the call, field by field.
func TestD31_CompletedFromTheLastStartedContext(t *testing.T) {
	t.Parallel()
	agent := func(id byte, start, end uint64, name, session string) testSpan {
		return testSpan{id: id, start: start, end: end, attrs: object{
			"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, "gen_ai.conversation.id": session,
		}}
	}
	tests := []struct {
		name           string
		contexts       []testSpan
		agent, session string
	}{
		{"none", nil, "", ""},
		{"one", []testSpan{agent(2, 50, 300, "a", "s")}, "a", "s"},
		{"the bounds belong to it", []testSpan{agent(2, 100, 100, "a", "s")}, "a", "s"},
		{"before", []testSpan{agent(2, 50, 99, "a", "s")}, "", ""},
		{"after", []testSpan{agent(2, 101, 300, "a", "s")}, "", ""},
		{"the last started", []testSpan{agent(2, 60, 300, "b", "t"), agent(3, 50, 300, "a", "s")}, "b", "t"},
		{"field by field", []testSpan{agent(2, 60, 300, "b", ""), agent(3, 50, 300, "a", "s")}, "b", "s"},
		{"a tie, shorter first", []testSpan{agent(2, 50, 300, "a", "s"), agent(3, 50, 200, "b", "t")}, "b", "t"},
		{"a tie, in order of ids", []testSpan{agent(3, 50, 300, "b", "t"), agent(2, 50, 300, "a", "s")}, "a", "s"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := everything(t).Traces(tracesOf(t, append(test.contexts, genaiTool(1, 0, "s", "t", ""))...))
			got := b.Complete().Calls[0]
			if got.Agent != test.agent || got.Session != test.session {
				t.Errorf("agent %q, session %q, expected %q, %q", got.Agent, got.Session, test.agent, test.session)
			}
			if b.Calls[0].Agent != "" || b.Calls[0].Sources.Map()["agent"] != "" {
				t.Error("Complete changed the batch it was called on")
			}
		})
	}
}

// record says what matters about a log record.
type record struct {
	event    string
	attrs    object
	at, seen uint64
	body     string
	trace    byte
}

func logsOf(t testing.TB, records ...record) plog.Logs {
	t.Helper()
	ld := plog.NewLogs()
	resource := ld.ResourceLogs().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "claude-code")
	scope := resource.ScopeLogs().AppendEmpty()
	for _, r := range records {
		lr := scope.LogRecords().AppendEmpty()
		if err := lr.Attributes().FromRaw(r.attrs); err != nil {
			t.Fatal(err)
		}
		lr.SetEventName(r.event)
		lr.Body().SetStr(r.body)
		lr.SetTimestamp(pcommon.Timestamp(r.at))
		lr.SetObservedTimestamp(pcommon.Timestamp(r.seen))
		lr.SetTraceID(pcommon.TraceID{15: r.trace})
	}
	return ld
}

func TestLogPairs(t *testing.T) {
	t.Parallel()
	const ms = 1_000_000
	result := record{event: "claude_code.tool_result", at: 900 * ms, seen: 901 * ms, attrs: object{
		"tool_use_id": "a", "session.id": "s", "tool_name": "Bash", "success": "true", "duration_ms": "240"}}
	accept := record{event: "claude_code.tool_decision", at: 600 * ms, trace: 7, attrs: object{
		"tool_use_id": "a", "session.id": "s", "decision": "accept", "prompt.id": "p"}}
	reject := record{event: "claude_code.tool_decision", at: 700 * ms, attrs: object{
		"tool_use_id": "b", "session.id": "s", "decision": "reject", "tool_name": "Write"}}
	change := func(r record, more object) record {
		r.attrs = with(r.attrs, more)
		return r
	}
	tests := []struct {
		name    string
		records []record
		want    []string // tool, outcome, start and end in ms
	}{
		{"result alone", []record{result}, []string{"Bash success 660-900"}},
		{"decision, result", []record{accept, result}, []string{"Bash success 600-900"}},
		{"result, decision", []record{result, accept}, []string{"Bash success 600-900"}},
		{"decision of another session", []record{change(accept, object{"session.id": "z"}), result}, []string{"Bash success 660-900"}},
		{"decision after the result", []record{{event: accept.event, at: 950 * ms, attrs: accept.attrs}, result}, []string{"Bash success 660-900"}},
		{"accepted, no result yet", []record{accept}, nil},
		{"rejected", []record{reject}, []string{"Write not_executed 700-700"}},
		{"rejected, with a result", []record{change(reject, object{"tool_use_id": "a"}), result}, []string{"Bash success 700-900"}},
		{"rejected, no id", []record{change(reject, object{"tool_use_id": ""}), reject}, []string{"Write not_executed 700-700", "Write not_executed 700-700"}},
		{"failed", []record{change(result, object{"success": "false"})}, []string{"Bash error 660-900"}},
		{"a boolean", []record{change(result, object{"success": false})}, []string{"Bash error 660-900"}},
		{"says nothing, accepted", []record{accept, change(result, object{"success": ""})}, []string{"Bash unknown 600-900"}},
		{"duration is a number", []record{change(result, object{"duration_ms": 100.5})}, []string{"Bash success 799-900"}},
		{"duration is an integer", []record{change(result, object{"duration_ms": 100})}, []string{"Bash success 800-900"}},
		{"duration is longer than time", []record{change(result, object{"duration_ms": 5000})}, []string{"Bash success 900-900"}},
		{"duration is nonsense", []record{change(result, object{"duration_ms": "NaN"}), change(result, object{"duration_ms": "-1"}), change(result, object{"duration_ms": "1e300"})},
			[]string{"Bash success 900-900", "Bash success 900-900", "Bash success 900-900"}},
		{"time from observed", []record{{event: result.event, seen: 901 * ms, attrs: result.attrs}}, []string{"Bash success 661-901"}},
		{"time from words", []record{{event: result.event, attrs: with(result.attrs, object{"event.timestamp": "1970-01-01T00:00:01.5Z"})}}, []string{"Bash success 1260-1500"}},
		{"no time at all", []record{{event: result.event, attrs: with(result.attrs, object{"event.timestamp": "9999-01-01T00:00:00Z"})}}, []string{"Bash success 0-0"}},
		{"event named by body", []record{{body: result.event, at: 900 * ms, attrs: result.attrs}}, []string{"Bash success 660-900"}},
		{"bare event of this service", []record{{at: 900 * ms, attrs: with(result.attrs, object{"event.name": "tool_result"})}}, []string{"Bash success 660-900"}},
		{"another event", []record{{event: "claude_code.api_request", attrs: result.attrs}}, nil},
		{"mcp tool with details", []record{change(result, object{"tool_name": "mcp_tool", "tool_parameters": `{"mcp_server_name":"billing","mcp_tool_name":"send_refund"}`})},
			[]string{"mcp__billing__send_refund success 660-900"}},
		{"mcp tool without", []record{change(result, object{"tool_name": "mcp_tool"})}, []string{" success 660-900"}},
		{"codex", []record{{event: "codex.tool_result", at: 900 * ms, attrs: object{"tool_name": "shell", "success": "true"}}}, []string{"shell success 900-900"}},
		{"codex denied", []record{{event: "codex.tool_decision", at: 900 * ms, attrs: object{"tool_name": "shell", "decision": "denied"}}}, []string{"shell not_executed 900-900"}},
		{"codex approved", []record{{event: "codex.tool_decision", at: 900 * ms, attrs: object{"tool_name": "shell", "decision": "approved"}}}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range everything(t).Logs(logsOf(t, test.records...)).Calls {
				got = append(got, fmt.Sprintf("%s %s %d-%d", c.Tool, c.Outcome, c.Start/ms, c.End/ms))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLogPairsFillGaps(t *testing.T) {
	t.Parallel()
	b := everything(t).Logs(logsOf(t,
		record{event: "claude_code.tool_decision", at: 1, trace: 7, attrs: object{"tool_use_id": "a", "tool_name": "Bash", "decision": "accept", "prompt.id": "p"}},
		record{event: "claude_code.tool_result", at: 2, seen: 3, attrs: object{"tool_use_id": "a", "tool_parameters": `{"full_command":"git status"}`}},
	))
	got := b.Calls[0]
	want := map[string]string{
		"tool":      "claude_code_logs:attr:tool_name of claude_code.tool_decision",
		"workflow":  "claude_code_logs:attr:prompt.id of claude_code.tool_decision",
		"call_id":   "claude_code_logs:attr:tool_use_id",
		"arguments": "claude_code_logs:attr:tool_parameters",
		"agent":     "claude_code_logs:resource:service.name",
	}
	if diff := cmp.Diff(want, got.Sources.Map()); diff != "" {
		t.Error(diff)
	}
	if got.Tool != "Bash" || got.Workflow != "p" || got.TraceID != (pcommon.TraceID{15: 7}) || got.Observed != 3 {
		t.Errorf("%+v", got.ToolCall)
	}
	if diff := cmp.Diff(any(object{"full_command": "git status"}), got.Arguments.Value); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Position{0, 0, 1}, got.At); diff != "" {
		t.Error(diff)
	}
}
