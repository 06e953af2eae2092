package agentactionprocessor

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestHostileSizesCostLittle: what an agent sends cannot make the processor
// allocate in proportion to it. Sixteen megabytes are already in memory when
// they come here; next to nothing is added.
func TestHostileSizesCostLittle(t *testing.T) {
	const size, most = 16 << 20, 2 << 20
	filler := strings.Repeat("x", size)
	nested := strings.Repeat("[", size/2) + strings.Repeat("]", size/2)
	rules := []RuleConfig{refundRule(), {Tool: "refund_order", Contract: "refund_workflow", SubjectID: "ToolCallID()", ActionID: `Concat(["x", ToolCallID()], "")`}}
	for name, fill := range map[string]func(ptrace.Span){
		"arguments, one text":    func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.arguments", `{"note":"`+filler+`"}`) },
		"arguments, nested":      func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.arguments", nested) },
		"arguments, Python":      func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.arguments", "{'note': '"+filler+"'}") },
		"arguments, a structure": func(s ptrace.Span) { s.Attributes().PutEmptyMap("gen_ai.tool.call.arguments").PutStr("note", filler) },
		"arguments, many small parts": func(s ptrace.Span) {
			list := s.Attributes().PutEmptySlice("gen_ai.tool.call.arguments")
			list.EnsureCapacity(1 << 18)
			for range 1 << 18 {
				list.AppendEmpty().SetStr("x")
			}
		},
		"result":                    func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.result", nested) },
		"tool name":                 func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.name", filler) },
		"call id":                   func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.tool.call.id", filler) },
		"agent":                     func(s ptrace.Span) { s.Attributes().PutStr("gen_ai.agent.name", filler) },
		"name of an attribute":      func(s ptrace.Span) { s.Attributes().PutStr("countersign."+filler, "x") },
		"verified actions":          func(s ptrace.Span) { putPayload(s.Attributes(), `{"session_id":"s","actions":[`+filler+`]}`) },
		"verified actions, nested":  func(s ptrace.Span) { putPayload(s.Attributes(), nested) },
		"verified actions, session": func(s ptrace.Span) { putPayload(s.Attributes(), `{"session_id":"`+filler+`","actions":[]}`) },
		"fact": func(s ptrace.Span) {
			s.Attributes().PutStr("agent.action.type", "reply")
			s.Attributes().PutStr("agent.action.subject_id", filler)
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := NewDefaultConfig()
			config.Rules = rules
			p, err := newAnnotator(componenttest.NewNopTelemetrySettings(), config)
			if err != nil {
				t.Fatal(err)
			}
			td := refundTraces()
			fill(firstSpan(td))
			used := allocated(t, func() error {
				_, err := p.traces(t.Context(), td)
				return err
			})
			if used > most {
				t.Errorf("%d bytes were allocated for a span of %d", used, size)
			}
		})
	}
	t.Run("a chat message in a log's body", func(t *testing.T) {
		p := newTestAnnotator(t, NewDefaultConfig())
		ld := plog.NewLogs()
		body := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body()
		body.SetStr(`{"content":[{"type":"metadata","metadata":{"verified_actions_version":"1","x":"` + filler + `"}}]}`)
		used := allocated(t, func() error {
			_, err := p.logs(t.Context(), ld)
			return err
		})
		if used > most {
			t.Errorf("%d bytes were allocated for a record of %d", used, size)
		}
	})
}

func putPayload(m pcommon.Map, payload string) {
	m.PutStr("verified_actions_version", "1")
	m.PutStr("verified_actions_payload", payload)
}

// allocated is how many bytes run takes from the heap, freed ones too. The
// test that calls it is not parallel, so that nothing else is counted.
func allocated(t *testing.T, run func() error) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := run(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestManyHostileItemsAreAnswered: a thousand bad actions in one payload cost
// eight errors on the span, not a thousand.
func TestManyHostileItemsAreAnswered(t *testing.T) {
	t.Parallel()
	var actions []string
	for i := range 200 {
		actions = append(actions, fmt.Sprintf(`{"type":"shell","reference_id":"r-%d"}`, i))
	}
	td := oneSpan(func(s ptrace.Span) {
		putPayload(s.Attributes(), `{"session_id":"s","actions":[`+strings.Join(actions, ",")+`]}`)
	})
	if got := process(t, td, refundRule()); len(got.Actions) != 0 {
		t.Errorf("recorded %+v", got)
	}
	if n := strings.Count(problem(td), "verified actions: "); n != maxReported {
		t.Errorf("%d errors are on the span, not %d", n, maxReported)
	}
}
