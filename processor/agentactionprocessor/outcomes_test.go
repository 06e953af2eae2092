package agentactionprocessor

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"gopkg.in/yaml.v3"
)

// TestEveryOutcomeIsCounted: one batch with everything that can become of a
// call, of a rule and of a fact; the metrics say each, and metadata.yaml lists
// these and no others.
func TestEveryOutcomeIsCounted(t *testing.T) {
	t.Parallel()
	rule := func(tool, subject string) RuleConfig {
		return RuleConfig{Name: tool, Tool: tool, Contract: "refund_workflow", SubjectID: subject}
	}
	some, field := rule("some", "ToolCallID()"), rule("field", "ToolCallID()")
	some.Params = ParamsConfig{Values: map[string]string{"amount": `ToolArgument("amount")`, "bad": "Len(1)"}}
	field.Channel = "ToolArgument()"
	broken := rule("broken", "ToolCallID()")
	broken.RequestedAt = `"never"`
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{rule("all", "ToolCallID()"), rule("failing", `ToolArgument("nothing")`), rule("hidden", "ToolCallID()"), some, field, broken}

	td := ptrace.NewTraces()
	plain := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	add := func(fill func(pcommon.Map)) {
		span := plain.Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{2, byte(plain.Spans().Len())})
		span.SetStartTimestamp(testStart)
		span.SetEndTimestamp(testStart)
		fill(span.Attributes())
	}
	for _, tool := range []string{"all", "failing", "hidden", "some", "field", "broken", "nobody's"} {
		add(func(m pcommon.Map) {
			m.PutStr("gen_ai.operation.name", "execute_tool")
			m.PutStr("gen_ai.tool.name", tool)
			m.PutStr("gen_ai.tool.call.id", "call_"+tool)
			m.PutStr("gen_ai.tool.call.arguments", map[bool]string{false: `{"amount":1}`, true: "<REDACTED>"}[tool == "hidden"])
		})
	}
	add(func(m pcommon.Map) { putPayload(m, "{") })
	add(func(m pcommon.Map) {
		m.PutStr("agent.action.type", "reply")
		m.PutStr("agent.action.subject_id", "t_1")
	})
	add(func(m pcommon.Map) {
		m.PutStr("agent.action.type", "reply")
		m.PutStr("agent.action.subject_id", "t\n1")
	})
	add(func(m pcommon.Map) {
		m.PutStr("gen_ai.operation.name", "invoke_agent")
		m.PutStr("gen_ai.agent.name", "a")
	})
	add(func(m pcommon.Map) { m.PutStr("countersign.actions", "forged") })
	plain.Scope().SetName("pydantic-ai")
	add(func(m pcommon.Map) {
		m.PutStr("gen_ai.operation.name", "execute_tool")
		m.PutStr("gen_ai.tool.name", "all")
		m.PutStr("pydantic_ai.tool.failure_stage", "validation")
	})

	tel := componenttest.NewTelemetry()
	t.Cleanup(func() {
		if err := tel.Shutdown(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	p, err := newAnnotator(tel.NewTelemetrySettings(), config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.traces(t.Context(), td); err != nil {
		t.Fatal(err)
	}
	listed := enums(t)
	for _, c := range []struct{ metric, attribute string }{
		{"tool_calls", "call_outcome"}, {"rule_matches", "rule_outcome"}, {"facts", "fact_outcome"},
	} {
		if diff := cmp.Diff(listed[c.attribute], counted(t, tel, c.metric)); diff != "" {
			t.Errorf("outcomes of %s (-metadata.yaml +counted):\n%s", c.metric, diff)
		}
	}
	for _, metric := range []string{"trace_contexts", "stripped_attributes"} {
		if got := counted(t, tel, metric); !slices.Equal(got, []string{""}) {
			t.Errorf("%s: %q", metric, got)
		}
	}
}

// enums are the outcomes that metadata.yaml lists, by name of the attribute.
func enums(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("metadata.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var metadata struct {
		Attributes map[string]struct {
			Enum []string `yaml:"enum"`
		} `yaml:"attributes"`
	}
	if err := yaml.Unmarshal(text, &metadata); err != nil {
		t.Fatal(err)
	}
	listed := map[string][]string{}
	for name, attribute := range metadata.Attributes {
		listed[name] = slices.Sorted(slices.Values(attribute.Enum))
	}
	return listed
}

// counted are the outcomes for which a metric counted anything.
func counted(t *testing.T, tel *componenttest.Telemetry, name string) []string {
	t.Helper()
	metric, err := tel.GetMetric("otelcol_processor_agent_action_" + name)
	if err != nil {
		t.Fatal(err)
	}
	sum, ok := metric.Data.(metricdata.Sum[int64])
	if !ok {
		t.Fatalf("%s is no sum", name)
	}
	outcomes := map[string]bool{}
	for _, point := range sum.DataPoints {
		outcome, _ := point.Attributes.Value("outcome")
		outcomes[outcome.AsString()] = outcomes[outcome.AsString()] || point.Value > 0
	}
	found := []string{}
	for outcome, positive := range outcomes {
		if positive {
			found = append(found, outcome)
		}
	}
	slices.Sort(found)
	return found
}
