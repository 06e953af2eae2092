package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
)

const requested = engine.Instant(1_790_592_120) // 2026-09-28T10:42:00Z

// situation is what happened to one action under one contract, and when it is looked at.
type situation struct {
	name   string
	blocks string
	params string
	facts  []engine.Fact
	// watermarks by source, and now, in seconds after the request.
	watermarks map[string]int64
	now        int64
	headline   string
	settled    bool
	// next is next_check_at in seconds after the request; -1 for none.
	next int64
}

func fact(source, factType string, seconds int64) engine.Fact {
	return engine.Fact{
		RawRef: fmt.Sprintf("%s.%s@%d", source, factType, seconds), Source: source, Type: factType, SubjectID: "order",
		OccurredAt: requested + engine.Instant(seconds), Attributes: engine.EmptyObject(),
	}
}

const twoEffects = `
expected_effects:
  - effect_observed: {source: stripe, type: refund_created, message: "No refund"}
  - effect_observed: {source: crm, type: note_added}`

const (
	hour = 3600
	day  = 24 * hour
)

var situations = []situation{
	{
		name: "AllEffects", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("crm", "note_added", 2)}, now: 3, settled: true, next: -1,
		headline: "PASS — all 2 expected effects observed within 15m; preconditions, limits and prohibitions respected",
	}, {
		name: "WindowOpen", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 3, next: 900,
		headline: "PENDING — 1 of 2 expected effects observed so far; window closes 2026-09-28T10:57:00Z",
	}, {
		name: "WindowClosesAtItsEnd", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 900, settled: true, next: -1,
		headline: "FAIL — expected effect not observed: crm note_added",
	}, {
		name: "Message", blocks: twoEffects, facts: []engine.Fact{fact("crm", "note_added", 1)}, now: 901, settled: true, next: -1,
		headline: "FAIL — No refund",
	}, {
		name: "WaitingForASource", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 2*hour + 600, watermarks: map[string]int64{"crm": 0}, next: 2*hour + 600 + 900,
		headline: "PENDING — 1 of 2 expected effects observed; window closed 2026-09-28T10:57:00Z, waiting for crm (2h 10m behind) to catch up",
	}, {
		name: "SourceCaughtUp", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 2 * hour, watermarks: map[string]int64{"crm": 900}, settled: true, next: -1,
		headline: "FAIL — expected effect not observed: crm note_added",
	}, {
		name: "WaitRanOut", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 3 * day, watermarks: map[string]int64{"crm": 0}, settled: true, next: -1,
		headline: "FAIL — expected effect not observed: crm note_added (crm (3d behind) at settlement)",
	}, {
		name: "UnrelatedSourceMayLag", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 901, watermarks: map[string]int64{"zendesk": 0}, settled: true, next: -1,
		headline: "FAIL — expected effect not observed: crm note_added",
	}, {
		name: "NoFacts", blocks: twoEffects, now: 901, settled: true, next: -1,
		headline: "UNKNOWN — Subject not found in fact sources",
	}, {
		name: "LimitWhilePending", blocks: "limits: [{param_max: {param: amount, max: 250}}]" + twoEffects, params: `{"amount":400}`, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 3, next: 900,
		headline: "FAIL — limit exceeded: amount at most 250 (was 400)",
	}, {
		name: "AllowedValues", blocks: "limits: [{param_in: {param: reason, values: [damaged, lost]}}]" + twoEffects, params: `{"reason":"Bored"}`, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 901, settled: true, next: -1,
		headline: "FAIL — limit exceeded: reason one of damaged, lost (was Bored)",
	}, {
		name: "ForbiddenEffect", blocks: "forbidden_effects: [{effect_count_exceeds: {type: refund_created}}]" + twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("stripe", "refund_created", 2)}, now: 901, settled: true, next: -1,
		headline: "FAIL — forbidden effect observed: more than 1 refund_created within 15m",
	}, {
		name: "AggregateLimit", blocks: "aggregate_limits: [{aggregate_max: {type: refund_created, max: 0, over: 1d, message: Too many refunds}}]" + twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1)}, now: 901, settled: true, next: -1,
		headline: "FAIL — Too many refunds (was 1)",
	}, {
		name: "Reversal", blocks: "reversed_by: [{effect_observed: {source: stripe, type: refund_failed, message: The refund failed}}]" + twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("crm", "note_added", 2), fact("stripe", "refund_failed", 3)}, now: 901, settled: true, next: -1,
		headline: "FAIL — The refund failed",
	}, {
		name: "D28_HeldToTheClose", blocks: "settle: at_close" + twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("crm", "note_added", 2)}, now: 3, next: 900,
		headline: "PENDING — 2 of 2 expected effects observed so far; window closes 2026-09-28T10:57:00Z",
	}, {
		name: "D28_ClosedPass", blocks: "settle: at_close" + twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("crm", "note_added", 2)}, now: 900, settled: true, next: -1,
		headline: "PASS — all 2 expected effects observed within 15m; preconditions, limits and prohibitions respected",
	},
}

func TestD26_HeadlinesAndSettlement(t *testing.T) {
	t.Parallel()
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := s.report(t)
			if r.Summary.Headline != s.headline {
				t.Errorf("headline is %q, want %q", r.Summary.Headline, s.headline)
			}
			if r.Settlement.Settled != s.settled {
				t.Errorf("settled is %t, want %t", r.Settlement.Settled, s.settled)
			}
			next := int64(-1)
			if r.Settlement.NextCheckAt != nil {
				next = int64(*r.Settlement.NextCheckAt - requested)
			}
			if next != s.next {
				t.Errorf("next check is %d seconds after the request, want %d", next, s.next)
			}
		})
	}
}

func (s situation) report(t *testing.T) report.Report {
	t.Helper()
	c := parse(t, s.blocks)
	action := engine.Action{ActionID: "act-1", SubjectID: "order", RequestedAt: requested}
	if s.params != "" {
		params, err := engine.ParseObject([]byte(s.params))
		if err != nil {
			t.Fatal(err)
		}
		action.Params = params
	}
	snapshot := &engine.Snapshot{
		Tenant: "t", Actions: []engine.Action{action}, Peers: []engine.Action{action},
		Facts: map[string][]engine.Fact{"order": s.facts}, Sources: map[string]engine.Source{},
	}
	for name, seconds := range s.watermarks {
		watermark := requested + engine.Instant(seconds)
		snapshot.Sources[name] = engine.Source{Name: name, Watermark: &watermark}
	}
	return verify(c, snapshot, requested+engine.Instant(s.now))
}

func parse(t *testing.T, blocks string) *contract.Contract {
	t.Helper()
	text := "id: under_test\nversion: 1\nkind: action\nvendor: internal\nvendor_display: x\ndescription: x\nsource_citation: {url: 'internal://x', retrieved: '2026-09-28', title: x}\naction:\n  window: 15m\n  " +
		strings.ReplaceAll(blocks, "\n", "\n  ") + "\n"
	c, diagnostics := contract.Parse("under_test.yaml", []byte(text))
	if len(diagnostics) > 0 {
		t.Fatalf("contract is refused: %v\n%s", diagnostics, text)
	}
	return c
}

// verify reports the only action of a snapshot.
func verify(c *contract.Contract, snapshot *engine.Snapshot, now engine.Instant) report.Report {
	return report.Make(c, snapshot, snapshot.Actions[0], goeval.Evaluate(c, snapshot)[0], now, report.DefaultSettings())
}
