package postgres

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// heldStore has actions under a contract with updates: until_settled; the runs
// settle them, each under a lease.
func heldStore(t *testing.T, ids ...string) (*Store, []ledger.Run, string) {
	t.Helper()
	url := migratedURL(t)
	store := open(t, url)
	document := bytes.Replace(refunds(t, 1).Document, []byte("\naction:\n"), []byte("\naction:\n  updates: until_settled\n"), 1)
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if c == nil || !c.UpdatesUntilSettled {
		t.Fatal(diagnostics)
	}
	var settled []ledger.Run
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		if err := tx.PublishContracts(ctx, []*contract.Contract{c}, noon); err != nil {
			return err
		}
		for _, id := range ids {
			judged := action(id, "order_1")
			if _, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: judged, Verify: true}}, noon); err != nil {
				return err
			}
			due, err := tx.LeaseDue(ctx, tenant, ledger.Lease{Owner: "verifier", Now: noon, Until: noon + 60}, 1)
			if err != nil {
				return err
			}
			run := run(id, &due[0], "verifier")
			run.Status, run.NextCheckAt, run.Judged = ledger.Settled, nil, &judged
			settled = append(settled, run)
		}
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
		awaitWaiting(t, watch, ended)
		return nil
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// awaitWaiting ends once somebody waits for a lock.
func awaitWaiting(t *testing.T, watch *pgx.Conn, ended <-chan error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for waits := false; !waits; {
		if time.Now().After(deadline) || len(ended) > 0 {
			t.Fatal("the second does not wait for the first")
		}
		err := watch.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An update that waits for the row of an action which is being settled reads what
// that left there, and not what it was when the statement began.
func TestUpdateBehindASettlement(t *testing.T) {
	t.Parallel()
	store, settled, url := heldStore(t, "act_1")
	var recorded []ledger.Recorded
	behind(t, store, url, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.StoreRuns(ctx, tenant, settled)
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
	store, settled, url := heldStore(t, "act_1")
	var stored []ledger.Run
	behind(t, store, url, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: changed(action("act_1", "order_1"))}}, noon+1)
		return err
	}, func(ctx context.Context, tx ledger.Tx) (err error) {
		stored, err = tx.StoreRuns(ctx, tenant, settled)
		return err
	})
	if len(stored) != 0 || len(checkChain(t, store)) != 0 {
		t.Errorf("stored %+v, which is about what is recorded no more", stored)
	}
}

// What is given back, because it was recorded anew while it was judged, is locked
// in the order of all due rows: who wakes it and what was judged beside it, as a
// push of facts does, and the settlement never wait for each other.
func TestGivingBackTakesLocksInOrder(t *testing.T) {
	t.Parallel()
	ids := []string{"act_1", "act_2"}
	slices.SortFunc(ids, func(a, b string) int { return compareBytes(engine.ClaimID(tenant, a), engine.ClaimID(tenant, b)) })
	store, settled, url := heldStore(t, ids...)
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: changed(action(ids[0], "order_1"))}}, noon+1)
		return err
	})

	waking, watch, ended := connect(t, url), connect(t, url), make(chan error, 1)
	wake, err := waking.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lock := func(run ledger.Run) {
		t.Helper()
		if _, err := wake.Exec(t.Context(), "SELECT FROM due WHERE tenant_id = $1 AND claim_id = $2 FOR UPDATE NOWAIT", tenant, run.ClaimID); err != nil {
			t.Fatal(err)
		}
	}
	lock(settled[0])
	var stored []ledger.Run
	go func() {
		ended <- store.Update(t.Context(), func(tx ledger.Tx) (err error) {
			if stored, err = tx.StoreRuns(t.Context(), tenant, settled); err != nil {
				return err
			}
			return tx.ReleaseDue(t.Context(), tenant, "verifier", []ledger.Due{*settled[0].Lease})
		})
	}()
	awaitWaiting(t, watch, ended)
	lock(settled[1])
	if err := errors.Join(wake.Commit(t.Context()), <-ended); err != nil {
		t.Fatal(err)
	}
	if len(stored) != 1 || stored[0].ClaimID != settled[1].ClaimID {
		t.Errorf("stored %+v, want the second alone", stored)
	}
}
