package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// underPressure writes batches of facts and actions from all writers at once,
// each until it is acknowledged, as a queue before a store does, and checks that
// each of them is there once. update is one attempt; an attempt may fail as
// unavailable or out of time, and in no other way.
func underPressure(t *testing.T, address string, update func(ctx context.Context, writer int, f func(ledger.Tx) error) error) (failed int64) {
	t.Helper()
	const batches, size = 5, 2 * leastGuess
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for machines with much else to do
	defer cancel()
	var failures atomic.Int64
	err := atOnce(func(w int) error {
		for b := range batches {
			actions, facts := make([]ledger.NewAction, size), make([]engine.Fact, size)
			for i := range size {
				id := fmt.Sprintf("%d_%d_%d", w, b, i)
				actions[i] = ledger.NewAction{Action: action("act_"+id, "order_"+id), Verify: true}
				facts[i] = fact("re_"+id, "order_"+id)
			}
			for {
				err := update(ctx, w, func(tx ledger.Tx) error {
					if _, err := tx.RecordActions(ctx, tenant, actions, noon); err != nil {
						return err
					}
					_, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, noon)
					return err
				})
				if err == nil {
					break
				}
				if ctx.Err() != nil || !errors.Is(err, ledger.ErrUnavailable) && !errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				failures.Add(1)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, address)
	for _, table := range []string{"claims", "facts", "due"} {
		var rows int
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&rows); err != nil {
			t.Fatal(err)
		}
		if want := writers * batches * size; rows != want {
			t.Errorf("%s has %d rows, want %d: each that was acknowledged, once", table, rows, want)
		}
	}
	wantGuessed(t, conn, writers*batches*size)
	return failures.Load()
}

// wantGuessed fails unless as many facts were written without look-up, that is
// after a savepoint: a row carries the number of its subtransaction, and that of
// the action that was recorded before it the number of the transaction.
func wantGuessed(tb testing.TB, conn *pgx.Conn, want int) {
	tb.Helper()
	var guessed int
	if err := conn.QueryRow(tb.Context(), `SELECT count(*) FROM facts f JOIN claims c USING (tenant_id, subject_id)
		WHERE f.xmin <> c.xmin`).Scan(&guessed); err != nil {
		tb.Fatal(err)
	}
	if guessed != want {
		tb.Errorf("%d facts were written without look-up, want %d", guessed, want)
	}
}

// More writers than connections, of which some give up waiting.
func TestPoolExhaustedUnderLoad(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	store := open(t, address, WithMaxConnections(1))
	held := make(chan struct{})
	go func() { // nobody gets a connection before all have given up once
		_ = store.View(t.Context(), func(ledger.Tx) error { <-held; return nil })
	}()
	for store.pool.Stat().AcquiredConns() == 0 {
		_ = rest(t.Context(), time.Millisecond)
	}
	var gaveUp atomic.Int64
	failed := underPressure(t, address, func(ctx context.Context, _ int, f func(ledger.Tx) error) error {
		if gaveUp.Load() >= writers {
			return store.Update(ctx, f)
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := store.Update(ctx, f)
		if gaveUp.Add(1) == writers {
			close(held)
		}
		return err
	})
	if failed < writers {
		t.Errorf("%d attempts failed, want at least %d: nobody had to wait for a connection", failed, writers)
	}
	if used := store.pool.Stat().AcquiredConns(); used != 0 {
		t.Errorf("%d connections were not given back", used)
	}
}

// The server lets in fewer connections than the programs want.
func TestServerOutOfConnectionsUnderLoad(t *testing.T) {
	t.Parallel()
	url, _ := migratedByOwner(t)
	member := memberURL(t, url, "countersign_record", "countersign_evidence")
	config, err := pgx.ParseConfig(member)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, fmt.Sprintf("ALTER ROLE %q CONNECTION LIMIT 2", config.User))
	stores := make([]*Store, writers) // programs that know nothing of each other
	for i := range stores {
		stores[i] = open(t, member, WithMaxConnections(1))
	}
	var text atomic.Value
	failed := underPressure(t, url, func(ctx context.Context, w int, f func(ledger.Tx) error) error {
		err := stores[w].Update(ctx, f)
		if err != nil {
			text.Store(err.Error())
			return err
		}
		stores[w].pool.Reset() // gives its connection to the others
		return nil
	})
	if failed == 0 {
		t.Fatal("no attempt failed: there were connections enough")
	}
	want := `: too many connections for role "` + config.User + `" (SQLSTATE 53300); give the server more max_connections, or the programs a smaller pool_max_conns`
	if got := text.Load().(string); !strings.HasSuffix(got, want) {
		t.Errorf("error:\n  got  %s\n  want ...%s", got, want)
	}
}

// Statements that take too long are cancelled by the server while somebody holds
// what they wait for, and all is written when it is free.
func TestStatementTimeoutUnderLoad(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	holder, err := connect(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "LOCK TABLE facts IN SHARE MODE"); err != nil {
		t.Fatal(err)
	}
	store := open(t, with(t, address, "statement_timeout", "200"), WithMaxConnections(writers))
	var attempts atomic.Int64
	failed := underPressure(t, address, func(ctx context.Context, _ int, f func(ledger.Tx) error) error {
		err := store.Update(ctx, f)
		if attempts.Add(1) == 2*writers {
			err = errors.Join(err, holder.Rollback(ctx))
		}
		return err
	})
	if failed < writers {
		t.Errorf("%d attempts failed, want at least %d: nobody ran out of time", failed, writers)
	}
}

// Two transactions that wait for each other: the server ends one of them, which
// runs again by itself.
func TestDeadlockIsRetried(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	store := open(t, with(t, address, "deadlock_timeout", "20ms"), WithMaxConnections(2))
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("a", "order_1")}, {Action: action("b", "order_1")}}, noon)
		return err
	})
	ids := []string{engine.ClaimID(tenant, "a"), engine.ClaimID(tenant, "b")}
	var attempts, locked atomic.Int64
	both := make(chan struct{})
	run := func(first, second string) error {
		return store.Update(t.Context(), func(txn ledger.Tx) error {
			again := attempts.Add(1) > 2
			if _, err := collect(t.Context(), txn.(*tx), lockClaims, pgx.RowTo[string], tenant, []string{first}); err != nil {
				return err
			}
			if !again {
				if locked.Add(1) == 2 {
					close(both)
				}
				<-both
			}
			_, err := collect(t.Context(), txn.(*tx), lockClaims, pgx.RowTo[string], tenant, []string{second})
			return err
		})
	}
	ended := make(chan error, 2)
	go func() { ended <- run(ids[0], ids[1]) }()
	go func() { ended <- run(ids[1], ids[0]) }()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	if n := attempts.Load(); n < 3 {
		t.Errorf("%d attempts, want at least 3: there was no deadlock", n)
	}
}

// A snapshot that somebody else's commit made useless is taken again.
func TestSerializationFailureIsRetried(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t), WithMaxConnections(2))
	record := func(ctx context.Context, tx ledger.Tx, amount int) error {
		a := action("a", "order_1")
		a.Params = parsed(fmt.Sprintf(`{"amount":%d}`, amount))
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: a}}, noon)
		return err
	}
	update(t, store, func(ctx context.Context, tx ledger.Tx) error { return record(ctx, tx, 1) })
	attempts := 0
	err := store.Rehearse(t.Context(), func(tx ledger.Tx) error {
		if attempts++; attempts == 1 {
			if _, err := tx.Tenants(t.Context()); err != nil { // takes the snapshot
				return err
			}
			update(t, store, func(ctx context.Context, other ledger.Tx) error { return record(ctx, other, 2) })
		}
		return record(t.Context(), tx, 3)
	})
	if err != nil || attempts != 2 {
		t.Errorf("%d attempts and %v, want 2 and no error", attempts, err)
	}
}
