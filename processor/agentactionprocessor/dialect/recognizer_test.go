package dialect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// testSpan says what matters about a span; the rest is filled in.
type testSpan struct {
	id, parent byte // 0 is none
	name       string
	scope      string
	kind       ptrace.SpanKind
	status     ptrace.StatusCode
	attrs      object
	events     []string // names
	start, end uint64   // 0 is 100 and 200
}

func (s testSpan) fill(t testing.TB, span ptrace.Span) {
	t.Helper()
	span.SetTraceID(pcommon.TraceID{15: 1})
	span.SetSpanID(pcommon.SpanID{7: s.id})
	span.SetParentSpanID(pcommon.SpanID{7: s.parent})
	span.SetName(s.name)
	span.SetKind(s.kind)
	span.Status().SetCode(s.status)
	span.SetStartTimestamp(pcommon.Timestamp(or(s.start, 100)))
	span.SetEndTimestamp(pcommon.Timestamp(or(s.end, 200)))
	if err := span.Attributes().FromRaw(s.attrs); err != nil {
		t.Fatal(err)
	}
	for _, name := range s.events {
		span.Events().AppendEmpty().SetName(name)
	}
}

func or(a, b uint64) uint64 {
	if a == 0 {
		return b
	}
	return a
}

func tracesOf(t testing.TB, spans ...testSpan) ptrace.Traces {
	t.Helper()
	td := ptrace.NewTraces()
	resource := td.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "bot")
	for _, s := range spans {
		scope := resource.ScopeSpans().AppendEmpty()
		scope.Scope().SetName(s.scope)
		s.fill(t, scope.Spans().AppendEmpty())
	}
	return td
}

func one(t testing.TB, s testSpan) (*ToolCall, bool) {
	t.Helper()
	scope := tracesOf(t, s).ResourceSpans().At(0)
	return everything(t).Span(scope.Resource(), scope.ScopeSpans().At(0).Scope(), scope.ScopeSpans().At(0).Spans().At(0))
}

// with adds attributes to a copy.
func with(attrs object, more object) object {
	all := object{}
	for k, v := range attrs {
		all[k] = v
	}
	for k, v := range more {
		all[k] = v
	}
	return all
}

func TestNewNamesWhatIsKnown(t *testing.T) {
	t.Parallel()
	_, err := New("langfuze", "genai", "openinferense")
	want := `unknown dialect "langfuze": known are langfuse, langsmith, dify, n8n, genai, strands, traceloop, google_adk, pydantic_ai, openinference, codex_logs, agent_action, claude_code_span, claude_code_logs, vercel_ai_legacy
unknown dialect "openinferense": known are openinference, langfuse, strands, pydantic_ai, dify, n8n, genai, agent_action, codex_logs, google_adk, langsmith, traceloop, claude_code_span, vercel_ai_legacy, claude_code_logs`
	if diff := cmp.Diff(want, errorText(err)); diff != "" {
		t.Error(diff)
	}
}

func TestNamesInOrderOfPrecedence(t *testing.T) {
	t.Parallel()
	var got []string
	for _, i := range Names() {
		line := i.Name + " " + string(i.Signal)
		if i.Experimental {
			line += " experimental"
		}
		if i.DefaultOn {
			line += " on"
		}
		got = append(got, line)
	}
	want := []string{
		"claude_code_span spans on", "langfuse spans on", "vercel_ai_legacy spans on", "google_adk spans on",
		"strands spans on", "langsmith spans on", "traceloop spans on", "openinference spans on", "pydantic_ai spans on",
		"dify spans experimental", "n8n spans experimental", "genai spans on", "agent_action spans experimental",
		"claude_code_logs logs on", "codex_logs logs experimental",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDetection(t *testing.T) {
	t.Parallel()
	tool := object{"gen_ai.operation.name": "execute_tool"}
	tests := []struct {
		name string
		span testSpan
		want string // dialect, "" for no tool call
	}{
		{"claude", testSpan{name: "claude_code.tool"}, "claude_code_span"},
		{"claude execution", testSpan{name: "claude_code.tool.execution", attrs: object{"gen_ai.tool.call.id": "x"}}, ""},
		{"claude question", testSpan{name: "claude_code.tool.blocked_on_user"}, ""},
		{"langfuse", testSpan{attrs: object{"langfuse.observation.type": "tool"}}, "langfuse"},
		{"langfuse span", testSpan{attrs: object{"langfuse.observation.type": "span"}}, ""},
		{"vercel by operation", testSpan{attrs: object{"ai.operationId": "ai.toolCall"}}, "vercel_ai_legacy"},
		{"vercel by name", testSpan{attrs: object{"ai.toolCall.name": "x"}}, "vercel_ai_legacy"},
		{"adk by arguments", testSpan{attrs: object{"gcp.vertex.agent.tool_call_args": "{}"}}, "google_adk"},
		{"adk by name", testSpan{scope: "gcp.vertex.agent", name: "execute_tool x"}, "google_adk"},
		{"adk model call", testSpan{scope: "gcp.vertex.agent", name: "call_llm"}, ""},
		{"name of another scope", testSpan{scope: "x", name: "execute_tool x"}, ""},
		{"strands by system", testSpan{attrs: with(tool, object{"gen_ai.system": "strands-agents"})}, "strands"},
		{"strands by provider", testSpan{attrs: with(tool, object{"gen_ai.provider.name": "strands-agents"})}, "strands"},
		{"langsmith", testSpan{attrs: with(tool, object{"langsmith.span.kind": "tool"})}, "langsmith"},
		{"traceloop", testSpan{attrs: object{"traceloop.span.kind": "tool"}}, "traceloop"},
		{"traceloop task", testSpan{attrs: with(tool, object{"traceloop.span.kind": "task", "traceloop.entity.input": "{}"})}, "traceloop"},
		{"traceloop other task", testSpan{attrs: object{"traceloop.span.kind": "task", "traceloop.entity.input": "{}"}}, ""},
		{"openinference", testSpan{attrs: object{"openinference.span.kind": "TOOL"}}, "openinference"},
		{"openinference chain", testSpan{attrs: object{"openinference.span.kind": "CHAIN"}}, ""},
		{"pydantic v2", testSpan{scope: "pydantic-ai", name: "running tool"}, "pydantic_ai"},
		{"pydantic tools", testSpan{scope: "pydantic-ai", name: "running tools"}, ""},
		{"dify", testSpan{attrs: object{"gen_ai.framework": "dify", "gen_ai.span.kind": "TOOL"}}, "dify"},
		{"dify model", testSpan{attrs: object{"gen_ai.framework": "dify", "gen_ai.span.kind": "LLM"}}, ""},
		{"n8n tool", testSpan{name: "node.execute", attrs: object{"n8n.node.type": "@n8n/n8n-nodes-langchain.toolCode"}}, "n8n"},
		{"n8n mcp", testSpan{name: "node.execute", attrs: object{"n8n.node.type": "@n8n/n8n-nodes-langchain.mcpClientTool"}}, "n8n"},
		{"n8n model", testSpan{name: "node.execute", attrs: object{"n8n.node.type": "@n8n/n8n-nodes-langchain.lmChatOpenAi"}}, ""},
		{"genai", testSpan{attrs: tool}, "genai"},
		{"mcp", testSpan{kind: ptrace.SpanKindClient, attrs: object{"mcp.method.name": "tools/call"}}, "genai"},
		{"mcp list", testSpan{kind: ptrace.SpanKindClient, attrs: object{"mcp.method.name": "tools/list"}}, ""},
		{"tool and id, no operation", testSpan{attrs: object{"gen_ai.tool.name": "x", "gen_ai.tool.call.id": "y"}}, "genai"},
		{"tool and arguments, no operation", testSpan{attrs: object{"gen_ai.tool.name": "x", "gen_ai.tool.call.arguments": "{}"}}, "genai"},
		{"tool, other operation", testSpan{attrs: object{"gen_ai.tool.name": "x", "gen_ai.tool.call.id": "y", "gen_ai.operation.name": "chat"}}, ""},
		{"tool name only", testSpan{attrs: object{"gen_ai.tool.name": "x"}}, ""},
		{"operation is no text", testSpan{attrs: object{"gen_ai.operation.name": []any{"execute_tool"}}}, ""},
		{"agent action", testSpan{attrs: object{"agent.action.type": "tool_call", "agent.tool.name": "x"}}, "agent_action"},
		{"agent action, inference", testSpan{attrs: object{"agent.action.type": "inference", "agent.tool.name": "x"}}, ""},

		{"merged by tool", testSpan{attrs: with(tool, object{"gen_ai.tool.name": "(merged tools)"})}, ""},
		{"merged by name", testSpan{scope: "gcp.vertex.agent", name: "execute_tool (merged)"}, ""},
		{"mcp server", testSpan{kind: ptrace.SpanKindServer, attrs: with(tool, object{"mcp.method.name": "tools/call"})}, ""},
		{"server without mcp", testSpan{kind: ptrace.SpanKindServer, attrs: tool}, "genai"},
		{"handoff", testSpan{name: "handoff to billing", attrs: object{"openinference.span.kind": "TOOL"}}, ""},
		{"tool named like a handoff", testSpan{name: "handoff to billing", attrs: object{"openinference.span.kind": "TOOL", "tool.name": "x"}}, "openinference"},
		{"pending", testSpan{attrs: with(tool, object{"logfire.span_type": "pending_span"})}, ""},
		{"unknown kind", testSpan{kind: -7, attrs: tool}, "genai"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dialect := ""
			if got, ok := one(t, test.span); ok {
				dialect = got.Dialect
			}
			if dialect != test.want {
				t.Errorf("dialect %q, expected %q", dialect, test.want)
			}
		})
	}
}

// TestLaterDialectsFillGaps: the first match is primary, and nothing it said
// is overruled.
func TestLaterDialectsFillGaps(t *testing.T) {
	t.Parallel()
	got, _ := one(t, testSpan{name: "n", attrs: object{
		"openinference.span.kind":    "TOOL",
		"tool.name":                  "from openinference",
		"input.value":                "__REDACTED__",
		"gen_ai.operation.name":      "execute_tool",
		"gen_ai.tool.name":           "from genai",
		"gen_ai.tool.call.id":        "call_1",
		"gen_ai.tool.call.arguments": object{"city": "Paris"},
		"gen_ai.conversation.id":     "sess-42",
		"error.type":                 "x",
	}})
	want := map[string]string{
		"tool":      "openinference:attr:tool.name",
		"arguments": "genai:attr:gen_ai.tool.call.arguments",
		"call_id":   "genai:attr:gen_ai.tool.call.id",
		"session":   "genai:attr:gen_ai.conversation.id",
		"outcome":   "openinference:attr:error.type",
	}
	if diff := cmp.Diff(want, got.Sources.Map()); diff != "" {
		t.Error(diff)
	}
	if got.Tool != "from openinference" || got.CallID != "call_1" || got.Outcome != Error {
		t.Errorf("%+v", got)
	}
}

func TestSentinelsOfNames(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"unknown", "<not specified>", "N/A", "", "<REDACTED>"} {
		got, _ := one(t, testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "x", "gen_ai.tool.call.id": id}})
		if got.CallID != "" || got.Sources.Map()["call_id"] != "" {
			t.Errorf("call id %q: captured as %q", id, got.CallID)
		}
	}
	got, _ := one(t, testSpan{name: "claude_code.tool", attrs: object{"tool_name": "mcp_tool", "full_command": "<REDACTED>"}})
	if got.Tool != "" || got.Arguments.State != NotCaptured {
		t.Errorf("claude: tool %q, arguments %+v", got.Tool, got.Arguments)
	}
	got, _ = one(t, testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "gen_ai.conversation.id": "[Scrubbed due to 'session']"}})
	if got.Session != "" {
		t.Errorf("session %q", got.Session)
	}
}

func TestD06_UnusableNamesAreLeftOutAndNamed(t *testing.T) {
	t.Parallel()
	got, _ := one(t, testSpan{name: "execute_tool from_name", attrs: object{
		"gen_ai.operation.name":  "execute_tool",
		"gen_ai.tool.name":       "a\nb",
		"gen_ai.tool.call.id":    strings.Repeat("x", MaxTextBytes+1),
		"gen_ai.agent.name":      "\xff",
		"gen_ai.conversation.id": "sess-\u009b",
		"session.id":             int64(42),
	}})
	want := []string{
		"genai:attr:gen_ai.tool.name holds a control character: left out",
		"genai:attr:gen_ai.tool.call.id is longer than 512 bytes: left out",
		"genai:attr:gen_ai.agent.name is not valid UTF-8 or holds U+0000: left out",
		"genai:attr:gen_ai.conversation.id holds a control character: left out",
	}
	if diff := cmp.Diff(want, got.Problems); diff != "" {
		t.Error(diff)
	}
	if got.Tool != "from_name" || got.CallID != "" || got.Agent != "" || got.Session != "42" {
		t.Errorf("%+v", got)
	}
}

func TestD34_Outcomes(t *testing.T) {
	t.Parallel()
	failed, ok := ptrace.StatusCodeError, ptrace.StatusCodeOk
	exception := []string{"exception"}
	tests := []struct {
		name string
		span testSpan
		want Outcome
	}{
		{"genai unset", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool"}}, Success},
		{"genai error.type", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "error.type": "x"}}, Error},
		{"genai exception", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool"}, events: exception}, Error},
		{"genai status", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool"}, status: failed}, Error},
		{"mcp isError", testSpan{attrs: object{"mcp.method.name": "tools/call", "gen_ai.tool.call.result": `{"isError":true}`}}, Error},

		{"claude alone", testSpan{name: "claude_code.tool", status: ok}, Unknown},
		{"langfuse level", testSpan{attrs: object{"langfuse.observation.type": "tool", "langfuse.observation.level": "ERROR"}}, Error},
		{"langfuse warning", testSpan{attrs: object{"langfuse.observation.type": "tool", "langfuse.observation.level": "WARNING"}}, Success},
		{"vercel result beside a foreign error", testSpan{attrs: object{"ai.toolCall.name": "x", "ai.toolCall.result": "{}"}, status: failed}, Success},
		{"vercel result and exception", testSpan{attrs: object{"ai.toolCall.name": "x", "ai.toolCall.result": "{}"}, events: exception}, Error},
		{"vercel without result", testSpan{attrs: object{"ai.toolCall.name": "x"}, status: failed}, Error},
		{"adk without result", testSpan{scope: "gcp.vertex.agent", name: "execute_tool x"}, Unknown},
		{"adk with result", testSpan{attrs: object{"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}}, Success},
		{"adk result not captured", testSpan{attrs: object{"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "<not specified>"}}, Unknown},
		{"adk error.type", testSpan{attrs: object{"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}", "error.type": "x"}}, Error},
		{"strands status", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "gen_ai.system": "strands-agents", "gen_ai.tool.status": "error"}}, Error},
		{"strands own status first", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "gen_ai.system": "strands-agents", "gen_ai.tool.status": "success"}, events: exception}, Success},
		{"langsmith message", testSpan{attrs: object{"langsmith.span.kind": "tool", "gen_ai.completion": `{"output":{"type":"tool","tool_call_id":"a","status":"error"}}`}, status: ok}, Error},
		{"openinference message", testSpan{scope: "openinference.instrumentation.langchain", attrs: object{"openinference.span.kind": "TOOL", "output.value": `{"type":"tool","data":{"tool_call_id":"a","status":"error"}}`}, status: ok}, Error},
		{"traceloop mcp", testSpan{attrs: object{"traceloop.span.kind": "tool", "traceloop.entity.output": `{"result":"x","is_error":true}`}}, Error},
		{"pydantic validation", testSpan{scope: "pydantic-ai", name: "running tool", attrs: object{"pydantic_ai.tool.failure_stage": "validation"}, status: failed}, NotExecuted},
		{"pydantic later failure", testSpan{scope: "pydantic-ai", name: "running tool", attrs: object{"pydantic_ai.tool.failure_stage": "execution"}, status: failed}, Error},
		{"pydantic deferral", testSpan{scope: "pydantic-ai", name: "running tool", attrs: object{"pydantic_ai.tool.deferral.name": "ApprovalRequired"}, status: failed}, Deferred},
		{"dify", testSpan{attrs: object{"gen_ai.framework": "dify", "gen_ai.span.kind": "TOOL"}, status: failed}, Error},
		{"n8n", testSpan{name: "node.execute", attrs: object{"n8n.node.type": "langchain.toolCode"}, status: ok}, Success},
		{"agent action", testSpan{attrs: object{"agent.action.type": "tool", "agent.action": "x"}, events: exception}, Error},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, _ := one(t, test.span)
			if got.Outcome != test.want {
				t.Errorf("outcome %q (%s), expected %q", got.Outcome, got.Sources.Map()["outcome"], test.want)
			}
		})
	}
}

func TestFields(t *testing.T) {
	t.Parallel()
	message := `{"output":{"lc":1,"type":"constructor","id":["langchain_core","messages","ToolMessage"],"kwargs":{"content":"{\"temp_c\":18}","name":"get_weather","tool_call_id":"call_1"}}}`
	weather, city := object{"temp_c": number("18")}, object{"city": "Paris"}
	tests := []struct {
		name         string
		span         testSpan
		tool, callID string
		args, result any
	}{
		{"LangChain in JavaScript through Traceloop", testSpan{scope: "@traceloop/instrumentation-langchain", attrs: object{
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "DynamicStructuredTool",
			"traceloop.span.kind": "task", "traceloop.entity.input": `{"args":["{\"city\":\"Paris\"}"]}`, "traceloop.entity.output": message,
		}}, "get_weather", "call_1", city, weather},
		{"a tool's answer renames no tool", testSpan{scope: "traceloop.tracer", attrs: object{
			"traceloop.span.kind": "tool", "traceloop.entity.name": "send_refund", "traceloop.entity.output": message,
		}}, "send_refund", "", nil, object{"output": object{
			"lc": number("1"), "type": "constructor", "id": []any{"langchain_core", "messages", "ToolMessage"},
			"kwargs": object{"content": `{"temp_c":18}`, "name": "get_weather", "tool_call_id": "call_1"},
		}}},
		{"Strands' newer events", testSpan{attrs: object{
			"gen_ai.operation.name": "execute_tool", "gen_ai.provider.name": "strands-agents", "gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "b",
		}, events: []string{inferenceDetails}}, "get_weather", "b", city, weather},
		{"LlamaIndex", testSpan{scope: "openinference.instrumentation.llama_index", name: "FunctionTool.acall", attrs: object{
			"openinference.span.kind": "TOOL", "tool.name": "get_weather", "input.value": `{"kwargs":{"city":"Paris"}}`,
		}}, "get_weather", "", city, nil},
		{"other OpenInference scopes keep kwargs", testSpan{scope: "openinference.instrumentation.smolagents", name: "T", attrs: object{
			"openinference.span.kind": "TOOL", "input.value": `{"kwargs":{"city":"Paris"}}`, "tool.parameters": `{"type":"object"}`,
		}}, "T", "", object{"kwargs": city}, nil},
		{"Pydantic AI, old names", testSpan{scope: "pydantic-ai", name: "running tool", attrs: object{
			"gen_ai.tool.name": "get_weather", "gen_ai.tool.call.id": "a", "tool_arguments": `{"city":"Paris"}`, "tool_response": `{"temp_c":18}`,
		}}, "get_weather", "a", city, weather},
		{"contrib google-genai", testSpan{name: "execute_tool get_weather", attrs: object{
			"gen_ai.operation.name": "execute_tool", "code.function.parameters.city.type": "str", "code.function.parameters.city.value": "Paris",
		}}, "get_weather", "", city, nil},
		{"mcp without gen_ai names", testSpan{name: "tools/call get_weather", attrs: object{"mcp.method.name": "tools/call"}}, "get_weather", "", nil, nil},
		{"ADK with capture off", testSpan{scope: "gcp.vertex.agent", name: "execute_tool get_weather", attrs: object{
			"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}",
		}}, "get_weather", "", nil, nil},
		{"ADK tool without parameters", testSpan{scope: "gcp.vertex.agent", name: "execute_tool get_weather", attrs: object{
			"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": `{"temp_c":18}`,
		}}, "get_weather", "", object{}, weather},
		{"Langfuse's Python decorator", testSpan{name: "get_weather", attrs: object{
			"langfuse.observation.type": "tool", "langfuse.observation.input": `{"args":[],"kwargs":{"city":"Paris"}}`,
		}}, "get_weather", "", city, nil},
		{"claude's whole input", testSpan{name: "claude_code.tool", attrs: object{
			"tool_name": "Bash", "tool_input": `{"command":"git status"}`, "full_command": "git status", "gen_ai.tool.call.id": "toolu_1",
		}}, "Bash", "toolu_1", object{"command": "git status"}, nil},
		{"claude's fields", testSpan{name: "claude_code.tool", attrs: object{
			"tool_name": "Edit", "file_path": "/a", "subagent_type": "x", "skill_name": "<REDACTED>",
		}}, "Edit", "", object{"file_path": "/a", "subagent_type": "x"}, nil},
		{"agent action", testSpan{attrs: object{
			"agent.action.type": "tool", "agent.action": "get_weather", "agent.tool.parameters": `{"city":"Paris"}`, "agent.tool.call.id": "a", "agent.artifact": `{"temp_c":18}`,
		}}, "get_weather", "a", city, weather},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			td := tracesOf(t, test.span)
			scope := td.ResourceSpans().At(0).ScopeSpans().At(0)
			addMessages(scope.Spans().At(0))
			got, ok := everything(t).Span(td.ResourceSpans().At(0).Resource(), scope.Scope(), scope.Spans().At(0))
			if !ok || got.Tool != test.tool || got.CallID != test.callID {
				t.Errorf("tool %q, call id %q, expected %q, %q", got.Tool, got.CallID, test.tool, test.callID)
			}
			if diff := cmp.Diff([]any{test.args, test.result}, []any{got.Arguments.Value, got.Result.Value}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// addMessages fills the event in which Strands writes GenAI messages: two
// calls, of which the span is about the second.
func addMessages(span ptrace.Span) {
	for _, event := range span.Events().All() {
		if event.Name() == inferenceDetails {
			event.Attributes().PutStr("gen_ai.input.messages", `[{"role":"assistant","parts":[
				{"type":"text","content":"hm"},
				{"type":"tool_call","id":"b","arguments":{"city":"Paris"}},
				{"type":"tool_call","id":"a","arguments":{"city":"Rome"}}]}]`)
			event.Attributes().PutStr("gen_ai.output.messages", `[{"parts":[{"type":"tool_call_response","id":"b","response":{"temp_c":18}}]}]`)
		}
	}
}

func TestD31_Agents(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		span           testSpan
		agent, session string // both "" for no context
	}{
		{"by name", testSpan{attrs: object{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "gen_ai.conversation.id": "s"}}, "a", "s"},
		{"by span name", testSpan{name: "invoke_agent a", attrs: object{"gen_ai.operation.name": "invoke_agent"}}, "a", ""},
		{"nameless", testSpan{name: "invoke_agent", attrs: object{"gen_ai.operation.name": "invoke_agent"}}, "", ""},
		{"workflow", testSpan{name: "x", attrs: object{"gen_ai.operation.name": "invoke_workflow"}}, "x", ""},
		{"a run's id is no agent", testSpan{name: "invoke_agent", attrs: object{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "agent"}}, "", ""},
		{"a hosted agent's id", testSpan{name: "invoke_agent", kind: ptrace.SpanKindClient, attrs: object{"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.id": "asst_1"}}, "asst_1", ""},
		{"openinference", testSpan{name: "n", attrs: object{"openinference.span.kind": "AGENT", "graph.node.id": "g", "session.id": "s"}}, "g", "s"},
		{"traceloop agent", testSpan{attrs: object{"traceloop.span.kind": "agent", "traceloop.entity.name": "e", "graph.node.id": "g"}}, "e", ""},
		{"traceloop workflow", testSpan{attrs: object{"traceloop.span.kind": "workflow", "traceloop.entity.name": "e", "traceloop.association.properties.session_id": "s"}}, "e", "s"},
		{"langfuse", testSpan{name: "n", attrs: object{"langfuse.observation.type": "agent", "langfuse.session.id": "s"}}, "n", "s"},
		{"pydantic v2", testSpan{name: "agent run", attrs: object{"agent_name": "a"}}, "a", ""},
		{"adk's model call", testSpan{name: "call_llm", attrs: object{"gcp.vertex.agent.session_id": "s"}}, "", "s"},
		{"vercel's step", testSpan{name: "step 1", attrs: object{"ai.settings.context.sessionId": "s"}}, "", "s"},
		{"langsmith's project is no session", testSpan{name: "x", attrs: object{"langsmith.trace.session_id": "s"}}, "", ""},
		{"redacted", testSpan{name: "n", attrs: object{"openinference.span.kind": "AGENT", "agent.name": "__REDACTED__", "session.id": "<REDACTED>"}}, "n", ""},
		{"a tool", testSpan{attrs: object{"gen_ai.operation.name": "execute_tool", "gen_ai.agent.name": "a", "ai.settings.context.sessionId": "s"}}, "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			scope := tracesOf(t, test.span).ResourceSpans().At(0)
			got, ok := everything(t).Agent(scope.Resource(), scope.ScopeSpans().At(0).Scope(), scope.ScopeSpans().At(0).Spans().At(0))
			if got.Agent != test.agent || got.Session != test.session || ok != (test.agent+test.session != "") {
				t.Errorf("agent %q, session %q, %v, expected %q, %q", got.Agent, got.Session, ok, test.agent, test.session)
			}
		})
	}
}
