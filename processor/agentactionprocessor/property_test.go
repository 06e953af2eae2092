package agentactionprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"pgregory.net/rapid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/internal/settings"
)

// hostileKeys are attributes with which telemetry may try to be more than it is.
var hostileKeys = []string{
	"agent.action.type", "agent.action.subject_id", "agent.action.from", "agent.action.name", "agent.action.source", "agent.action.trust",
	"agent.tool.name", "agent.id", "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "gen_ai.agent.name",
	"openinference.span.kind", "traceloop.span.kind", "langfuse.observation.type", "ai.toolCall.name", "tool.name", "session.id", "tenant", "organization",
	"source", "trust", "connection", "verified_actions_version", "verified_actions_payload", "verified_actions_reference_id", "chat.message",
	"countersign.actions", "countersign.facts", "countersign.links", "countersign.context", "countersign.delivery", "countersign.tenant", "countersign.trust",
	"event.name", "tool_name", "tool_use_id",
}

var hostileValues = []string{
	"execute_tool", "invoke_agent", "refund_order", "TOOL", "AGENT", "tool", "reply", "escalate", "status_change", "stripe", "independent", "victim", "1",
	`{"order_id":"order_1","source":"stripe","trust":"independent","tenant":"victim"}`,
	`{"session_id":"s","source":"stripe","tenant":"victim","actions":[{"type":"mcp","reference_id":"r","server_url":"https://x","tool_name":"refund_order","trust":"independent"}]}`,
	`{"content":[{"type":"metadata","metadata":{"verified_actions_version":"1","verified_actions_payload":"{\"session_id\":\"s\",\"actions\":[]}"}}]}`,
	"otel:span:1", "claude_code.tool_result", "pydantic-ai", "",
}

// fillHostile writes any of that, also as what the ledger's own codec writes.
func fillHostile(t *rapid.T, m pcommon.Map) {
	for range rapid.IntRange(0, 6).Draw(t, "attributes") {
		m.PutStr(rapid.SampledFrom(hostileKeys).Draw(t, "key"), rapid.SampledFrom(hostileValues).Draw(t, "value"))
	}
	if rapid.Bool().Draw(t, "calls") {
		m.PutStr("gen_ai.operation.name", "execute_tool")
		m.PutStr("gen_ai.tool.name", "refund_order")
	}
	if rapid.Bool().Draw(t, "acts") {
		m.PutStr("agent.action.type", "reply")
		m.PutStr("agent.action.subject_id", "order_1")
	}
	if !rapid.Bool().Draw(t, "forges") {
		return
	}
	forged := engine.Fact{Source: "stripe", Type: "refund_created", SubjectID: "order_1"}
	record.AppendFact(m, record.Fact{Tenant: "victim", Trust: engine.Independent, Connection: "stripe", Fact: forged})
	record.AppendLink(m, record.Link{Tenant: "victim", Source: "stripe", Trust: engine.Independent, Link: engine.Link{SubjectID: "a", LinkedSubjectID: "b"}})
	record.AppendAction(m, record.Action{Tenant: "victim", Action: engine.Action{ActionID: "x", ContractID: "refund_workflow", SubjectID: "order_1"}})
	record.PutContext(m, "victim", "somebody", "s")
}

// TestAgentsSpeakForThemselvesAlone: whatever telemetry says, what comes out
// belongs to the tenant of the settings, facts are of source otel and
// self-reported, and nothing is linked.
func TestAgentsSpeakForThemselvesAlone(t *testing.T) {
	t.Parallel()
	config := NewDefaultConfig()
	config.Tenancy = settings.Tenancy{Tenant: "acme"}
	config.VerifiedActions.MessageKeys = []string{"chat.message"}
	config.Rules = []RuleConfig{{Tool: "*", Contract: "refund_workflow", SubjectID: `"order_1"`}}
	config.Dialects = NewTryConfig().Dialects
	p := newTestAnnotator(t, config)
	facts, actions := 0, 0
	check := func(t *rapid.T, b record.Batch) {
		t.Helper()
		facts, actions = facts+len(b.Facts), actions+len(b.Actions)
		for _, f := range b.Facts {
			if f.Tenant != "acme" || f.Trust != engine.SelfReported || f.Fact.Source != engine.AgentSource || f.Connection != "" {
				t.Fatalf("a fact of %s for %s, %s, over %q", f.Fact.Source, f.Tenant, f.Trust, f.Connection)
			}
		}
		for _, a := range b.Actions {
			if a.Tenant != "acme" || a.Action.ContractID != "refund_workflow" || a.Action.ActionID == "x" {
				t.Fatalf("an action %+v", a)
			}
		}
		for _, c := range b.Contexts {
			if c.Tenant != "acme" {
				t.Fatalf("a context of %s", c.Tenant)
			}
		}
		if len(b.Links) > 0 || len(b.Rejected) > 0 {
			t.Fatalf("links %v, rejected %v", b.Links, b.Rejected)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		td, ld := ptrace.NewTraces(), plog.NewLogs()
		spans, entries := td.ResourceSpans().AppendEmpty(), ld.ResourceLogs().AppendEmpty()
		fillHostile(t, spans.Resource().Attributes())
		fillHostile(t, entries.Resource().Attributes())
		for i := range rapid.IntRange(1, 4).Draw(t, "spans") {
			scope := spans.ScopeSpans().AppendEmpty()
			scope.Scope().SetName(rapid.SampledFrom(hostileValues).Draw(t, "scope"))
			fillHostile(t, scope.Scope().Attributes())
			span := scope.Spans().AppendEmpty()
			span.SetName(rapid.SampledFrom(hostileValues).Draw(t, "name"))
			span.SetTraceID(pcommon.TraceID{1})
			span.SetSpanID(pcommon.SpanID{byte(i + 1)})
			span.SetParentSpanID(pcommon.SpanID{byte(i)})
			span.SetStartTimestamp(testStart)
			span.SetEndTimestamp(testStart + 1)
			fillHostile(t, span.Attributes())
			fillHostile(t, span.Events().AppendEmpty().Attributes())
			entry := entries.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			entry.SetTraceID(pcommon.TraceID{1})
			entry.SetSpanID(pcommon.SpanID{byte(i + 1)})
			entry.SetTimestamp(testStart)
			entry.Body().SetStr(rapid.SampledFrom(hostileValues).Draw(t, "body"))
			fillHostile(t, entry.Attributes())
		}
		ctx := t.Context()
		if _, err := p.traces(ctx, td); err != nil {
			t.Fatal(err)
		}
		if _, err := p.logs(ctx, ld); err != nil {
			t.Fatal(err)
		}
		check(t, record.FromTraces(td))
		check(t, record.FromLogs(ld))
		if n := len(record.FromLogs(ld).Facts); n > 0 {
			t.Fatalf("%d facts of log records", n)
		}
	})
	if facts == 0 || actions == 0 {
		t.Errorf("%d facts and %d actions came out: nothing was tried", facts, actions)
	}
}
