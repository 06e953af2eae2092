package agentactionprocessor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
)

const verifiedPayload = `{"session_id":"sess-42","actions":[
  {"type":"integration","reference_id":"rcpt-1","status":"success","duration_ms":5,"integration":"shop","tool_name":"refund_order"},
  {"type":"web","reference_id":"rcpt-2","status":"error","url":"https://shop.example/orders/10231","method":"POST","status_code":500},
  {"type":"shell","reference_id":"rcpt-3"},
  {"type":"mcp","reference_id":"rcpt-4","server_url":"https://mcp.example","tool_name":"refund_order"}]}`

// verifiedRules record every receipt: by tool name, and web calls by type.
func verifiedRules(subject string) []RuleConfig {
	return []RuleConfig{
		{Tool: "refund_order", Contract: "refund_workflow", SubjectID: subject},
		{VerifiedAction: "web", Contract: "web_workflow", SubjectID: subject, Condition: `ToolArgument("status_code") >= 400`},
	}
}

// verifiedAction is the action that verifiedRules make of a receipt.
func verifiedAction(t *testing.T, contract, reference, tool, outcome, params string) engine.Action {
	return engine.Action{
		ActionID: reference, ReferenceID: reference, ContractID: contract, SubjectID: "order_10231",
		RequestedAt: 1790592120, Params: object(t, params), TraceID: testTrace, SpanID: testSpan,
		SessionID: "sess-42", Tool: tool, ReportedOutcome: outcome,
	}
}

func wantVerified(t *testing.T) []engine.Action {
	return []engine.Action{
		verifiedAction(t, "refund_workflow", "rcpt-1", "refund_order", "success", `{"integration":"shop","tool_name":"refund_order"}`),
		verifiedAction(t, "web_workflow", "rcpt-2", "", "error", `{"url":"https://shop.example/orders/10231","method":"POST","status_code":500}`),
		verifiedAction(t, "refund_workflow", "rcpt-4", "refund_order", "unknown", `{"server_url":"https://mcp.example","tool_name":"refund_order"}`),
	}
}

const shellProblem = `verified actions: actions[2]: invalid verified action: type "shell": write web, llm, mcp or integration`

func recordedActions(b record.Batch) []engine.Action {
	var actions []engine.Action
	for _, a := range b.Actions {
		actions = append(actions, a.Action)
	}
	return actions
}

func chatMessage(t *testing.T) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"timestamp": "2026-09-28T10:42:00.5Z", "msg_id": "m",
		"content": []any{
			map[string]any{"type": "text", "text": "refunded"},
			map[string]any{"type": "metadata", "metadata": map[string]string{
				"verified_actions_version": "1.0", "verified_actions_payload": verifiedPayload,
			}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func putMetadata(m pcommon.Map) {
	m.PutStr("verified_actions_version", "7.0-next")
	m.PutStr("verified_actions_payload", verifiedPayload)
}

func TestVerifiedActionsOfSpans(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fill   func(ptrace.Span)
		config func(*Config)
	}{
		"attributes": {fill: func(s ptrace.Span) { putMetadata(s.Attributes()) }},
		"an event":   {fill: func(s ptrace.Span) { putMetadata(s.Events().AppendEmpty().Attributes()) }},
		"keys of one's own": {
			fill: func(s ptrace.Span) {
				s.Attributes().PutInt("va.v", 1)
				s.Attributes().PutStr("va.p", verifiedPayload)
			},
			config: func(c *Config) { c.VerifiedActions.VersionKey, c.VerifiedActions.PayloadKey = "va.v", "va.p" },
		},
		"a chat message": {
			fill:   func(s ptrace.Span) { s.Attributes().PutStr("chat.message", chatMessage(t)) },
			config: func(c *Config) { c.VerifiedActions.MessageKeys = []string{"chat.message"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := NewDefaultConfig()
			config.Rules = verifiedRules(`span.attributes["order"]`)
			if tc.config != nil {
				tc.config(config)
			}
			td := oneSpan(func(span ptrace.Span) {
				span.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
				span.SetSpanID(pcommon.SpanID{17, 18, 19, 20, 21, 22, 23, 24})
				span.SetStartTimestamp(testStart)
				span.Attributes().PutStr("order", "order_10231")
				tc.fill(span)
			})
			got := processWith(t, td, config)
			if diff := cmp.Diff(wantVerified(t), recordedActions(got), compareObjects); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(shellProblem, problem(td)); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

func TestVerifiedActionsOfLogs(t *testing.T) {
	t.Parallel()
	for name, fill := range map[string]func(plog.LogRecord){
		"attributes":        func(r plog.LogRecord) { putMetadata(r.Attributes()) },
		"body map":          func(r plog.LogRecord) { putMetadata(r.Body().SetEmptyMap()) },
		"body chat message": func(r plog.LogRecord) { r.Body().SetStr(chatMessage(t)) },
		"version, then body": func(r plog.LogRecord) {
			r.Attributes().PutStr("verified_actions_version", "1")
			r.Body().SetStr(verifiedPayload)
		},
		"body chat message as a structure": func(r plog.LogRecord) {
			var message map[string]any
			if err := json.Unmarshal([]byte(chatMessage(t)), &message); err != nil {
				t.Error(err)
			}
			if err := r.Body().SetEmptyMap().FromRaw(message); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := NewDefaultConfig()
			config.Rules = verifiedRules(`log.attributes["order"]`)
			ld := plog.NewLogs()
			entry := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			entry.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
			entry.SetSpanID(pcommon.SpanID{17, 18, 19, 20, 21, 22, 23, 24})
			entry.SetTimestamp(testStart)
			entry.Attributes().PutStr("order", "order_10231")
			entry.Attributes().PutStr(record.ActionsKey, "forged")
			fill(entry)
			p := newTestAnnotator(t, config)
			if _, err := p.logs(t.Context(), ld); err != nil {
				t.Fatal(err)
			}
			got := record.FromLogs(ld)
			if diff := cmp.Diff(wantVerified(t), recordedActions(got), compareObjects); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			text, _ := entry.Attributes().Get(record.ErrorKey)
			if diff := cmp.Diff(shellProblem, text.Str()); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMetadataWithoutAVersionIsSomebodyElses, and so is a body that only looks alike.
func TestMetadataWithoutAVersionIsSomebodyElses(t *testing.T) {
	t.Parallel()
	td := oneSpan(func(s ptrace.Span) {
		putMetadata(s.Attributes())
		s.Attributes().Remove("verified_actions_version")
	})
	if got := process(t, td, verifiedRules("SessionID()")...); !got.Empty() || problem(td) != "" {
		t.Errorf("recorded %+v, %s", got, problem(td))
	}
}

func TestMetadataThatDoesNotReadIsMarked(t *testing.T) {
	t.Parallel()
	td := oneSpan(func(s ptrace.Span) {
		putMetadata(s.Attributes())
		s.Attributes().PutStr("verified_actions_payload", `{"actions":`)
	})
	got := process(t, td, verifiedRules("SessionID()")...)
	want := "verified actions: invalid verified action: the payload does not read: unexpected end of JSON input"
	if !got.Empty() || problem(td) != want {
		t.Errorf("recorded %+v, %q, want %q", got, problem(td), want)
	}
}
