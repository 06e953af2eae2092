package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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
		head, err := tx.ChainHead(ctx, tenant)
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
		if head.Seq != int64(len(entries)) || head.Hash != hash {
			return fmt.Errorf("the head says %d %x, the entries %d %x", head.Seq, head.Hash, len(entries), hash)
		}
		return nil
	})
	return entries
}

// Recorders, evidence and verifiers that work on the same few actions do not
// deadlock: locks are taken in one order.
func TestAllSidesAtOnceDoNotDeadlock(t *testing.T) {
	t.Parallel()
	url := unusedURL(t) // the deadlocks counted below are of this test alone
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

// Writers that deliver the same facts in other orders and other batches, two
// connections a transaction: each fact is stored once, and each delivery counted
// for what it was. Every batch is first written without look-up, and every second
// one holds a known fact where no sample is, so that all of it is taken back.
func TestOverlappingBatchesAreCountedExactly(t *testing.T) {
	t.Parallel()
	const rounds, pool = 8, 2000
	address := with(t, migratedURL(t), "deadlock_timeout", "20ms")
	delivered := make([][]engine.Fact, writers)
	counts := make([]ledger.Ingested, writers)
	err := atOnce(func(w int) error {
		store := open(t, address, WithMaxConnections(1))
		random := rand.New(rand.NewPCG(uint64(w), 1)) //nolint:gosec // the same batches each time
		for r := range rounds {
			first := overlapping(random, w, pool)
			second := unsampled(random, w, r, pool, first[0])
			var got [2]ledger.Ingested
			if err := insist(t.Context(), store, func(tx ledger.Tx) error {
				for i, facts := range [][]engine.Fact{first, second} {
					store.lookFirst.Store(0)
					var err error
					got[i], err = tx.IngestFacts(t.Context(), tenant, ledger.FactBatch{Facts: facts, Connection: fmt.Sprint("connection_", i)}, noon)
					if err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
			if store.lookFirst.Load() != lookFirst {
				return fmt.Errorf("writer %d, round %d: %+v, want new facts beside known ones", w, r, got[1])
			}
			delivered[w] = append(append(delivered[w], first...), second...)
			for _, g := range got {
				counts[w].Ingested += g.Ingested
				counts[w].Duplicates += g.Duplicates
				counts[w].Conflicting += g.Conflicting
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, open(t, address), delivered, counts)
}

// overlapping are 32 to 400 facts that all writers deliver. Of every seventh each writer says something else.
func overlapping(random *rand.Rand, writer, pool int) []engine.Fact {
	facts := make([]engine.Fact, 0, 400)
	for _, n := range random.Perm(pool)[:leastGuess+random.IntN(400-leastGuess+1)] {
		f := fact(fmt.Sprintf("re_%04d", n), "order_1")
		if n%7 == 0 {
			f.SubjectID = fmt.Sprintf("order_%d", writer)
		}
		facts = append(facts, f)
	}
	return facts
}

// unsampled are such facts with a known one, and with facts of nobody else where samples are taken.
func unsampled(random *rand.Rand, writer, round, pool int, known engine.Fact) []engine.Fact {
	facts := overlapping(random, writer, pool)
	last := len(facts) - 1
	for i := range samples {
		facts[i*last/(samples-1)] = fact(fmt.Sprintf("own_%d_%d_%d", writer, round, i), "order_1")
	}
	facts[1] = known // no sample: there are more than twice as many facts as samples
	return facts
}

// wantCounts compares what writers were told with what stands.
func wantCounts(t *testing.T, store *Store, delivered [][]engine.Fact, counts []ledger.Ingested) {
	t.Helper()
	var all []engine.Fact
	var got ledger.Ingested
	for w := range delivered {
		all = append(all, delivered[w]...)
		got.Ingested += counts[w].Ingested
		got.Duplicates += counts[w].Duplicates
		got.Conflicting += counts[w].Conflicting
	}
	standing := map[string][32]byte{}
	view(t, store, func(ctx context.Context, txn ledger.Tx) (err error) {
		standing, err = txn.(*tx).standingFacts(ctx, tenant, all)
		return err
	})
	want := ledger.Ingested{Ingested: len(standing), Duplicates: -len(standing)}
	refs := map[string]bool{}
	for i := range all {
		refs[all[i].RawRef] = true
		if standing[all[i].RawRef] == all[i].ContentHash() {
			want.Duplicates++
		} else {
			want.Conflicting++
		}
	}
	if got.Ingested != want.Ingested || got.Duplicates != want.Duplicates || got.Conflicting != want.Conflicting || len(refs) != len(standing) {
		t.Errorf("%d facts of %d stand; writers were told %+v, want %+v", len(standing), len(refs), got, want)
	}
}
