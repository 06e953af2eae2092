package ledgertest

import (
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func (b *bundle) leaseOutbox(owner string, now engine.Instant, limit int) (events []ledger.OutboxEvent) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) (err error) {
		events, err = tx.LeaseOutbox(b.t.Context(), leaseOf(owner, now), limit)
		return err
	})
	return events
}

func (b *bundle) completeOutbox(owner string, delivered []ledger.OutboxEvent, retry ...ledger.OutboxRetry) {
	b.t.Helper()
	b.update(func(tx ledger.Tx) error { return tx.CompleteOutbox(b.t.Context(), owner, delivered, retry) })
}

func kinds(events []ledger.OutboxEvent) []string {
	var found []string
	for _, e := range events {
		found = append(found, e.Tenant+" "+e.Kind+" of "+e.Action.Action.ActionID)
	}
	return found
}

func exerciseOutbox(t *testing.T, open opener) {
	t.Run("OldestFirstAcrossTenants", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("b", "order_2"))
		b.recordFor(other, noon, false, act("a", "order_3"))
		run := b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon+2, "action.verified", "action.compensated")
		b.settle(engine.ClaimID(acme, "b"), ledger.Pending, engine.Verified, noon+3, "action.pending")
		theirs := runOf(nil, engine.ClaimID(other, "a"), ledger.Settled, engine.Verified, engine.Verified, noon+1)
		theirs.Events = []string{"action.verified"}
		b.update(func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(t.Context(), other, []ledger.Run{theirs})
			return err
		})
		later := b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon+4)
		events := b.leaseOutbox(owner, noon+5, 3)
		wantSame(t, "first three", kinds(events), []string{"other action.verified of a", "acme action.verified of a", "acme action.compensated of a"})
		wantSame(t, "of its own run", [2]int64{events[1].Run.Seq, events[1].Action.Latest.Seq}, [2]int64{run.Seq, later.Seq})
		run.Lease, run.Owner = nil, ""
		wantSame(t, "run", events[1].Run, run)
		wantSame(t, "action", events[1].Action, b.action("a"))
		wantSame(t, "row", [2]int64{int64(events[1].CreatedAt), int64(events[1].Attempts)}, [2]int64{int64(noon + 2), 1})
		wantSame(t, "the rest", kinds(b.leaseOutbox("other", noon+5, 10)), []string{"acme action.pending of b"})
	})

	t.Run("NamesTheRunThatIsReplaced", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		first := b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.NotVerified, noon, "action.verified")
		again := runOf(nil, engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, engine.Verified, noon+1)
		again.Events, again.PreviousSeq = []string{"action.verified"}, first.Seq
		b.update(func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(t.Context(), acme, []ledger.Run{again})
			return err
		})
		events := b.leaseOutbox(owner, noon+5, 10)
		wantSame(t, "events", len(events), 2)
		if events[0].Previous != nil {
			t.Errorf("the first run replaces %+v", events[0].Previous)
		}
		first.Lease, first.Owner = nil, ""
		wantSame(t, "replaced", events[1].Previous, &first)
	})

	t.Run("CompleteRetryAndTakeOver", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, noon, "action.verified", "action.compensated")
		events := b.leaseOutbox(owner, noon, 10)
		b.completeOutbox("somebody", events) // not the owner: nothing happens
		wantSame(t, "leased to nobody else", len(b.leaseOutbox("other", noon+59, 10)), 0)
		b.completeOutbox(owner, events[:1], ledger.OutboxRetry{Tenant: acme, ID: events[1].ID, RetryAt: noon + 10, Error: "503 \xff"})
		wantSame(t, "before the retry", len(b.leaseOutbox(owner, noon+9, 10)), 0)
		again := b.leaseOutbox(owner, noon+10, 10)
		wantSame(t, "at the retry", kinds(again), []string{"acme action.compensated of a"})
		wantSame(t, "attempts", again[0].Attempts, 2)
		taken := b.leaseOutbox("other", noon.Add(2*engine.Minute), 10)
		wantSame(t, "taken over", len(taken), 1)
		b.completeOutbox(owner, again)
		b.completeOutbox("other", taken)
		wantSame(t, "nothing left", len(b.leaseOutbox(owner, noon.Add(engine.Hour), 10)), 0)
	})
}
