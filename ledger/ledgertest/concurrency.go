package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func exerciseConcurrency(t *testing.T, open opener) {
	const workers = 8

	t.Run("D25_ChainHasNoGapUnderManyWriters", func(t *testing.T) {
		b := setup(t, open)
		const rounds = 6
		for i := range workers {
			for j := range rounds {
				b.recordFor(acme, noon, false, act(fmt.Sprintf("a%d-%d", i, j), "order_1"))
			}
		}
		together(t, workers, func(ctx context.Context, i int) error {
			for j := range rounds {
				id := engine.ClaimID(acme, fmt.Sprintf("a%d-%d", i, j))
				err := b.store.Update(ctx, func(tx ledger.Tx) error {
					_, err := tx.StoreRuns(ctx, acme, []ledger.Run{runOf(nil, id, ledger.Settled, engine.Verified, engine.Verified, noon)})
					return err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		wantSame(t, "verdicts", len(b.checkChain(acme)), 2*workers*rounds)
	})

	t.Run("D08_SameFactsFromManyWriters", func(t *testing.T) {
		b := setup(t, open)
		var facts []engine.Fact
		for i := range 200 {
			facts = append(facts, b.fact(fmt.Sprintf("re_%d", i), "stripe", "refund_created", fmt.Sprintf("order_%d", i%10), noon))
		}
		var mu sync.Mutex
		var sum ledger.Ingested
		together(t, workers, func(ctx context.Context, i int) error {
			// Every writer has another order, so that locks taken one by one would cross.
			mine := append(append([]engine.Fact(nil), facts[i*20:]...), facts[:i*20]...)
			var counts ledger.Ingested
			err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
				counts, err = tx.IngestFacts(ctx, acme, ledger.FactBatch{Facts: mine, Trust: engine.Shared}, noon)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			sum.Ingested += counts.Ingested
			sum.Duplicates += counts.Duplicates
			sum.Conflicting += counts.Conflicting
			return err
		})
		wantSame(t, "counts", sum, ledger.Ingested{Ingested: 200, Duplicates: (workers - 1) * 200})
	})

	t.Run("SameActionsFromManyWriters", func(t *testing.T) {
		b := setup(t, open)
		var mu sync.Mutex
		created := 0
		together(t, workers, func(ctx context.Context, i int) error {
			var batch []ledger.NewAction
			for j := range 50 {
				batch = append(batch, ledger.NewAction{Action: pinned(fmt.Sprintf("a%d", (i*7+j)%50), "order_1"), Verify: true})
			}
			var recorded []ledger.Recorded
			err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
				recorded, err = tx.RecordActions(ctx, acme, batch, noon)
				return err
			})
			mu.Lock()
			defer mu.Unlock()
			for _, r := range recorded {
				if r.Created {
					created++
				}
			}
			return err
		})
		wantSame(t, "created", created, 50)
		wantSame(t, "stored", b.summary(ledger.ActionFilter{}).Total, 50)
	})

	t.Run("WorkIsLeasedOnce", func(t *testing.T) {
		b := setup(t, open)
		for i := range 10 {
			var batch []engine.Action
			for j := range 20 {
				batch = append(batch, act(fmt.Sprintf("a%d", i*20+j), fmt.Sprintf("order_%d", i)))
			}
			b.record(batch...)
		}
		var mu sync.Mutex
		holders := map[string]int{}
		together(t, workers, func(ctx context.Context, i int) error {
			for {
				var due []ledger.Due
				err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
					due, err = tx.LeaseDue(ctx, acme, leaseOf(fmt.Sprintf("verifier-%d", i), noon), 7)
					return err
				})
				if err != nil || len(due) == 0 {
					return err
				}
				mu.Lock()
				for _, d := range due {
					holders[d.ClaimID]++
				}
				mu.Unlock()
			}
		})
		wantSame(t, "leased", len(holders), 200)
		for id, n := range holders {
			if n != 1 {
				t.Errorf("%s was leased %d times", id, n)
			}
		}
	})

	t.Run("D16_NoWakeIsLost", func(t *testing.T) {
		// A fact that comes while its action is being settled leaves it due, or
		// was seen by the settlement.
		b := setup(t, open)
		b.record(act("a", "order_1"))
		id := engine.ClaimID(acme, "a")
		for round := range 20 {
			ref := fmt.Sprintf("n%d", round)
			var seen int
			together(t, 2, func(ctx context.Context, i int) error {
				if i == 0 {
					return b.store.Update(ctx, func(tx ledger.Tx) error {
						_, err := tx.IngestFacts(ctx, acme, ledger.FactBatch{Facts: []engine.Fact{b.fact(ref, "crm", "note_added", "order_1", noon)}, Trust: engine.Shared}, noon)
						return err
					})
				}
				return b.settleSeeing(ctx, id, &seen)
			})
			due := b.dueAt("a") == noon.String()
			if seen <= round && !due {
				t.Fatalf("round %d: the settlement saw %d facts and the action is due %s", round, seen, b.dueAt("a"))
			}
			b.settle(id, ledger.Pending, engine.NotVerified, noon)
		}
	})
}

// settleSeeing leases an action, looks at its facts and stores a pending run, as a verifier does.
func (b *bundle) settleSeeing(ctx context.Context, claimID string, seen *int) error {
	var due []ledger.Due
	err := b.store.Update(ctx, func(tx ledger.Tx) (err error) {
		due, err = tx.LeaseActions(ctx, acme, leaseOf(owner, noon), []string{claimID})
		return err
	})
	if err != nil {
		return err
	}
	err = b.store.View(ctx, func(tx ledger.Tx) error {
		c, err := ledger.NewContractCache(1).Get(ctx, tx, ledger.ContractRef{ID: "refund"})
		if err != nil {
			return err
		}
		snapshot, err := tx.Snapshot(ctx, acme, c, []string{claimID}, nil)
		if err == nil {
			*seen = len(snapshot.FactsOf("order_1"))
		}
		return err
	})
	if err != nil {
		return err
	}
	return b.store.Update(ctx, func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(ctx, acme, []ledger.Run{runOf(&due[0], claimID, ledger.Pending, engine.NotVerified, engine.NotVerified, noon)})
		return err
	})
}
