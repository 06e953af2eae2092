package postgres

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// heldStore has an action under a contract with updates: until_settled, and the lease on it.
func heldStore(t *testing.T) (*Store, ledger.Run, string) {
	t.Helper()
	url := migratedURL(t)
	store := open(t, url)
	document := bytes.Replace(refunds(t, 1).Document, []byte("\naction:\n"), []byte("\naction:\n  updates: until_settled\n"), 1)
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if c == nil || !c.UpdatesUntilSettled {
		t.Fatal(diagnostics)
	}
	var settled ledger.Run
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		if err := tx.PublishContracts(ctx, []*contract.Contract{c}, noon); err != nil {
			return err
		}
		judged := action("act_1", "order_1")
		if _, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: judged, Verify: true}}, noon); err != nil {
			return err
		}
		due, err := tx.LeaseDue(ctx, tenant, ledger.Lease{Owner: "verifier", Now: noon, Until: noon + 60}, 1)
		if err != nil {
			return err
		}
		settled = run("act_1", &due[0], "verifier")
		settled.Status, settled.NextCheckAt, settled.Judged = ledger.Settled, nil, &judged
		return nil
	})
	return store, settled, url
}

// behind runs first, and second once it waits for a lock that first holds.
func behind(t *testing.T, store *Store, url string, first, second func(ctx context.Context, tx ledger.Tx) error) {
	t.Helper()
	ended := make(chan error, 1)
	watch := connect(t, url)
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		if err := first(ctx, tx); err != nil {
			return err
		}
		go func() {
			ended <- store.Update(ctx, func(tx ledger.Tx) error { return second(ctx, tx) })
		}()
		deadline := time.Now().Add(20 * time.Second)
		for waits := false; !waits; {
			if time.Now().After(deadline) || len(ended) > 0 {
				t.Fatal("the second does not wait for the first")
			}
			if err := watch.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits); err != nil {
				return err
			}
		}
		return nil
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// An update that waits for the row of an action which is being settled reads what
// that left there, and not what it was when the statement began.
func TestUpdateBehindASettlement(t *testing.T) {
	t.Parallel()
	store, settled, url := heldStore(t)
	var recorded []ledger.Recorded
	behind(t, store, url, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.StoreRuns(ctx, tenant, []ledger.Run{settled})
		return err
	}, func(ctx context.Context, tx ledger.Tx) (err error) {
		recorded, err = tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: changed(action("act_1", "order_1"))}}, noon+1)
		return err
	})
	if got := recorded[0]; got.Changed || !slices.Equal(got.Conflicting, []string{engine.FieldParams}) || got.Action.Params.Text() != `{"amount":180.0}` {
		t.Errorf("recorded %+v, want the params to stand", got)
	}
}

// A settlement that waits for the row of an action which is recorded anew does not
// store what was judged before.
func TestSettlementBehindAnUpdate(t *testing.T) {
	t.Parallel()
	store, settled, url := heldStore(t)
	var stored []ledger.Run
	behind(t, store, url, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: changed(action("act_1", "order_1"))}}, noon+1)
		return err
	}, func(ctx context.Context, tx ledger.Tx) (err error) {
		stored, err = tx.StoreRuns(ctx, tenant, []ledger.Run{settled})
		return err
	})
	if len(stored) != 0 || len(checkChain(t, store)) != 0 {
		t.Errorf("stored %+v, which is about what is recorded no more", stored)
	}
}
