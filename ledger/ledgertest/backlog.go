package ledgertest

import (
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func exerciseBacklog(t *testing.T, open opener) {
	t.Run("WhatIsStillToDo", func(t *testing.T) {
		b := setup(t, open)
		look := func(now engine.Instant) (found ledger.Backlog, lags []ledger.SourceLag) {
			b.view(func(tx ledger.Tx) (err error) {
				if found, err = tx.Backlog(t.Context(), now); err != nil {
					return err
				}
				lags, err = tx.SourceLags(t.Context(), 2)
				return err
			})
			return found, lags
		}
		found, lags := look(noon)
		wantSame(t, "an empty store", found, ledger.Backlog{})
		wantSame(t, "no source", len(lags), 0)
		b.record(act("a", "order_1"), act("b", "order_2"), act("c", "order_3"))
		b.recordFor(other, noon, true, act("d", "order_4"))
		b.settle(engine.ClaimID(acme, "a"), ledger.Pending, engine.NotVerified, noon+1, "action.pending") // due again in a minute
		b.settle(engine.ClaimID(acme, "b"), ledger.Settled, engine.Verified, noon+2, "action.verified")
		due := b.leaseDue(owner, noon)
		b.park(noon, ledger.Parked{Due: due[0], Error: "x"})
		b.enqueue(noon, 4, delivery("m2", 2), delivery("m4", 4), delivery("m6", 6))
		b.leaseDeliveries(owner, crm, noon, 2)
		b.completeDeliveries(owner, noon, ledger.DeliveryResult{ID: "m2", State: ledger.DeliveryDead}, ledger.DeliveryResult{ID: "m4", State: ledger.DeliveryDelivered})
		for _, tenant := range []string{acme, other} {
			at := noon
			if tenant == other {
				at = noon - 60
			}
			b.ingestBatch(tenant, noon, ledger.FactBatch{Watermarks: map[string]engine.Instant{"stripe": at, "crm": at + 10, "late": at + 20}})
		}
		found, lags = look(noon)
		wantSame(t, "backlog", found, ledger.Backlog{Outbox: 2, OldestOutbox: noon + 1, Due: 1, Scheduled: 2, Parked: 1, Webhooks: 1, DeadLetters: 1})
		wantSame(t, "the slowest sources", lags, []ledger.SourceLag{{Source: "stripe", Watermark: noon - 60}, {Source: "crm", Watermark: noon - 50}})
	})
}
