package postgres

import (
	"context"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// BenchmarkVerify measures what a verifier asks of the store for a batch:
// Evaluate, Snapshot, and StoreRuns with the next lease.
func BenchmarkVerify(b *testing.B) {
	for _, size := range []int{50, 500} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) { benchmarkVerify(b, size) })
	}
}

func benchmarkVerify(b *testing.B, size int) {
	store := open(b, durableURL(b))
	refund := refunds(b, 1)
	const stored = 5000
	ids := make([]string, stored)
	update(b, store, func(ctx context.Context, tx ledger.Tx) error {
		actions := make([]ledger.NewAction, stored)
		facts := make([]engine.Fact, 0, 6*stored)
		for i := range actions {
			order := fmt.Sprintf("order_%d", i)
			actions[i] = ledger.NewAction{Action: action(fmt.Sprintf("act_%d", i), order), Verify: true}
			ids[i] = engine.ClaimID(tenant, actions[i].Action.ActionID)
			for j := range 6 {
				facts = append(facts, fact(fmt.Sprintf("re_%d_%d", i, j), order))
			}
		}
		if err := tx.PublishContracts(ctx, []*contract.Contract{refund}, noon); err != nil {
			return err
		}
		if _, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, noon); err != nil {
			return err
		}
		_, err := tx.RecordActions(ctx, tenant, actions, noon)
		return err
	})
	execute(b, store.pool.Config().ConnString(), "ANALYZE")
	batch := func(i int) []string { at := i * size % (stored - size); return ids[at : at+size] }

	b.Run("Evaluate", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			view(b, store, func(ctx context.Context, tx ledger.Tx) error {
				got, err := tx.Evaluate(ctx, tenant, refund, batch(i), nil)
				if err == nil && len(got) != size {
					err = fmt.Errorf("%d evaluations, want %d", len(got), size)
				}
				return err
			})
		}
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "actions/s")
	})
	b.Run("Snapshot", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			view(b, store, func(ctx context.Context, tx ledger.Tx) error {
				_, err := tx.Snapshot(ctx, tenant, refund, batch(i), nil)
				return err
			})
		}
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "actions/s")
	})
	b.Run("LeaseAndStore", func(b *testing.B) {
		now := noon
		for b.Loop() {
			now += 1000
			var due []ledger.Due
			update(b, store, func(ctx context.Context, tx ledger.Tx) error {
				var err error
				due, err = tx.LeaseDue(ctx, tenant, ledger.Lease{Owner: "v", Now: now, Until: now + 60}, size)
				return err
			})
			runs := make([]ledger.Run, len(due))
			for i := range due {
				runs[i] = run(due[i].ClaimID, &due[i], "v")
				runs[i].ClaimID, runs[i].Events = due[i].ClaimID, nil
			}
			update(b, store, func(ctx context.Context, tx ledger.Tx) error {
				_, err := tx.StoreRuns(ctx, tenant, runs)
				return err
			})
		}
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "actions/s")
	})
}
