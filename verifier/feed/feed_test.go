package feed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const tenant = "acme"

// newStore has one recorded action.
func newStore(t *testing.T) ledger.Ledger {
	t.Helper()
	store, err := sqlite.OpenMemory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return filled(t, store)
}

// newFileStore is one that many may read at once.
func newFileStore(t *testing.T) ledger.Ledger {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"))
	if err != nil {
		t.Fatal(err)
	}
	return filled(t, store)
}

func filled(t *testing.T, store ledger.Ledger) ledger.Ledger {
	t.Helper()
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	document, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	action := engine.Action{ActionID: "a", ContractID: c.ID, SubjectID: "order_1", RequestedAt: 1000}
	err = errors.Join(store.Migrate(t.Context()), store.Update(t.Context(), func(tx ledger.Tx) error {
		if err := tx.PublishContracts(t.Context(), []*contract.Contract{c}, 0); err != nil {
			return err
		}
		_, err := ledger.Record(t.Context(), tx, tenant, []ledger.RecordRequest{{Action: action}}, 1000)
		return err
	}))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// settle stores n runs that each tell an event.
func settle(t *testing.T, store ledger.Ledger, n int) {
	t.Helper()
	settleEach(t, store, n, "action.verified")
}

// settleEach stores n runs that each tell some events.
func settleEach(t *testing.T, store ledger.Ledger, n int, events ...string) {
	t.Helper()
	runs := make([]ledger.Run, n)
	for i := range runs {
		verdict := ledger.StoredVerdict{Verdict: engine.Verdict{Raw: engine.Verified}, Document: "{}"}
		runs[i] = ledger.Run{
			ClaimID: engine.ClaimID(tenant, "a"), Contract: ledger.ContractRef{ID: "refund_workflow", Version: 1}, Status: ledger.Settled,
			TriggeredBy: "manual", Outcome: verdict, Policy: verdict, Report: []byte("{}"), Events: events,
		}
	}
	if err := store.Update(t.Context(), func(tx ledger.Tx) error {
		_, err := tx.StoreRuns(t.Context(), tenant, runs)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

func running(t *testing.T, f *Feed) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

// drain reads until n events came, and fails when one is missing or comes twice.
func drain(t *testing.T, r *Reader, n int) {
	t.Helper()
	for n > 0 {
		before := r.At()
		events, changed, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if want := (ledger.Position{Seq: before.Seq + 2}); e.Position != want {
				t.Fatalf("event %s, want %s", e.Position, want)
			}
			before = e.Position
		}
		if n -= len(events); len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatalf("%d events are missing", n)
		}
	}
	if events, _, err := r.Read(t.Context()); err != nil || len(events) > 0 {
		t.Fatalf("%d events too many, %v", len(events), err)
	}
}

// nextOf waits until a reader gets something.
func nextOf(t *testing.T, r *Reader) {
	t.Helper()
	for {
		events, changed, err := r.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(events) > 0 {
			return
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("nothing came within a minute")
		}
	}
}

// TestMemoryIsBoundedAndNobodyMissesAnything: a reader whose place has gone from
// memory reads it from the store.
func TestMemoryIsBoundedAndNobodyMissesAnything(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	f := New(store, 0, nil)
	running(t, f)
	start := ledger.Position{}
	quick, err := f.Join(t.Context(), tenant, "key_1", &start)
	if err != nil {
		t.Fatal(err)
	}
	defer quick.Close()
	slow, err := f.Join(t.Context(), tenant, "key_1", &start)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const all = 3 * kept
	for range 12 {
		settle(t, store, all/12)
		drain(t, quick, all/12)
	}
	f.mu.Lock()
	held, base := len(f.tails[tenant].events), f.tails[tenant].base
	f.mu.Unlock()
	if held > 2*kept || slow.At().Compare(base) >= 0 {
		t.Fatalf("%d events are held in memory; the slow reader is at %s, memory begins at %s", held, slow.At(), base)
	}
	drain(t, slow, all)
	late, err := f.Join(t.Context(), tenant, "key_1", &start)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	drain(t, late, all)
}

func TestJoin(t *testing.T) {
	t.Parallel()
	store := newStore(t)
	settle(t, store, 3)
	f := New(store, 0, nil)
	for i, row := range []struct {
		after *ledger.Position
		want  string
	}{
		{nil, "6-15"},
		{&ledger.Position{}, "0-0"},
		{&ledger.Position{Seq: 2}, "2-0"},
		{&ledger.Position{Seq: 6, N: 15}, "6-15"},
		{&ledger.Position{Seq: 6, N: 16}, ""},
		{&ledger.Position{Seq: 8}, ""},
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r, err := f.Join(t.Context(), tenant, "key_1", row.after)
			if row.want == "" {
				if !errors.Is(err, ErrAhead) {
					t.Errorf("got %v, want ErrAhead", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if r.At().String() != row.want {
				t.Errorf("at %s, want %s", r.At(), row.want)
			}
		})
	}
	if f.Readers() != 0 || len(f.tails) != 0 {
		t.Errorf("%d readers and %d tails are left", f.Readers(), len(f.tails))
	}
}

// TestOneKeyLeavesPlaceForOthers: it is refused beyond its share, and gets it back.
func TestOneKeyLeavesPlaceForOthers(t *testing.T) {
	t.Parallel()
	f := New(newStore(t), 0, nil)
	var held []*Reader
	for range MostOfKey {
		r, err := f.Join(t.Context(), tenant, "key_1", nil)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, r)
	}
	if _, err := f.Join(t.Context(), tenant, "key_1", nil); !errors.Is(err, ErrKeyFull) {
		t.Errorf("got %v, want ErrKeyFull", err)
	}
	for _, who := range []user{{tenant, "key_2"}, {"globex", "key_1"}} {
		r, err := f.Join(t.Context(), who.tenant, who.key, nil)
		if err != nil {
			t.Fatalf("%v: %v", who, err)
		}
		held = append(held, r)
	}
	held[0].Close()
	r, err := f.Join(t.Context(), tenant, "key_1", nil)
	if err != nil {
		t.Fatalf("after one left: %v", err)
	}
	for _, r := range append(held, r) {
		r.Close()
	}
	if f.Readers() != 0 || len(f.users) != 0 || len(f.tails) != 0 {
		t.Errorf("%d readers, %d keys and %d tails are left", f.Readers(), len(f.users), len(f.tails))
	}
}

// stuck is a store that answers the readers of one tenant only once it is let go.
type stuck struct {
	ledger.Ledger
	tenant  string
	waiting chan struct{}
	free    chan struct{}
}

type stuckTx struct {
	ledger.Tx
	*stuck
}

func (s *stuck) View(ctx context.Context, f func(ledger.Tx) error) error {
	return s.Ledger.View(ctx, func(tx ledger.Tx) error { return f(stuckTx{tx, s}) })
}

func (s stuckTx) ReadEvents(ctx context.Context, tenant string, after ledger.Position, limit int) (ledger.EventPage, error) {
	if tenant == s.tenant {
		s.waiting <- struct{}{}
		<-s.free
	}
	return s.Tx.ReadEvents(ctx, tenant, after, limit)
}

// TestManyBehindHoldNobodyElse: listeners of one key that all read what they
// missed, from a store that takes its time, let another key's read too.
func TestManyBehindHoldNobodyElse(t *testing.T) {
	t.Parallel()
	store := newFileStore(t)
	settle(t, store, 3)
	slow := &stuck{Ledger: store, tenant: "globex", waiting: make(chan struct{}, 100), free: make(chan struct{})}
	f := New(slow, 0, nil)
	begin := ledger.Position{Seq: -1} // before all that is in memory
	var reading sync.WaitGroup
	for range 50 {
		r, err := f.Join(t.Context(), "globex", "key_1", &begin)
		if err != nil {
			t.Fatal(err)
		}
		reading.Go(func() {
			defer r.Close()
			if _, _, err := r.Read(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	for range catchUpsOfKey {
		<-slow.waiting
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	defer reading.Wait()
	defer close(slow.free)
	mine, err := f.Join(ctx, tenant, "key_2", &begin)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if events, _, err := mine.Read(ctx); err != nil || len(events) != 3 {
		t.Errorf("%d events, %v; want 3", len(events), err)
	}
}

// TestWhoResumesAtTheEndRests: the end of the sequence stands behind the last
// event, so that a client that resumes at that event is before it.
func TestWhoResumesAtTheEndRests(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name   string
		events int
		silent bool
		after  ledger.Position
	}{
		{"at the last event", 3, false, ledger.Position{Seq: 6}},
		{"at the end", 3, false, ledger.Position{Seq: 6, N: 15}},
		{"of a tenant without runs", 0, false, ledger.Position{}},
		{"behind a run that told nothing", 0, true, ledger.Position{Seq: 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			store := newStore(t)
			settle(t, store, row.events)
			if row.silent {
				settleEach(t, store, 1)
			}
			f := New(store, 0, nil)
			r, err := f.Join(t.Context(), tenant, "key_1", &row.after)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for range 10 {
				events, changed, err := r.Read(t.Context())
				if err != nil || len(events) > 0 {
					t.Fatalf("%d events, %v", len(events), err)
				}
				select {
				case <-changed:
					continue
				default:
				}
				if f.Reads() > 1 {
					t.Errorf("the store was read %d times to find that nothing is new", f.Reads())
				}
				// It is told all the same what comes now.
				running(t, f)
				settle(t, store, 1)
				nextOf(t, r)
				return
			}
			t.Fatalf("it never rests: the store was read %d times", f.Reads())
		})
	}
}
