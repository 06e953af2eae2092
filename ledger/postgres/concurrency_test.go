package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/seal"
	"github.com/countersign-otel/countersign/ledger"
)

const writers = 8

// atOnce runs f in as many goroutines as there are writers and joins their errors.
func atOnce(f func(writer int) error) error {
	errs := make([]error, writers)
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() { errs[w] = f(w) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// checkChain reads the whole chain of the tenant and recomputes it (decision D25).
func checkChain(tb testing.TB, store ledger.Ledger) []ledger.ChainEntry {
	tb.Helper()
	var entries []ledger.ChainEntry
	view(tb, store, func(ctx context.Context, tx ledger.Tx) error {
		var err error
		if entries, err = tx.ReadChain(ctx, tenant, 0, 1<<30); err != nil {
			return err
		}
		seq, head, err := tx.ChainHead(ctx, tenant)
		if err != nil {
			return err
		}
		var hash [32]byte
		for i, e := range entries {
			hash = seal.Next(hash, e.VerdictHash)
			if e.Seq != int64(i+1) || e.ChainHash != hash {
				return fmt.Errorf("entry %d has seq %d and chain hash %x, want %x", i+1, e.Seq, e.ChainHash, hash)
			}
		}
		if seq != int64(len(entries)) || head != hash {
			return fmt.Errorf("the head says %d %x, the entries %d %x", seq, head, len(entries), hash)
		}
		return nil
	})
	return entries
}

// Recorders, evidence and verifiers that work on the same few actions do not
// deadlock: locks are taken in one order.
func TestAllSidesAtOnceDoNotDeadlock(t *testing.T) {
	t.Parallel()
	url := migratedURL(t)
	store := open(t, url, WithMaxConnections(writers))
	const rounds, actions = 15, 12
	ids := make([]string, actions)
	for i := range ids {
		ids[i] = fmt.Sprintf("act_%d", i)
	}
	record := func(w, r int, now engine.Instant) error {
		batch := make([]ledger.NewAction, actions)
		for i := range batch {
			a := action(ids[(i+w+r)%actions], "order_1")
			a.Params = parsed(fmt.Sprintf(`{"amount":%d}`, w*rounds+r))
			batch[i] = ledger.NewAction{Action: a, Verify: true}
		}
		return store.Update(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.RecordActions(t.Context(), tenant, batch, now)
			return err
		})
	}
	ingest := func(w, r int, now engine.Instant) error {
		return store.Update(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{
				Facts: []engine.Fact{fact(fmt.Sprintf("re_%d_%d", w, r), "order_1")},
				Trust: engine.Shared, Watermarks: map[string]engine.Instant{"stripe": now},
			}, now)
			return err
		})
	}
	verify := func(w, _ int, now engine.Instant) error {
		lease := ledger.Lease{Owner: fmt.Sprint(w), Now: now, Until: now + 5}
		var due []ledger.Due
		if err := store.Update(t.Context(), func(tx ledger.Tx) error {
			var err error
			due, err = tx.LeaseDue(t.Context(), tenant, lease, actions)
			return err
		}); err != nil || len(due) == 0 {
			return err
		}
		runs := make([]ledger.Run, len(due))
		for i := range due {
			runs[i] = run(due[i].ClaimID, &due[i], lease.Owner)
			runs[i].ClaimID = due[i].ClaimID
		}
		err := store.Update(t.Context(), func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(t.Context(), tenant, runs)
			return err
		})
		if errors.Is(err, ledger.ErrLeaseLost) {
			return nil
		}
		return err
	}
	sides := []func(w, r int, now engine.Instant) error{record, ingest, verify}
	err := atOnce(func(w int) error {
		for r := range rounds {
			if err := sides[w%len(sides)](w, r, noon+engine.Instant(r)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkChain(t, store)
	var deadlocks int64
	if err := connect(t, url).QueryRow(t.Context(), "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").Scan(&deadlocks); err != nil {
		t.Fatal(err)
	}
	if deadlocks > 0 {
		t.Errorf("the server counted %d deadlocks", deadlocks)
	}
}

// Batches are written without looking them up while that goes well, and looked
// up for a while after one that held known facts among new ones.
func TestBatchesAreLookedUpAfterAMixedOne(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t))
	facts := make([]engine.Fact, 3*leastGuess)
	for i := range facts {
		facts[i] = fact(fmt.Sprintf("re_%03d", i), "order_1")
	}
	ingest := func(facts []engine.Fact, wantNew int, wantLook int64) {
		t.Helper()
		var got ledger.Ingested
		update(t, store, func(ctx context.Context, tx ledger.Tx) (err error) {
			got, err = tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts}, noon)
			return err
		})
		if got.Ingested != wantNew || got.Duplicates != len(facts)-wantNew {
			t.Errorf("%+v, want %d new of %d", got, wantNew, len(facts))
		}
		if look := max(0, store.lookFirst.Load()); look != wantLook {
			t.Errorf("%d batches are to be looked up first, want %d", look, wantLook)
		}
	}
	ingest(facts[1:2], 1, 0)
	ingest(facts[leastGuess:2*leastGuess], leastGuess, 0)
	ingest(facts[leastGuess:2*leastGuess], 0, 0) // all known: the samples say so
	ingest(facts[:leastGuess], leastGuess-1, lookFirst)
	ingest(facts[2*leastGuess:], leastGuess, lookFirst-1)
}
