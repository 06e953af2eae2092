package agentactionprocessor

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/internal/metadatatest"
)

func object(t *testing.T, text string) engine.Object {
	t.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

var compareObjects = cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })

// refundAction is what refundRule makes of refundSpan.
func refundAction(t *testing.T) engine.Action {
	return engine.Action{
		ActionID: testTrace + "-call_1", ContractID: "refund_workflow", AgentID: "whatsapp-support-agent",
		SubjectID: "order_10231", SubjectKind: "order", RequestedAt: 1790592120,
		Params:  object(t, `{"order_id":"order_10231","amount":180.50,"currency":"USD"}`),
		TraceID: testTrace, SpanID: testSpan, Tool: "refund_order", ReportedOutcome: "success",
	}
}

func TestToolCallBecomesAnAction(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	got := process(t, td, refundRule())
	want := record.Batch{Actions: []record.Action{{Action: refundAction(t), StartedNanos: int64(testStart)}}}
	if diff := cmp.Diff(want, got, compareObjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if text := problem(td); text != "" {
		t.Errorf("problem: %s", text)
	}
}

func TestEveryFieldOfARule(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("flow", "wf_cancel_and_refund")
	a := firstSpan(td).Attributes()
	a.PutStr("key", "act_demo_refund_001")
	a.PutStr("corrects", "act_0")
	a.PutStr("asked", "2026-09-28T12:41:00.5+02:00")
	got := process(t, td, RuleConfig{
		Tool: "refund_*", Condition: `ToolArgument("amount") >= 180.5 and ReportedOutcome() == "success"`,
		Contract: "Refund_Workflow", ContractVersion: 3,
		ActionID: `span.attributes["key"]`, SubjectID: `Concat(["shop", ToolArgument("order_id")], "/")`,
		SubjectKind: "Order", ActionType: "refund_order",
		WorkflowID: `resource.attributes["flow"]`, AgentID: `Concat([AgentID(), "eu"], "@")`, Channel: `"whatsapp"`,
		Compensates: `span.attributes["corrects"]`, RequestedAt: `span.attributes["asked"]`,
		Params: ParamsConfig{Values: map[string]string{
			"Amount": `ToolArgument("amount")`, "cents": `ToolArgument("amount") * 100`, "id": "ToolCallID()",
			"tool": "ToolName()", "missing": `ToolArgument("nothing")`, "all": "ToolArgument()",
		}},
	})
	want := engine.Action{
		ActionID: "act_demo_refund_001", ContractID: "refund_workflow", ContractVersion: 3,
		WorkflowID: "wf_cancel_and_refund", AgentID: "whatsapp-support-agent@eu", ActionType: "refund_order",
		SubjectID: "shop/order_10231", SubjectKind: "order", RequestedAt: 1790592060,
		Params: object(t, `{"amount":180.50,"cents":18050,"id":"call_1","tool":"refund_order",
			"all":{"amount":180.5,"currency":"USD","order_id":"order_10231"}}`),
		Channel: "whatsapp", Compensates: "act_0",
		TraceID: testTrace, SpanID: testSpan, Tool: "refund_order", ReportedOutcome: "success",
	}
	if len(got.Actions) != 1 {
		t.Fatalf("%d actions; %s", len(got.Actions), problem(td))
	}
	if diff := cmp.Diff(want, got.Actions[0].Action, compareObjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestD13_Identity(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	for name, tc := range map[string]struct {
		change func(ptrace.Span)
		want   string
	}{
		"call id is prefixed by the trace":      {func(ptrace.Span) {}, testTrace + "-call_1"},
		"without a call id, trace and span":     {func(s ptrace.Span) { s.Attributes().Remove("gen_ai.tool.call.id") }, testTrace + "-" + testSpan},
		"a call id that leaves no room":         {func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.id", long) }, testTrace + "-" + testSpan},
		"without a trace, the session prefixes": {noTraceButSession, "sess-42-call_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := refundTraces()
			tc.change(firstSpan(td))
			got := process(t, td, refundRule())
			if len(got.Actions) != 1 || got.Actions[0].Action.ActionID != tc.want {
				t.Errorf("actions %v (%s), want id %s", got.Actions, problem(td), tc.want)
			}
		})
	}
}

func noTraceButSession(span ptrace.Span) {
	span.SetTraceID(pcommon.TraceID{})
	span.Attributes().PutStr("gen_ai.conversation.id", "sess-42")
}

func TestD14_WhatCannotBeRecordedPassesMarked(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(ptrace.Span)
		rule   func(*RuleConfig)
		want   string
	}{
		"no subject": {
			change: func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.arguments", `{}`) },
			want:   "rules[0]: not recorded: subject_id: ToolArgument(\"order_id\") gave no value",
		},
		"a subject with a hole": {
			rule: func(r *RuleConfig) { r.SubjectID = `Concat(["order", ToolArgument("nothing")], "_")` },
			want: "rules[0]: not recorded: subject_id: a part of the expression gave no value",
		},
		"a subject that is a map": {
			rule: func(r *RuleConfig) { r.SubjectID = `ToolArgument()`; r.Name = "refunds" },
			want: "refunds: not recorded: subject_id: it is a map; text or a number is needed",
		},
		"a subject that is too long": {
			change: func(s ptrace.Span) {
				s.Attributes().PutStr("gen_ai.tool.call.arguments", `{"order_id":"`+strings.Repeat("x", 513)+`"}`)
			},
			want: "rules[0]: not recorded: invalid action: invalid id: subject_id has 513 bytes; at most 512 are allowed",
		},
		"no time": {
			change: func(s ptrace.Span) { s.SetStartTimestamp(0) },
			want:   "rules[0]: not recorded: requested_at: the telemetry has no time; set requested_at in the rule",
		},
		"a time that is none": {
			rule: func(r *RuleConfig) { r.RequestedAt = `ToolArgument("currency")` },
			want: `rules[0]: not recorded: requested_at: invalid time: "USD" is not an RFC 3339 time like 2026-09-28T10:42:00Z`,
		},
		"no id": {
			change: func(s ptrace.Span) {
				s.SetTraceID(pcommon.TraceID{})
				s.Attributes().Remove("gen_ai.tool.call.id")
			},
			want: "rules[0]: not recorded: action_id: the telemetry has no trace id and no call id; set action_id in the rule",
		},
		"a condition that fails": {
			rule: func(r *RuleConfig) { r.Condition = `Len(ToolArgument("nothing")) > 1` },
			want: "rules[0]: not recorded: condition: Len: unsupported target type <nil>. target arg must be of type string, []any, map[string]any, pcommon.Map, " +
				"pcommon.Slice, pcommon.Value (of type String, Map, Slice) or a supported slice type from the plog, pmetric or ptrace packages",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td, rule := refundTraces(), refundRule()
			if tc.change != nil {
				tc.change(firstSpan(td))
			}
			if tc.rule != nil {
				tc.rule(&rule)
			}
			got := process(t, td, rule)
			if !got.Empty() {
				t.Errorf("recorded %+v", got)
			}
			if diff := cmp.Diff(tc.want, problem(td)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFieldsThatDoNotWorkAreLeftOut(t *testing.T) {
	t.Parallel()
	td, rule := refundTraces(), refundRule()
	rule.Channel = `ToolArgument()`
	rule.WorkflowID = `Concat(["wf", ToolArgument("nothing")], "_")`
	rule.Params = ParamsConfig{Values: map[string]string{"amount": `ToolArgument("amount")`, "bad": `Len(1)`}}
	got := process(t, td, rule)
	if len(got.Actions) != 1 || got.Actions[0].Action.Params.Text() != `{"amount":180.50}` {
		t.Fatalf("recorded %+v", got)
	}
	want := "rules[0]: recorded without: workflow_id: a part of the expression gave no value\n" +
		"channel: it is a map; text or a number is needed\n" +
		"params.bad: Len: unsupported target type int64. target arg must be of type string, []any, map[string]any, pcommon.Map, " +
		"pcommon.Slice, pcommon.Value (of type String, Map, Slice) or a supported slice type from the plog, pmetric or ptrace packages"
	if diff := cmp.Diff(want, problem(td)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestALostParamHidesNoOther: an agent that makes one parameter unreadable
// must not thereby hide another from the limit that reads it. The operator
// hears of it, by name of the parameter and without what the agent sent.
func TestALostParamHidesNoOther(t *testing.T) {
	t.Parallel()
	half := strings.Repeat("secret", 6<<10) // two of these are too many
	for name, tc := range map[string]struct {
		arguments map[string]any
		params    string // of those that are recorded
		lost      []string
		outcome   string
		problem   string
	}{
		"too deep": {
			map[string]any{"amount": 400, "note": deep(20)}, `{"amount":400}`, []string{"note"}, withoutParam,
			"rules[0]: recorded without: params: invalid JSON object: /note" + strings.Repeat("/0", 15) + " is nested deeper than 16 levels",
		},
		"too large together": {
			map[string]any{"amount": 400, "note": half, "memo": half + "!"}, `{"amount":400,"note":"` + half + `"}`, []string{"memo"}, withoutParam,
			"rules[0]: recorded without: params.memo: left out, being the largest: invalid JSON object: the document has 73763 bytes; at most 65536 are allowed",
		},
		"nothing is left": {
			map[string]any{"note": deep(20)}, "null", []string{"note"}, withoutParams,
			"rules[0]: recorded without: params: invalid JSON object: /note" + strings.Repeat("/0", 15) + " is nested deeper than 16 levels",
		},
		"all is well": {map[string]any{"amount": 400, "note": "x"}, `{"amount":400,"note":"x"}`, nil, recorded, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td, rule := refundTraces(), refundRule()
			rule.SubjectID = `"order_10231"`
			rule.Params = ParamsConfig{Values: map[string]string{
				"amount": `ToolArgument("amount")`, "note": `ToolArgument("note")`, "memo": `span.attributes["memo"]`,
			}}
			if memo, ok := tc.arguments["memo"].(string); ok {
				firstSpan(td).Attributes().PutStr("memo", memo)
				delete(tc.arguments, "memo")
			}
			arguments, err := json.Marshal(tc.arguments)
			if err != nil {
				t.Fatal(err)
			}
			firstSpan(td).Attributes().PutStr("gen_ai.tool.call.arguments", string(arguments))

			config := NewDefaultConfig()
			config.Rules = []RuleConfig{rule}
			tel := componenttest.NewTelemetry()
			logs, logged := observer.New(zap.InfoLevel)
			settings := tel.NewTelemetrySettings()
			settings.Logger = zap.New(logs)
			p, err := newAnnotator(settings, config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.traces(t.Context(), td); err != nil {
				t.Fatal(err)
			}

			if got := record.FromTraces(td).Actions; len(got) != 1 || got[0].Action.Params.Text() != tc.params {
				t.Errorf("recorded %.200v, want %.100s", got, tc.params)
			}
			if diff := cmp.Diff(tc.problem, problem(td)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			metadatatest.AssertEqualProcessorAgentActionRuleMatches(t, tel, []metricdata.DataPoint[int64]{{
				Value: 1, Attributes: attribute.NewSet(attribute.String("rule", "rules[0]"), attribute.String("outcome", tc.outcome)),
			}}, metricdatatest.IgnoreTimestamp())
			var lost []any
			for _, entry := range logged.All() {
				fields := entry.ContextMap()
				lost, _ = fields["params"].([]any)
				if fields["span_id"] != testSpan || fields["trace_id"] != testTrace || fields["contract_id"] != "refund_workflow" {
					t.Errorf("the log does not say which call it was: %v", fields)
				}
				if strings.Contains(fmt.Sprint(fields), "secret") {
					t.Errorf("what the agent sent is logged: %v", fields)
				}
			}
			if fmt.Sprint(lost) != fmt.Sprint(tc.lost) {
				t.Errorf("logged %v, want %v", lost, tc.lost)
			}
		})
	}
}

func deep(levels int) any {
	var v any = 1
	for range levels {
		v = []any{v}
	}
	return v
}

// TestLogOfLostParamsIsBounded: a batch can make us log so much and no more.
func TestLogOfLostParamsIsBounded(t *testing.T) {
	t.Parallel()
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range 10 * maxReported {
		span := spans.AppendEmpty()
		refundSpan(span, fmt.Sprint("call_", i))
		span.Attributes().PutStr("gen_ai.tool.call.arguments", manyKeys(300))
	}
	rule := refundRule()
	rule.SubjectID = "ToolCallID()"
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{rule}
	logs, logged := observer.New(zap.InfoLevel)
	settings := componenttest.NewNopTelemetrySettings()
	settings.Logger = zap.New(logs)
	p, err := newAnnotator(settings, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	if logged.Len() != maxReported {
		t.Errorf("%d lines are logged of %d calls", logged.Len(), 10*maxReported)
	}
}

func TestSeveralRulesRecordSeveralActions(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	second, third, other := refundRule(), refundRule(), refundRule()
	second.Contract = "payout_workflow"
	other.Tool = "send_order"
	got := process(t, td, refundRule(), other, second, third)
	var ids []string
	for _, a := range got.Actions {
		ids = append(ids, a.Action.ContractID+" "+a.Action.ActionID)
	}
	want := []string{"refund_workflow " + testTrace + "-call_1", "payout_workflow " + testTrace + "-call_1-payout_workflow"}
	if diff := cmp.Diff(want, ids[:min(2, len(ids))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(ids) != 3 || ids[2] != "refund_workflow "+testTrace+"-call_1-refund_workflow" {
		t.Errorf("ids %q", ids)
	}
	fourth := refundRule()
	td = refundTraces()
	process(t, td, refundRule(), third, fourth)
	if want := "rules[2]: not recorded: action_id: an earlier rule records " + testTrace +
		"-call_1 under this id already; set action_id in one of them"; problem(td) != want {
		t.Errorf("problem %q, want %q", problem(td), want)
	}
}

func TestD33_HiddenArgumentsAreNotEmpty(t *testing.T) {
	t.Parallel()
	bySpan := refundRule()
	bySpan.SubjectID = `span.attributes["order"]`
	chosen := bySpan
	chosen.Params = ParamsConfig{Values: map[string]string{"amount": `ToolArgument("amount")`}}
	known := bySpan
	known.Params = ParamsConfig{Values: map[string]string{"order": `span.attributes["order"]`}}
	for name, tc := range map[string]struct {
		arguments string
		rule      RuleConfig
		want      string
	}{
		"hidden, all":               {"<REDACTED>", bySpan, "null"},
		"hidden, chosen":            {"<REDACTED>", chosen, "null"},
		"hidden, known from others": {"<REDACTED>", known, `{"order":"order_10231"}`},
		"empty, all":                {"{}", bySpan, "{}"},
		"empty, chosen":             {"{}", chosen, "{}"},
		"large":                     {`{"text":"` + strings.Repeat("x", 5<<20) + `"}`, bySpan, "null"},
		"too many keys":             {manyKeys(300), bySpan, "null"},
		"too many keys, chosen":     {manyKeys(300), chosen, `{"amount":180}`},
		"too deep":                  {`{"amount":180,"deep":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`, chosen, `{"amount":180}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := refundTraces()
			firstSpan(td).Attributes().PutStr("order", "order_10231")
			firstSpan(td).Attributes().PutStr("gen_ai.tool.call.arguments", tc.arguments)
			got := process(t, td, tc.rule)
			if len(got.Actions) != 1 {
				t.Fatalf("%d actions; %s", len(got.Actions), problem(td))
			}
			if text := got.Actions[0].Action.Params.Text(); text != tc.want {
				t.Errorf("params %.100s, want %s", text, tc.want)
			}
		})
	}
}

func manyKeys(n int) string {
	var b strings.Builder
	b.WriteString(`{"amount":180`)
	for i := range n {
		b.WriteString(`,"k` + strings.Repeat("i", i+1) + `":1`)
	}
	return b.String() + "}"
}

func TestD35_LimitsAreNamed(t *testing.T) {
	t.Parallel()
	td, rule := refundTraces(), refundRule()
	rule.SubjectID = "ToolCallID()"
	firstSpan(td).Attributes().PutStr("gen_ai.tool.call.arguments", `{"text":"`+strings.Repeat("x", 5<<20)+`"}`)
	process(t, td, rule)
	want := "rules[0]: recorded without: params: the arguments have 5242891 bytes or are nested too deep; at most 65536 bytes are read"
	if got := problem(td); got != want {
		t.Errorf("problem %q, want %q", got, want)
	}
}

func TestD34_ReportedOutcome(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	firstSpan(td).Status().SetCode(ptrace.StatusCodeError)
	if got := process(t, td, refundRule()); len(got.Actions) != 1 || got.Actions[0].Action.ReportedOutcome != "error" {
		t.Errorf("recorded %+v", got)
	}
	// A call that the runtime did not execute is no action.
	refused := oneSpan(func(span ptrace.Span) {
		refundSpan(span, "call_1")
		span.Attributes().PutStr("pydantic_ai.tool.failure_stage", "validation")
	})
	refused.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("pydantic-ai")
	results, err := TryTraces(&Config{Rules: []RuleConfig{refundRule()}, VerifiedActions: NewDefaultConfig().VerifiedActions}, refused)
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	if results[0].Outcome != "not_executed" {
		t.Fatalf("the sample is %s, not not_executed", results[0].Outcome)
	}
	if got := process(t, refused, refundRule()); !got.Empty() || problem(refused) != "" {
		t.Errorf("recorded %+v, %s", got, problem(refused))
	}
}

// TestD31_AgentLikeSpansCarryWhoActs: the tool span itself stays as it is.
func TestD31_AgentLikeSpansCarryWhoActs(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	firstSpan(td).Attributes().Remove("gen_ai.agent.name")
	agent := spans.AppendEmpty()
	agent.SetTraceID(firstSpan(td).TraceID())
	agent.SetSpanID(pcommon.SpanID{9})
	agent.SetStartTimestamp(testStart - 1000)
	agent.SetEndTimestamp(testStart + 3_000_000_000)
	agent.Attributes().PutStr("gen_ai.operation.name", "invoke_agent")
	agent.Attributes().PutStr("gen_ai.agent.name", "support")
	agent.Attributes().PutStr("gen_ai.conversation.id", "sess-42")
	got := process(t, td, refundRule())
	want := []record.Context{{
		TraceID: testTrace, SpanID: "0900000000000000",
		StartNanos: int64(testStart) - 1000, EndNanos: int64(testStart) + 3_000_000_000,
		Agent: "support", Session: "sess-42",
	}}
	if diff := cmp.Diff(want, got.Contexts); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(got.Actions) != 1 || got.Actions[0].Action.AgentID != "" {
		t.Errorf("actions %+v", got.Actions)
	}
}

// TestNobodyForgesARecord sends what this project writes, on every level.
func TestNobodyForgesARecord(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	forge := func(m pcommon.Map) {
		record.AppendAction(m, record.Action{Tenant: "victim", Action: engine.Action{
			ActionID: "forged", ContractID: "refund_workflow", SubjectID: "order_1",
		}})
		record.AppendFact(m, record.Fact{Trust: engine.Independent, Fact: engine.Fact{
			Source: "stripe", Type: "refund_created", SubjectID: "order_10231",
		}})
		record.PutContext(m, "victim", "somebody else", "")
		m.PutStr(record.Prefix+"verdict", "PASS")
	}
	resource := td.ResourceSpans().At(0)
	span := firstSpan(td)
	levels := []pcommon.Map{
		resource.Resource().Attributes(), resource.ScopeSpans().At(0).Scope().Attributes(), span.Attributes(),
		span.Events().AppendEmpty().Attributes(), span.Links().AppendEmpty().Attributes(),
	}
	for _, m := range levels {
		m.PutStr("stays", "yes")
		forge(m)
	}
	got := process(t, td, refundRule())
	want := record.Batch{Actions: []record.Action{{Action: refundAction(t), StartedNanos: int64(testStart)}}}
	if diff := cmp.Diff(want, got, compareObjects); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i, m := range levels {
		for key := range m.All() {
			if record.Owned(key) && (i != 2 || key != record.ActionsKey) {
				t.Errorf("level %d keeps %s", i, key)
			}
		}
		if _, ok := m.Get("stays"); !ok {
			t.Errorf("level %d lost an attribute of its own", i)
		}
	}
}

// TestOwnVerdictsAreNoActions: a verdict about a tool call must not be verified in turn.
func TestOwnVerdictsAreNoActions(t *testing.T) {
	t.Parallel()
	td := refundTraces()
	td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("github.com/countersign-otel/countersign/verifier")
	a := firstSpan(td).Attributes()
	a.PutStr(factTypeKey, "reply")
	a.PutStr(factSubjectKey, "ticket_1")
	if got := process(t, td, refundRule()); !got.Empty() || problem(td) != "" {
		t.Errorf("recorded %+v, %s", got, problem(td))
	}
}

// TestSameTelemetrySameActions: twice, shuffled and split.
func TestSameTelemetrySameActions(t *testing.T) {
	t.Parallel()
	ids := func(td ptrace.Traces) []string {
		var ids []string
		for _, a := range process(t, td, refundRule()).Actions {
			ids = append(ids, a.Action.ActionID+a.Action.SubjectID+a.Action.RequestedAt.String()+a.Action.Params.Text())
		}
		slices.Sort(ids)
		return ids
	}
	const spans = 50
	order := make([]int, spans)
	for i := range order {
		order[i] = i
	}
	fill := func(order []int) ptrace.Traces {
		td := ptrace.NewTraces()
		scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
		for _, i := range order {
			span := scope.Spans().AppendEmpty()
			refundSpan(span, "")
			span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		}
		return td
	}
	want := ids(fill(order))
	if len(want) != spans || len(slices.Compact(slices.Clone(want))) != spans {
		t.Fatalf("%d actions, not %d different ones", len(want), spans)
	}
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(spans, func(i, j int) { order[i], order[j] = order[j], order[i] })
	if diff := cmp.Diff(want, ids(fill(order))); diff != "" {
		t.Errorf("shuffled (-want +got):\n%s", diff)
	}
	split := append(ids(fill(order[:20])), ids(fill(order[20:]))...)
	slices.Sort(split)
	if diff := cmp.Diff(want, split); diff != "" {
		t.Errorf("split (-want +got):\n%s", diff)
	}
	// What was processed before gives the same again: the annotations are removed first.
	td := fill(order)
	if diff := cmp.Diff(ids(td), ids(td)); diff != "" {
		t.Errorf("twice through the processor (-first +second):\n%s", diff)
	}
}

// TestHostileValues: nothing that an agent sends stops the batch.
func TestHostileValues(t *testing.T) {
	t.Parallel()
	rule := refundRule()
	rule.SubjectID = "ToolCallID()"
	rule.Params = ParamsConfig{Values: map[string]string{"amount": `span.attributes["amount"]`, "all": "ToolArgument()"}}
	for name, change := range map[string]func(pcommon.Map){
		"NaN":              func(m pcommon.Map) { m.PutDouble("amount", math.NaN()) },
		"infinity":         func(m pcommon.Map) { m.PutDouble("amount", math.Inf(-1)) },
		"U+0000":           func(m pcommon.Map) { m.PutStr("amount", "a\x00b") },
		"broken UTF-8":     func(m pcommon.Map) { m.PutStr("amount", "a\xff\xfeb") },
		"bytes":            func(m pcommon.Map) { m.PutEmptyBytes("amount").Append(0, 255) },
		"list":             func(m pcommon.Map) { m.PutEmptySlice("amount").AppendEmpty().SetDouble(math.NaN()) },
		"map":              func(m pcommon.Map) { m.PutEmptyMap("amount").PutEmpty("") },
		"empty value":      func(m pcommon.Map) { m.PutEmpty("amount") },
		"arguments number": func(m pcommon.Map) { m.PutInt("gen_ai.tool.call.arguments", 7) },
		"arguments deep": func(m pcommon.Map) {
			nest := m.PutEmptyMap("gen_ai.tool.call.arguments")
			for range 2000 {
				nest = nest.PutEmptyMap("a")
			}
		},
		"tool is a number": func(m pcommon.Map) { m.PutInt("gen_ai.tool.name", 7) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := refundTraces()
			change(firstSpan(td).Attributes())
			beside := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
			refundSpan(beside, "call_2")
			beside.SetSpanID(pcommon.SpanID{1})
			got := process(t, td, rule)
			if len(got.Rejected) > 0 {
				t.Errorf("the processor wrote what does not read: %v", got.Rejected)
			}
			if n := len(got.Actions); n == 0 || got.Actions[n-1].Action.SubjectID != "call_2" {
				t.Errorf("the good call beside it is lost: %+v", got.Actions)
			}
		})
	}
}

type authData map[string]any

func (a authData) GetAttribute(name string) any { return a[name] }
func (a authData) GetAttributeNames() []string  { return nil }

func TestD37_Tenant(t *testing.T) {
	t.Parallel()
	withAuth := NewDefaultConfig()
	withAuth.Rules = []RuleConfig{refundRule()}
	withAuth.TenantFromAuth, withAuth.Tenants = "organization", []string{"acme"}
	named := NewDefaultConfig()
	named.Rules, named.Tenant = withAuth.Rules, "globex"
	auth := func(a authData) context.Context {
		return client.NewContext(context.Background(), client.Info{Auth: a})
	}
	for name, tc := range map[string]struct {
		config  *Config
		ctx     context.Context
		want    string
		problem string
	}{
		"named":        {named, context.Background(), "globex", ""},
		"from auth":    {withAuth, auth(authData{"organization": "acme"}), "acme", ""},
		"not allowed":  {withAuth, auth(authData{"organization": "victim"}), "", `tenant: "victim" is not one of the tenants of this processor`},
		"wrong type":   {withAuth, auth(authData{"organization": 7}), "", "tenant: the client's authentication has no text named organization"},
		"without auth": {withAuth, context.Background(), "", "tenant: the client is not authenticated, so there is no organization"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := refundTraces()
			a := firstSpan(td).Attributes()
			a.PutStr(factTypeKey, "reply")
			a.PutStr(factSubjectKey, "ticket_1")
			a.PutStr("organization", "acme")
			p := newTestAnnotator(t, tc.config)
			if _, err := p.traces(tc.ctx, td); err != nil {
				t.Fatal(err)
			}
			got := record.FromTraces(td)
			if tc.problem != "" {
				want := "rules[0]: not recorded: " + tc.problem + "; agent.action: no fact: " + tc.problem
				if !got.Empty() || problem(td) != want {
					t.Errorf("recorded %+v, problem %q, want %q", got, problem(td), want)
				}
				return
			}
			if len(got.Actions) != 1 || got.Actions[0].Tenant != tc.want || len(got.Facts) != 1 || got.Facts[0].Tenant != tc.want {
				t.Errorf("recorded %+v, want tenant %s", got, tc.want)
			}
		})
	}
}

func TestOwnMetrics(t *testing.T) {
	t.Parallel()
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() {
		if err := telemetry.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	config := NewDefaultConfig()
	noSubject := refundRule()
	noSubject.Name, noSubject.SubjectID = "broken", `ToolArgument("nothing")`
	config.Rules = []RuleConfig{refundRule(), noSubject}
	p, err := newAnnotator(telemetry.NewTelemetrySettings(), config)
	if err != nil {
		t.Fatal(err)
	}
	td := refundTraces()
	other := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().AppendEmpty()
	refundSpan(other, "call_2")
	other.Attributes().PutStr("gen_ai.tool.name", "get_weather")
	other.Attributes().PutStr(record.ActionsKey, "forged")
	if _, err := p.traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	point := func(n int64, attributes ...attribute.KeyValue) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Value: n, Attributes: attribute.NewSet(attributes...)}
	}
	text := attribute.String
	metadatatest.AssertEqualProcessorAgentActionToolCalls(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, text("dialect", "genai"), text("outcome", "recorded")),
		point(1, text("dialect", "genai"), text("outcome", "no_rule")),
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorAgentActionRuleMatches(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, text("rule", "rules[0]"), text("outcome", "recorded")),
		point(1, text("rule", "broken"), text("outcome", "no_value")),
	}, metricdatatest.IgnoreTimestamp())
	metadatatest.AssertEqualProcessorAgentActionStrippedAttributes(t, telemetry,
		[]metricdata.DataPoint[int64]{point(1)}, metricdatatest.IgnoreTimestamp())
}

// TestSpansThatAreNoCallsCostNoMemory.
func TestSpansThatAreNoCallsCostNoMemory(t *testing.T) {
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	p := newTestAnnotator(t, config)
	td := plainSpans(100, 10)
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { _, _ = p.traces(ctx, td) }); n > 0 {
		t.Errorf("%v allocations for 100 spans", n)
	}
}
