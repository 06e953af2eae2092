package ledgertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func exerciseTransactions(t *testing.T, open opener) {
	t.Run("UpdateStoresNothingOnError", func(t *testing.T) {
		b := setup(t, open)
		broken := errors.New("broken")
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
			if _, err := tx.RecordActions(t.Context(), acme, []ledger.NewAction{{Action: pinned("a", "order_1"), Verify: true}}, noon); err != nil {
				return err
			}
			return broken
		})
		if !errors.Is(err, broken) {
			t.Fatalf("error %v, want the caller's own", err)
		}
		wantSame(t, "actions", len(b.actions("a")), 0)
	})

	t.Run("UpdateStoresNothingOnPanic", func(t *testing.T) {
		b := setup(t, open)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was swallowed")
				}
			}()
			_ = b.store.Update(t.Context(), func(tx ledger.Tx) error {
				if _, err := tx.RecordActions(t.Context(), acme, []ledger.NewAction{{Action: pinned("a", "order_1")}}, noon); err != nil {
					t.Error(err)
				}
				panic("bug in the caller")
			})
		}()
		wantSame(t, "actions", len(b.actions("a")), 0)
		b.record(act("b", "order_1"))
	})

	t.Run("RehearseStoresNothing", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		err := b.store.Rehearse(t.Context(), func(tx ledger.Tx) error {
			ctx := t.Context()
			counts, err := tx.IngestFacts(ctx, acme, ledger.FactBatch{Facts: []engine.Fact{b.fact("re_1", "stripe", "refund_created", "order_1", noon)}}, noon)
			if err != nil {
				return err
			}
			wantSame(t, "ingested in the rehearsal", counts.Ingested, 1)
			runs, err := tx.StoreRuns(ctx, acme, []ledger.Run{runOf(nil, engine.ClaimID(acme, "a"), ledger.Settled, engine.Verified, engine.Verified, noon)})
			if err != nil {
				return err
			}
			wantSame(t, "seq in the rehearsal", runs[0].Seq, int64(2))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "ingested after it", b.ingest(noon, b.fact("re_1", "stripe", "refund_created", "order_1", noon)).Ingested, 1)
		if latest := b.action("a").Latest; latest != nil {
			t.Errorf("a rehearsed run was stored: %+v", latest)
		}
	})

	t.Run("ViewSeesOneMoment", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		var before, after []engine.Connection
		b.view(func(tx ledger.Tx) (err error) {
			if before, err = tx.Connections(t.Context(), acme); err != nil {
				return err
			}
			done := make(chan error, 1)
			writing, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				done <- b.store.Update(writing, func(tx ledger.Tx) error {
					_, err := tx.IngestFacts(writing, acme, ledger.FactBatch{Facts: []engine.Fact{b.fact("re_1", "stripe", "refund_created", "order_1", noon)}}, noon)
					return err
				})
			}()
			blocked := b.store.Capabilities().ViewsBlockWriters
			if !blocked {
				if err := <-done; err != nil {
					return err
				}
			}
			after, err = tx.Connections(t.Context(), acme)
			if blocked {
				stop()
				if err := <-done; err != nil {
					t.Logf("the writer was stopped, as it may be: %v", err)
				}
			}
			return err
		})
		wantSame(t, "connections later in the view", after, before)
	})

	t.Run("CancelledContext", func(t *testing.T) {
		b := setup(t, open)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, run := range map[string]func(context.Context, func(ledger.Tx) error) error{
			"Update": b.store.Update, "View": b.store.View, "Rehearse": b.store.Rehearse,
		} {
			err := run(ctx, func(ledger.Tx) error { return nil })
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v, want context.Canceled", name, err)
			}
		}
		b.record(act("a", "order_1"))
	})

	t.Run("CancelledWhileItBegins", func(t *testing.T) {
		b := setup(t, open)
		nothing := func(ledger.Tx) error { return nil }
		for name, do := range map[string]func(context.Context, func(ledger.Tx) error) error{"Update": b.store.Update, "View": b.store.View} {
			for i := range 100 {
				ctx, cancel := context.WithCancel(t.Context())
				timer := time.AfterFunc(time.Duration(3*i)*time.Microsecond, cancel) // from before it begins to after it ended
				err := do(ctx, nothing)
				timer.Stop()
				cancel()
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatalf("%s that is cancelled: %v", name, err)
				}
				if err := do(t.Context(), nothing); err != nil {
					t.Fatalf("%s after one that was cancelled: %v", name, err)
				}
			}
		}
	})

	t.Run("WakeOnDueWork", func(t *testing.T) {
		b := setup(t, open)
		ctx, stop := context.WithCancel(t.Context())
		wake, err := b.store.Wake(ctx)
		if err != nil {
			t.Fatal(err)
		}
		b.record(act("a", "order_1"))
		select {
		case <-wake:
		case <-deadline(t):
			t.Fatal("nobody was woken")
		}
		stop()
		for {
			select {
			case _, open := <-wake:
				if open {
					continue // a signal that was on its way
				}
				return
			case <-deadline(t):
				t.Fatal("the channel stays open after its context")
			}
		}
	})
}

// pinned is act, resolved against the contract.
func pinned(id, subject string) engine.Action {
	a := act(id, subject)
	a.ContractVersion, a.ActionType, a.SubjectKind = 1, "refund_order", "order"
	return a
}
