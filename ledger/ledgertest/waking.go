package ledgertest

import (
	"bytes"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// waiting records an action and leaves it pending, to be checked again a minute after noon.
func (b *bundle) waiting(id, subject string) string {
	b.t.Helper()
	b.record(act(id, subject))
	claimID := engine.ClaimID(acme, id)
	b.settle(claimID, ledger.Pending, engine.NotVerified, noon)
	return claimID
}

// done records an action and settles it.
func (b *bundle) done(id, subject string) string {
	b.t.Helper()
	b.record(act(id, subject))
	claimID := engine.ClaimID(acme, id)
	b.settle(claimID, ledger.Settled, engine.Verified, noon)
	return claimID
}

// triggers are why work is due at a time, by claim; the leases are given back.
func (b *bundle) triggers(now engine.Instant) map[string]string {
	b.t.Helper()
	due := b.leaseDue(owner, now)
	found := map[string]string{}
	for _, d := range due {
		found[d.ClaimID] = d.TriggeredBy
	}
	b.update(func(tx ledger.Tx) error { return tx.ReleaseDue(b.t.Context(), acme, owner, due) })
	return found
}

func exerciseWaking(t *testing.T, open opener) {
	late := noon.Add(engine.Minute).String()

	t.Run("D16_FactsWakeTheirActions", func(t *testing.T) {
		b := setup(t, open)
		mine, linked := b.waiting("mine", "order_1"), b.waiting("linked", "ticket_9")
		b.waiting("far", "order_2")
		b.recordFor(acme, noon, false, act("quiet", "order_1"))
		b.done("settled", "order_1")
		b.link(noon, "order_1", "ticket_9")
		b.settle(mine, ledger.Pending, engine.NotVerified, noon)
		b.settle(linked, ledger.Pending, engine.NotVerified, noon)
		counts := b.ingest(noon+5, b.fact("n2", "crm", "note_added", "order_1", noon+2), b.fact("n1", "crm", "note_added", "order_1", noon+1))
		wantSame(t, "woken", counts.Woken, 2)
		b.wantDue("mine", (noon + 5).String())
		b.wantDue("linked", (noon + 5).String())
		b.wantDue("far", late)
		b.wantDue("quiet", notDue)
		b.wantDue("settled", notDue)
		wantSame(t, "why: the earliest new fact", b.triggers(noon+5), map[string]string{mine: "fact:n1", linked: "fact:n1"})
	})

	t.Run("D16_WhatIsKnownWakesNobody", func(t *testing.T) {
		b := setup(t, open)
		known := b.fact("n1", "crm", "note_added", "order_1", noon)
		b.ingest(noon, known)
		b.link(noon, "order_1", "ticket_9")
		b.waiting("a", "order_1")
		conflict := known
		conflict.OccurredAt++
		wantSame(t, "counts", b.ingest(noon+5, known, conflict), ledger.Ingested{Duplicates: 1, Conflicting: 1, ConflictingRefs: []string{"n1"}})
		wantSame(t, "woken by the link", b.link(noon+5, "ticket_9", "order_1").Woken, 0)
		b.wantDue("a", late)
	})

	t.Run("D16_LinksWakeBothSides", func(t *testing.T) {
		b := setup(t, open)
		one, two := b.waiting("one", "order_1"), b.waiting("two", "ticket_9")
		b.waiting("far", "order_2")
		wantSame(t, "woken", b.link(noon+5, "order_1", "ticket_9").Woken, 2)
		b.wantDue("far", late)
		wantSame(t, "why", b.triggers(noon+5), map[string]string{one: "recheck", two: "recheck"})
	})

	t.Run("WhatIsDueKeepsItsTimeAndReason", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.ingest(noon+5, b.fact("n1", "crm", "note_added", "order_1", noon))
		b.wantDue("a", noon.String())
		wantSame(t, "why", b.triggers(noon+5), map[string]string{engine.ClaimID(acme, "a"): "action"})
	})

	t.Run("D12_WatermarkAtTheCloseWakes", func(t *testing.T) {
		b := setup(t, open)
		a := b.waiting("a", "order_1")
		closes := noon.Add(15 * engine.Minute)
		declare := func(source string, at engine.Instant) int {
			return b.ingestBatch(acme, noon+5, ledger.FactBatch{Watermarks: map[string]engine.Instant{source: at}, Trust: engine.Shared}).Woken
		}
		wantSame(t, "before the close", declare("crm", closes-1), 0)
		wantSame(t, "a source that the contract does not read", declare("messaging", closes), 0)
		b.wantDue("a", late)
		wantSame(t, "at the close", declare("crm", closes), 1)
		wantSame(t, "why", b.triggers(noon+5), map[string]string{a: "recheck"})
		b.settle(a, ledger.Pending, engine.NotVerified, noon)
		wantSame(t, "past it already", declare("crm", closes+60), 0)
		wantSame(t, "older", declare("shopify", closes), 1)
		b.settle(a, ledger.Pending, engine.NotVerified, noon)
		b.wantDue("a", late)
		at := closes + 1
		b.setConnection(noon+6, ledger.ConnectionSetting{Source: "stripe", Name: "poll", Watermark: &at})
		b.wantDue("a", (noon + 6).String())
	})

	t.Run("ReversalWakesSettled", func(t *testing.T) {
		b := setup(t, open)
		end := noon.Add(30 * engine.Day)
		direct, linked := b.done("direct", "order_1"), b.done("linked", "order_2")
		b.done("early", "order_3")
		b.done("too_late", "order_4")
		b.done("other_type", "order_5")
		b.done("other_source", "order_6")
		b.link(noon, "ticket_2", "order_2")
		counts := b.ingest(noon+5,
			b.fact("r1", "stripe", "refund_reversed", "order_1", end),
			b.fact("r2", "stripe", "refund_reversed", "ticket_2", noon),
			b.fact("r3", "stripe", "refund_reversed", "order_3", noon-1),
			b.fact("r4", "stripe", "refund_reversed", "order_4", end+1),
			b.fact("r5", "stripe", "refund_created", "order_5", noon),
			b.fact("r6", "paypal", "refund_reversed", "order_6", noon))
		wantSame(t, "woken", counts.Woken, 2)
		wantSame(t, "why", b.triggers(noon+5), map[string]string{direct: "fact:r1", linked: "fact:r2"})
	})

	t.Run("D29_ReversalWithinTheClockSkewWakes", func(t *testing.T) {
		b := setup(t, open)
		b.done("a", "order_1")
		skew := 5 * engine.Second
		b.setConnection(noon, ledger.ConnectionSetting{Source: "stripe", Name: "poll", ClockSkew: &skew})
		wantSame(t, "too early", b.ingest(noon, b.fact("r1", "stripe", "refund_reversed", "order_1", noon-6)).Woken, 0)
		wantSame(t, "within the skew", b.ingest(noon, b.fact("r2", "stripe", "refund_reversed", "order_1", noon-5)).Woken, 1)
	})

	t.Run("ReversalThatALinkBringsNearWakesSettled", func(t *testing.T) {
		b := setup(t, open)
		a := b.done("a", "order_1")
		b.ingest(noon, b.fact("r1", "stripe", "refund_reversed", "ticket_9", noon+1))
		b.wantDue("a", notDue)
		wantSame(t, "woken", b.link(noon+5, "ticket_9", "order_1").Woken, 1)
		wantSame(t, "why", b.triggers(noon+5), map[string]string{a: "fact:r1"})
	})

	t.Run("ReversalIsOfThePinnedVersion", func(t *testing.T) {
		b := setup(t, open)
		b.done("old", "order_1")
		second := bytes.Replace(version(t, "refund", 2).Document, []byte("type: refund_reversed"), []byte("type: refund_bounced"), 1)
		b.publish(parse(t, second))
		b.done("new", "order_1")
		b.ingest(noon+5, b.fact("r1", "stripe", "refund_bounced", "order_1", noon))
		b.wantDue("old", notDue)
		b.wantDue("new", (noon + 5).String())
	})

	t.Run("ParkedWorkIsWoken", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		due := b.leaseDue(owner, noon)
		b.park(noon, ledger.Parked{Due: due[0], Error: "evaluators disagree"})
		b.wantDue("a", notDue)
		wantSame(t, "woken", b.ingest(noon+5, b.fact("n1", "crm", "note_added", "order_1", noon)).Woken, 1)
		b.wantDue("a", (noon + 5).String())
		wantSame(t, "parked error", b.action("a").ParkedError, "")
		wantSame(t, "why", b.triggers(noon+5), map[string]string{due[0].ClaimID: "fact:n1"})
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		b.waiting("a", "order_1")
		b.done("b", "order_1")
		for _, ref := range []string{"refund_created", "refund_reversed"} {
			batch := ledger.FactBatch{
				Facts:      []engine.Fact{b.fact(ref, "stripe", ref, "order_1", noon)},
				Links:      []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "x"}},
				Watermarks: map[string]engine.Instant{"stripe": noon.Add(engine.Week)},
			}
			wantSame(t, "woken", b.ingestBatch(other, noon+5, batch).Woken, 0)
		}
		b.wantDue("a", late)
		b.wantDue("b", notDue)
	})

	t.Run("LinksFactsAndSkewsOfOthersWakeNobody", func(t *testing.T) {
		b := setup(t, open)
		b.waiting("a", "ticket_9")
		b.done("b", "ticket_9")
		skew := engine.Hour
		b.ingestBatch(other, noon, ledger.FactBatch{
			Facts: []engine.Fact{b.fact("r0", "stripe", "refund_reversed", "ticket_7", noon)},
			Links: []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "ticket_9"}},
		})
		b.update(func(tx ledger.Tx) error {
			return tx.SetConnection(t.Context(), other, ledger.ConnectionSetting{Source: "stripe", ClockSkew: &skew}, noon)
		})
		wantSame(t, "over their link", b.ingest(noon+5, b.fact("r1", "stripe", "refund_reversed", "order_1", noon)).Woken, 0)
		b.ingest(noon+5, b.fact("r2", "stripe", "refund_reversed", "ticket_9", noon-5)) // within their skew
		b.link(noon+5, "ticket_9", "ticket_7")                                          // to the subject of their fact
		b.wantDue("b", notDue)
	})
}

// contractOf is a published version, parsed.
func (b *bundle) contractOf(id string) (c *contract.Contract) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) (err error) {
		c, err = ledger.NewContractCache(1).Get(b.t.Context(), tx, ledger.ContractRef{ID: id})
		return err
	})
	return c
}
