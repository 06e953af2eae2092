package report_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
)

// nearly is what happened near one action, and the hints that follow.
type nearly struct {
	name   string
	blocks string
	facts  []engine.Fact
	// late are facts that came after the verification.
	late []engine.Fact
	// skew is that of stripe.
	skew engine.Duration
	want []string
}

const (
	oneEffect  = "\nexpected_effects: [{effect_observed: {source: stripe, type: refund_created, where: {status: succeeded}}}]"
	anySource  = "\nexpected_effects: [{effect_observed: {type: refund_created, min_trust: shared}}]"
	oneState   = "\npreconditions: [{state_before_action: {source: shopify, type: order_status, where: {status: eligible}, lookback: 1h}}]\nexpected_effects: [{effect_observed: refund_created}]"
	ofTheAgent = "\nexpected_effects: [{effect_observed: {type: refund_created, where_action: {by: agent_id}}}]"
)

func with(f engine.Fact, attributes string) engine.Fact {
	object, err := engine.ParseObject([]byte(attributes))
	if err != nil {
		panic(err)
	}
	f.Attributes = object
	return f
}

func about(f engine.Fact, subject string) engine.Fact {
	f.SubjectID = subject
	return f
}

func refundOf(source string, seconds int64) engine.Fact {
	return with(fact(source, "refund_created", seconds), `{"status":"succeeded"}`)
}

func eligible(source string, seconds int64) engine.Fact {
	return with(fact(source, "order_status", seconds), `{"status":"eligible"}`)
}

var nearMisses = []nearly{
	{name: "Nothing", blocks: oneEffect},
	{name: "Met", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", 1), refundOf("stripe", -1)}},
	{
		name: "ClockAhead", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -15), refundOf("stripe", -16)},
		want: []string{"stripe.refund_created@-15 before 15: occurred 15s before the action was requested (a clock?)"},
	}, {
		name: "MoreThanTheClockSkew", blocks: oneEffect, skew: 10, facts: []engine.Fact{refundOf("stripe", -15)},
		want: []string{"stripe.refund_created@-15 before 5: occurred 15s before the action was requested, more than the clock skew of 10s explains (a clock?)"},
	}, {
		name: "LastOfTheClock", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -299)},
		want: []string{"stripe.refund_created@-299 before 299: occurred 4m before the action was requested (a clock?)"},
	}, {
		name: "NoClock", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -300)},
		want: []string{"stripe.refund_created@-300 before 300: occurred 5m before the action was requested"},
	}, {
		name: "ZoneBefore", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -2*hour+20)},
		want: []string{"stripe.refund_created@-7180 before 7180: occurred 1h 59m before the action was requested (a time zone?)"},
	}, {
		name: "ZoneAfter", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", 2*hour+20)},
		want: []string{"stripe.refund_created@7220 after 6320: occurred 1h 45m after its window of 15m closed, 2h after the action was requested (a time zone?)"},
	}, {
		name: "LargestZone", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -14*hour)},
		want: []string{"stripe.refund_created@-50400 before 50400: occurred 14h before the action was requested (a time zone?)"},
	}, {
		name: "NoZone", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -15*hour)},
		want: []string{"stripe.refund_created@-54000 before 54000: occurred 15h before the action was requested"},
	}, {
		name: "JustClosed", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", 901)},
		want: []string{"stripe.refund_created@901 after 1: occurred 1s after its window of 15m closed"},
	}, {
		name: "TooFar", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -day-1), refundOf("stripe", 900+7*day+1)},
	}, {
		name: "AnotherSource", blocks: oneEffect, facts: []engine.Fact{refundOf("otel", 5), refundOf("otel", -5)},
		want: []string{"otel.refund_created@5 source 0 self_reported: is of otel, and not of stripe"},
	}, {
		name: "AnotherAttribute", blocks: oneEffect, facts: []engine.Fact{with(refundOf("stripe", 5), `{"status":"pending"}`)},
		want: []string{"stripe.refund_created@5 attributes 0: is in time, but without status = succeeded"},
	}, {
		name: "OfTheAction", blocks: ofTheAgent, facts: []engine.Fact{with(refundOf("stripe", 5), `{"by":"bert"}`)},
		want: []string{"stripe.refund_created@5 attributes 0: is in time, but without by = the action's agent_id"},
	}, {
		name: "TwoDifferences", blocks: oneEffect,
		facts: []engine.Fact{with(refundOf("stripe", -5), `{"status":"pending"}`), refundOf("shopify", -5), about(refundOf("stripe", -5), "ORDER"), fact("stripe", "refund_failed", 5)},
	}, {
		name: "AnotherSpelling", blocks: oneEffect, facts: []engine.Fact{about(refundOf("stripe", 5), "ORDER "), about(refundOf("stripe", 6), "Order")},
		want: []string{`stripe.refund_created@5 subject 0: is about "ORDER ", and not about "order"`},
	}, {
		name: "CameSince", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", -5)}, late: []engine.Fact{refundOf("stripe", 5)},
		want: []string{"stripe.refund_created@5 since 0: came since this verification; verify the action again"},
	}, {
		name: "TheLikelierFirst", blocks: oneEffect, facts: []engine.Fact{refundOf("stripe", 3*day), refundOf("shopify", 5), about(refundOf("stripe", 5), "ORDER")},
		want: []string{"shopify.refund_created@5 source 0: is of shopify, and not of stripe"},
	}, {
		name: "BelowTheTrust", blocks: anySource, facts: []engine.Fact{refundOf("otel", -5)},
	}, {
		name: "StateTooLate", blocks: oneState, facts: []engine.Fact{eligible("shopify", 15), fact("x", "refund_created", 1)},
		want: []string{"shopify.order_status@15 after 15: occurred 15s after the action was requested"},
	}, {
		name: "StateOfAnotherZone", blocks: oneState, facts: []engine.Fact{eligible("shopify", hour-30), fact("x", "refund_created", 1)},
		want: []string{"shopify.order_status@3570 after 3570: occurred 59m after the action was requested (a time zone?)"},
	}, {
		name: "StateTooOld", blocks: oneState, facts: []engine.Fact{eligible("shopify", -2*day-hour), fact("x", "refund_created", 1)},
		want: []string{"shopify.order_status@-176400 before 172800: occurred 2d before the lookback of 1h began"},
	}, {
		name: "AnotherState", blocks: oneState, facts: []engine.Fact{with(eligible("shopify", -5), `{"status":"active"}`), eligible("shopify", 15), fact("x", "refund_created", 1)},
	}, {
		name: "OneOfTwo", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", 1), fact("crm", "note_added", -1)},
		want: []string{"crm.note_added@-1 before 1: occurred 1s before the action was requested (a clock?)"},
	}, {
		name: "BothOfTwo", blocks: twoEffects, facts: []engine.Fact{fact("stripe", "refund_created", -2), fact("crm", "note_added", -1)},
		want: []string{"stripe.refund_created@-2 before 2: occurred 2s before the action was requested (a clock?)", "crm.note_added@-1 before 1: occurred 1s before the action was requested (a clock?)"},
	},
}

func TestNearMisses(t *testing.T) {
	t.Parallel()
	for _, n := range nearMisses {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			c := parse(t, n.blocks)
			sources := engine.Sources([]engine.Connection{
				{Source: engine.AgentSource, Trust: engine.Independent}, {Source: "stripe", ClockSkew: n.skew}, {Source: "shopify"}, {Source: "crm"},
			}, nil)
			action := engine.Action{ActionID: "act-1", SubjectID: "order", AgentID: "anna", RequestedAt: requested}
			mine := func(f engine.Fact) bool { return f.SubjectID == action.SubjectID }
			snapshot := &engine.Snapshot{Tenant: "t", Actions: []engine.Action{action}, Peers: []engine.Action{action}, Facts: map[string][]engine.Fact{}, Sources: sources}
			for _, f := range n.facts {
				snapshot.Facts[f.SubjectID] = append(snapshot.Facts[f.SubjectID], f)
			}
			slices.SortFunc(snapshot.Facts["order"], engine.CompareFacts)
			checks := verify(c, snapshot, requested+engine.Instant(day)).Checks
			search := report.NewSearch(c, action, checks)
			since, until := search.Span()
			var facts, alike []engine.Fact
			for _, f := range append(n.facts, n.late...) {
				switch {
				case f.OccurredAt < since || f.OccurredAt > until || !slices.Contains(search.Types(), f.Type):
				case mine(f):
					facts = append(facts, f)
				case slices.Contains(search.Spellings(), f.SubjectID):
					alike = append(alike, f)
				}
			}
			var got []string
			for _, m := range search.Nearest(facts, alike, sources) {
				if checks[m.Check].OK || checks[m.Check].Code != m.Code {
					t.Errorf("hint at check %d, which is %+v", m.Check, checks[m.Check])
				}
				got = append(got, hintText(m))
			}
			if diff := cmp.Diff(n.want, got); diff != "" {
				t.Errorf("hints (-want +got):\n%s", diff)
			}
		})
	}
}

func hintText(m report.NearMiss) string {
	words := []string{m.Fact.RawRef, m.Miss, strconv.FormatInt(m.OffSeconds, 10)}
	if m.Fact.Trust != nil {
		words = append(words, m.Fact.Trust.String())
	}
	return strings.Join(words, " ") + ": " + m.Text
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	for subject, want := range map[string][]string{
		"Order_1": {"Order_1 ", " Order_1", "order_1", "order_1 ", " order_1", "ORDER_1", "ORDER_1 ", " ORDER_1"},
		" ä ":     {"ä", "ä ", " ä", "Ä", "Ä ", " Ä"},
		"42":      {"42 ", " 42"},
	} {
		got := report.NewSearch(parse(t, oneEffect), engine.Action{SubjectID: subject}, nil).Spellings()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", subject, diff)
		}
		if slices.Contains(got, subject) {
			t.Errorf("%q is said to be spelled otherwise", subject)
		}
	}
}
