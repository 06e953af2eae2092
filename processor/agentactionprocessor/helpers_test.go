package agentactionprocessor

import (
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record"
)

const (
	testTrace = "0102030405060708090a0b0c0d0e0f10"
	testSpan  = "1112131415161718"
	// testStart is 2026-09-28T10:42:00.9Z.
	testStart = pcommon.Timestamp(1790592120900000000)
)

// refundRule records refund_order calls, as the specification's example does.
func refundRule() RuleConfig {
	return RuleConfig{
		Tool: "refund_order", Contract: "refund_workflow",
		SubjectID: `ToolArgument("order_id")`, SubjectKind: "order",
	}
}

// refundSpan makes a tool-call span of the GenAI conventions.
func refundSpan(span ptrace.Span, callID string) {
	span.SetName("execute_tool refund_order")
	span.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	span.SetSpanID(pcommon.SpanID{17, 18, 19, 20, 21, 22, 23, 24})
	span.SetStartTimestamp(testStart)
	span.SetEndTimestamp(testStart + 2_000_000_000)
	a := span.Attributes()
	a.PutStr("gen_ai.operation.name", "execute_tool")
	a.PutStr("gen_ai.tool.name", "refund_order")
	if callID != "" {
		a.PutStr("gen_ai.tool.call.id", callID)
	}
	a.PutStr("gen_ai.tool.call.arguments", `{"order_id":"order_10231","amount":180.50,"currency":"USD"}`)
	a.PutStr("gen_ai.agent.name", "whatsapp-support-agent")
}

// oneSpan is a batch of one span.
func oneSpan(fill func(ptrace.Span)) ptrace.Traces {
	td := ptrace.NewTraces()
	fill(td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty())
	return td
}

func refundTraces() ptrace.Traces {
	return oneSpan(func(span ptrace.Span) { refundSpan(span, "call_1") })
}

func firstSpan(td ptrace.Traces) ptrace.Span {
	return td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
}

// process runs the processor of these rules over a batch and reads what it recorded.
func process(t *testing.T, td ptrace.Traces, rules ...RuleConfig) record.Batch {
	t.Helper()
	config := NewDefaultConfig()
	config.Rules = rules
	return processWith(t, td, config)
}

func processWith(t *testing.T, td ptrace.Traces, config *Config) record.Batch {
	t.Helper()
	p := newTestAnnotator(t, config)
	if _, err := p.traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	return record.FromTraces(td)
}

func newTestAnnotator(t *testing.T, config *Config) *annotator {
	t.Helper()
	p, err := newAnnotator(componenttest.NewNopTelemetrySettings(), config)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// problem is what the processor wrote on the first span of a batch.
func problem(td ptrace.Traces) string {
	text, _ := firstSpan(td).Attributes().Get(record.ErrorKey)
	if text == (pcommon.Value{}) {
		return ""
	}
	return text.Str()
}
