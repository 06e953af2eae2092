package agentactionprocessor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
)

// factSpan carries agent.action attributes and nothing of a tool call.
func factSpan(kind, subject string) ptrace.Traces {
	return oneSpan(func(span ptrace.Span) {
		span.SetTraceID(pcommon.TraceID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
		span.SetSpanID(pcommon.SpanID{17, 18, 19, 20, 21, 22, 23, 24})
		span.SetStartTimestamp(testStart)
		span.SetEndTimestamp(testStart + 2_000_000_000)
		span.Attributes().PutStr(factTypeKey, kind)
		span.Attributes().PutStr(factSubjectKey, subject)
	})
}

// TestFactOfASpan is the table of AC "OpenTelemetry".
func TestFactOfASpan(t *testing.T) {
	t.Parallel()
	for kind, factType := range map[string]string{
		"status_change": "status_change", "escalate": "escalation", "handoff": "escalation", "reply": "agent_message",
		"close_ticket": "agent_action", "Escalate": "escalation", "status change": "agent_action",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			got := process(t, factSpan(kind, "ticket_9"))
			want := record.Batch{Facts: []record.Fact{{Trust: engine.SelfReported, Fact: engine.Fact{
				RawRef: "otel:span:" + testTrace + "-" + testSpan, Source: "otel", Type: factType,
				SubjectID: "ticket_9", SubjectKind: "ticket", OccurredAt: 1790592122,
				Attributes: object(t, `{"action":"`+kind+`","actor":"agent"}`),
			}}}}
			if diff := cmp.Diff(want, got, compareObjects); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFactAttributes(t *testing.T) {
	t.Parallel()
	td := factSpan("status_change", "ticket_9")
	a := firstSpan(td).Attributes()
	a.PutStr(factFromKey, "open")
	a.PutInt(factToKey, 5)
	a.PutStr(factNameKey, "close_ticket")
	got := process(t, td)
	if len(got.Facts) != 1 {
		t.Fatalf("%+v, %s", got, problem(td))
	}
	want := `{"action":"close_ticket","actor":"agent","from":"open","to":"5"}`
	if text := got.Facts[0].Fact.Attributes.Text(); text != want {
		t.Errorf("attributes %s, want %s", text, want)
	}
}

// TestD10_FactsOfSpansAreSelfReported whatever the span says.
func TestD10_FactsOfSpansAreSelfReported(t *testing.T) {
	t.Parallel()
	td := factSpan("reply", "ticket_9")
	for _, key := range []string{"agent.action.source", "source", "trust", "agent.action.trust", "agent.action.raw_ref"} {
		firstSpan(td).Attributes().PutStr(key, "stripe")
	}
	got := process(t, td)
	if len(got.Facts) != 1 || got.Facts[0].Trust != engine.SelfReported || got.Facts[0].Fact.Source != engine.AgentSource {
		t.Errorf("recorded %+v", got)
	}
}

func TestSpansThatAreNoFacts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(ptrace.Span)
		want   string
	}{
		"no subject": {func(s ptrace.Span) { s.Attributes().Remove(factSubjectKey) }, ""},
		"no type":    {func(s ptrace.Span) { s.Attributes().Remove(factTypeKey) }, ""},
		"on an event": {func(s ptrace.Span) {
			s.Attributes().CopyTo(s.Events().AppendEmpty().Attributes())
			s.Attributes().Clear()
		}, ""},
		"empty subject": {
			func(s ptrace.Span) { s.Attributes().PutStr(factSubjectKey, "") },
			"agent.action: no fact: invalid fact: invalid id: subject_id is empty; 1 to 512 bytes are needed",
		},
		"subject is a map": {
			func(s ptrace.Span) { s.Attributes().PutEmptyMap(factSubjectKey) },
			"agent.action: no fact: agent.action.subject_id: it is a map; text or a number is needed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			td := factSpan("reply", "ticket_9")
			tc.change(firstSpan(td))
			got := process(t, td)
			if !got.Empty() {
				t.Errorf("recorded %+v", got)
			}
			if diff := cmp.Diff(tc.want, problem(td)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestD36_FactWithoutSpanIDs has the reference of its content.
func TestD36_FactWithoutSpanIDs(t *testing.T) {
	t.Parallel()
	td := factSpan("reply", "ticket_9")
	firstSpan(td).SetSpanID(pcommon.SpanID{})
	got := process(t, td)
	want, err := engine.Fact{
		Source: "otel", Type: "agent_message", SubjectID: "ticket_9", SubjectKind: "ticket", OccurredAt: 1790592122,
		Attributes: object(t, `{"action":"reply","actor":"agent"}`),
	}.Normalize()
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Facts) != 1 || got.Facts[0].Fact.RawRef != want.RawRef {
		t.Errorf("recorded %+v, want %s", got, want.RawRef)
	}
}
