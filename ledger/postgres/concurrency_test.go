package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestD25_ChainHasNoGapsUnderManyWriters(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t), WithMaxConnections(writers))
	const batches, size = 12, 5
	id := func(writer, i int) string { return fmt.Sprintf("act_%d_%d", writer, i) }
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		var actions []ledger.NewAction
		for w := range writers {
			for i := range size {
				actions = append(actions, ledger.NewAction{Action: action(id(w, i), "order_1")})
			}
		}
		_, err := tx.RecordActions(ctx, tenant, actions, noon)
		return err
	})
	err := atOnce(func(w int) error {
		for range batches {
			err := store.Update(t.Context(), func(tx ledger.Tx) error {
				runs := make([]ledger.Run, size)
				for i := range runs {
					runs[i] = run(id(w, i), nil, "")
				}
				stored, err := tx.StoreRuns(t.Context(), tenant, runs)
				if err != nil {
					return err
				}
				for i := 1; i < len(stored); i++ {
					if stored[i].Seq != stored[i-1].Seq+2 || stored[i].Outcome.Seq != stored[i].Seq-1 {
						return fmt.Errorf("runs of one batch do not follow each other: %d after %d", stored[i].Seq, stored[i-1].Seq)
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if entries := checkChain(t, store); len(entries) != 2*writers*batches*size {
		t.Errorf("the chain has %d entries, want %d", len(entries), 2*writers*batches*size)
	}
}

// Writers that deliver the same facts at the same time, each in another order,
// store each fact once, and every count is right.
func TestD08_OverlappingWritersCountExactly(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t), WithMaxConnections(writers))
	const rounds, size = 10, 60
	counts := make([]ledger.Ingested, writers)
	err := atOnce(func(w int) error {
		for r := range rounds {
			var facts []engine.Fact
			for i := range size {
				f := fact(fmt.Sprintf("re_%d_%d", r, (i*7+w*13)%size), fmt.Sprintf("order_%d", i%9))
				f.SubjectID = "order_" + f.RawRef
				facts = append(facts, f)
			}
			err := store.Update(t.Context(), func(tx ledger.Tx) error {
				got, err := tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, noon)
				if err != nil {
					return err
				}
				counts[w].Ingested += got.Ingested
				counts[w].Duplicates += got.Duplicates
				counts[w].Conflicting += got.Conflicting
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var sum ledger.Ingested
	for _, c := range counts {
		sum.Ingested += c.Ingested
		sum.Duplicates += c.Duplicates
		sum.Conflicting += c.Conflicting
	}
	want := ledger.Ingested{Ingested: rounds * size, Duplicates: (writers - 1) * rounds * size}
	if diff := cmp.Diff(want, sum); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// However many verifiers there are, each action is leased once.
func TestLeasesAreExclusive(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t), WithMaxConnections(writers))
	const actions = 400
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		batch := make([]ledger.NewAction, actions)
		for i := range batch {
			batch[i] = ledger.NewAction{Action: action(fmt.Sprintf("act_%d", i), "order_1"), Verify: true}
		}
		_, err := tx.RecordActions(ctx, tenant, batch, noon)
		return err
	})
	var mu sync.Mutex
	holders := map[string]int{}
	err := atOnce(func(w int) error {
		for {
			var due []ledger.Due
			err := store.Update(t.Context(), func(tx ledger.Tx) error {
				var err error
				due, err = tx.LeaseDue(t.Context(), tenant, ledger.Lease{Owner: fmt.Sprint(w), Now: noon, Until: noon + 60}, 7)
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
	if err != nil {
		t.Fatal(err)
	}
	if len(holders) != actions {
		t.Errorf("%d actions were leased, want %d", len(holders), actions)
	}
	for id, n := range holders {
		if n != 1 {
			t.Errorf("%s was leased %d times", id, n)
		}
	}
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
