package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// with adds a parameter to a URL.
func with(tb testing.TB, address, name, value string) string {
	tb.Helper()
	u, err := url.Parse(address)
	if err != nil {
		tb.Fatal(err)
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

// insist repeats a transaction that found the store unavailable, as a queue
// before the store does. Any other error is final.
func insist(ctx context.Context, store ledger.Ledger, f func(ledger.Tx) error) error {
	for {
		err := store.Update(ctx, f)
		if !errors.Is(err, ledger.ErrUnavailable) {
			return err
		}
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
}

// The server dies in the middle of the work of recorders, evidence and
// verifiers, twice. Everything that was acknowledged is there, nothing is there twice, each
// action was verified once, and the chain is whole.
func TestServerCrashesUnderLoad(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t, pgserver.WithFsync())
	address := server.Database(t)
	if err := migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	store := open(t, address, WithMaxConnections(6))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	const batches, size = 20, 2 * leastGuess
	var progress atomic.Int64 // acknowledged batches of all workers
	var clock atomic.Int64    // the time that verifiers are told; a lease ends when it moves on
	clock.Store(int64(noon))
	var workers sync.WaitGroup
	var failures = make(chan error, 8)
	work := func(f func() error) {
		workers.Go(func() {
			if err := f(); err != nil {
				failures <- err
				cancel()
			}
		})
	}
	for w := range 2 {
		work(func() error {
			for b := range batches {
				actions := make([]ledger.NewAction, size)
				for i := range actions {
					id := fmt.Sprintf("act_%d_%d_%d", w, b, i)
					actions[i] = ledger.NewAction{Action: action(id, "order_"+id), Verify: true}
				}
				if err := insist(ctx, store, func(tx ledger.Tx) error {
					_, err := tx.RecordActions(ctx, tenant, actions, noon)
					return err
				}); err != nil {
					return err
				}
				progress.Add(1)
			}
			return nil
		})
		work(func() error {
			for b := range batches {
				facts := make([]engine.Fact, size)
				for i := range facts {
					id := fmt.Sprintf("%d_%d_%d", w, b, i)
					facts[i] = fact("re_"+id, "case_"+id) // a case of no action: nothing is woken and verified twice
				}
				if err := insist(ctx, store, func(tx ledger.Tx) error {
					_, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: facts, Trust: engine.Shared}, noon)
					return err
				}); err != nil {
					return err
				}
				progress.Add(1)
			}
			return nil
		})
	}
	recorded := make(chan struct{})
	for v := range 2 {
		work(func() error { return verifyAll(ctx, store, fmt.Sprintf("verifier_%d", v), &clock, recorded) })
	}
	go func() {
		defer close(recorded)
		for progress.Load() < 4*batches && ctx.Err() == nil {
			_ = rest(ctx, time.Millisecond)
		}
	}()
	for _, reached := range []int64{batches, 3 * batches} {
		for progress.Load() < reached && ctx.Err() == nil {
			_ = rest(ctx, time.Millisecond)
		}
		server.Restart(t)
		clock.Add(1000)
	}
	workers.Wait()
	select {
	case err := <-failures:
		t.Fatal(err)
	default:
	}

	if guessed := -store.lookFirst.Load(); guessed < 2*batches {
		t.Errorf("%d batches of facts were written without look-up, want all %d", guessed, 2*batches)
	}
	const actions = 2 * batches * size
	if entries := checkChain(t, store); len(entries) != 2*actions {
		t.Errorf("the chain has %d verdicts, want %d: two for each action", len(entries), 2*actions)
	}
	conn := connect(t, address)
	for what, query := range map[string]string{
		"actions":          "SELECT count(*) FROM claims",
		"facts":            "SELECT count(*) FROM facts",
		"verified actions": "SELECT count(DISTINCT claim_id) FROM runs",
		"events":           "SELECT count(*) FROM outbox",
	} {
		var n int64
		if err := conn.QueryRow(t.Context(), query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n != actions {
			t.Errorf("%d %s, want %d", n, what, actions)
		}
	}
}

// verifyAll stores one settled run for each action that is due, until all are recorded and nothing is due.
func verifyAll(ctx context.Context, store ledger.Ledger, owner string, clock *atomic.Int64, recorded <-chan struct{}) error {
	for {
		last := false
		select {
		case <-recorded:
			last = true
		default:
		}
		now := engine.Instant(clock.Load())
		lease := ledger.Lease{Owner: owner, Now: now, Until: now + 100}
		var due []ledger.Due
		if err := insist(ctx, store, func(tx ledger.Tx) error {
			var err error
			due, err = tx.LeaseDue(ctx, tenant, lease, 50)
			return err
		}); err != nil {
			return err
		}
		if len(due) == 0 {
			if last {
				var left []string
				if err := insist(ctx, store, func(tx ledger.Tx) error {
					var err error
					left, err = tx.DueTenants(ctx, engine.MaxInstant, 1)
					return err
				}); err != nil || len(left) == 0 {
					return err
				}
				clock.Add(1000) // a lease of an answer that was lost ends
			}
			if err := rest(ctx, time.Millisecond); err != nil {
				return err
			}
			continue
		}
		runs := make([]ledger.Run, len(due))
		for i := range due {
			runs[i] = run(due[i].ClaimID, &due[i], owner)
			runs[i].ClaimID, runs[i].NextCheckAt, runs[i].Status = due[i].ClaimID, nil, ledger.Settled
		}
		err := insist(ctx, store, func(tx ledger.Tx) error {
			_, err := tx.StoreRuns(ctx, tenant, runs)
			return err
		})
		// A lost lease after an answer that was lost: they are stored already.
		if err != nil && !errors.Is(err, ledger.ErrLeaseLost) {
			return err
		}
	}
}

func TestBackendTerminatedInATransaction(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	store, other := open(t, address), connect(t, address)
	err := store.Update(t.Context(), func(txn ledger.Tx) error {
		if _, err := txn.IngestFacts(t.Context(), tenant, ledger.FactBatch{Facts: []engine.Fact{fact("re_1", "order_1")}}, noon); err != nil {
			return err
		}
		if _, err := other.Exec(t.Context(), "SELECT pg_terminate_backend($1)", txn.(*tx).db.Conn().PgConn().PID()); err != nil {
			return err
		}
		_, err := txn.Tenants(t.Context())
		return err
	})
	if !errors.Is(err, ledger.ErrUnavailable) {
		t.Fatalf("%v, want %v", err, ledger.ErrUnavailable)
	}
	var got ledger.Ingested
	update(t, store, func(ctx context.Context, tx ledger.Tx) error {
		var err error
		got, err = tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: []engine.Fact{fact("re_1", "order_1")}}, noon)
		return err
	})
	if got.Ingested != 1 {
		t.Errorf("%+v, want the fact ingested: the broken transaction left something behind", got)
	}
}

// Idle connections that a restart broke are replaced without anybody noticing.
func TestPoolSurvivesARestart(t *testing.T) {
	t.Parallel()
	server := pgserver.Start(t)
	address := server.Database(t)
	if err := migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	store := open(t, address, WithMaxConnections(4))
	if err := atOnce(func(int) error {
		return store.View(t.Context(), func(tx ledger.Tx) error { _, err := tx.Tenants(t.Context()); return err })
	}); err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	for range 4 {
		view(t, store, func(ctx context.Context, tx ledger.Tx) error { _, err := tx.Tenants(ctx); return err })
	}
}

func TestErrorsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	_ = listener.Close()

	ingest := func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.IngestFacts(ctx, tenant, ledger.FactBatch{Facts: []engine.Fact{fact("re_1", "order_1")}}, noon)
		return err
	}
	for name, test := range map[string]struct {
		url  string
		want error
	}{
		"connection refused":  {"postgres://postgres@" + closed + "/x?sslmode=disable", ledger.ErrUnavailable},
		"no such database":    {with(t, address, "dbname", "nowhere"), ledger.ErrUnavailable},
		"no such login":       {with(t, address, "user", "nobody"), ledger.ErrUnavailable},
		"read-only server":    {with(t, address, "default_transaction_read_only", "on"), ledger.ErrReadOnly},
		"another schema path": {with(t, address, "search_path", "pg_temp"), ledger.ErrNotMigrated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := open(t, test.url).Update(t.Context(), func(tx ledger.Tx) error { return ingest(t.Context(), tx) })
			if !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
}

// What passes is told by SQLSTATE from what never will.
func TestSQLStates(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]error{
		"22021": ledger.ErrData, "22P02": ledger.ErrData, "23502": ledger.ErrData, "23514": ledger.ErrData, "54000": ledger.ErrData,
		"23505": ledger.ErrImmutable, "25006": ledger.ErrReadOnly, "42501": ledger.ErrReadOnly, "42P01": ledger.ErrNotMigrated,
		"08006": ledger.ErrUnavailable, "40001": ledger.ErrUnavailable, "40P01": ledger.ErrUnavailable, "53100": ledger.ErrUnavailable,
		"53300": ledger.ErrUnavailable, "55P03": ledger.ErrUnavailable, "57P01": ledger.ErrUnavailable, "57014": ledger.ErrUnavailable,
		"58030": ledger.ErrUnavailable, "XX000": ledger.ErrUnavailable, "": ledger.ErrUnavailable,
	} {
		if err := fail("ingest", &pgconn.PgError{Code: code}); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", code, err, want)
		}
	}
}

// Whoever starts a program without its server reads one line with what to do.
func TestNoConnectionIsOneLineWithTheRemedy(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	at := u.Host
	for name, test := range map[string]struct{ url, want string }{
		"refused": {"postgres://me:secret@127.0.0.1:1/x", `no connection to PostgreSQL at 127.0.0.1:1 as user "me" to database "x": connection refused; start the server, or correct host and port in the store's URL`},
		"several": {"postgres://me@127.0.0.1:1,127.0.0.1:2/x", `no connection to PostgreSQL at 127.0.0.1:1, 127.0.0.1:2 as user "me" to database "x": connection refused; start the server, or correct host and port in the store's URL`},
		"socket":  {"host=/nowhere user=me dbname=x", `no connection to PostgreSQL at /nowhere:5432 as user "me" to database "x": there is no such socket; start the server, or correct host and port in the store's URL`},
		"database": {with(t, address, "dbname", "nowhere"), `no connection to PostgreSQL at ` + at + ` as user "` + u.User.Username() +
			`" to database "nowhere": database "nowhere" does not exist (SQLSTATE 3D000); correct the database in the store's URL, or create it`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := open(t, test.url)
			for what, err := range map[string]error{"migrate": store.Migrate(t.Context()), "check": store.CheckSchema(t.Context()), "view": store.View(t.Context(), func(ledger.Tx) error { return nil })} {
				if want := "store unavailable: " + test.want; err == nil || err.Error() != want || !errors.Is(err, ledger.ErrUnavailable) {
					t.Errorf("%s:\n  got  %v\n  want %s", what, err, want)
				}
			}
		})
	}
}

// A statement that waits too long is unavailable; one that waits too long for a
// lock is tried again, a bounded number of times.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	address := migratedURL(t)
	writer := open(t, address)
	update(t, writer, func(ctx context.Context, tx ledger.Tx) error {
		_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_1", "order_1")}}, noon)
		return err
	})
	holder, err := connect(t, address).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), "SELECT FROM claims FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	store := func(s *Store) (attempts int, err error) {
		err = s.Update(t.Context(), func(tx ledger.Tx) error {
			attempts++
			_, err := tx.StoreRuns(t.Context(), tenant, []ledger.Run{run("act_1", nil, "")})
			return err
		})
		return attempts, err
	}

	attempts, err := store(open(t, with(t, address, "statement_timeout", "50")))
	want := "store unavailable: LockClaims: ERROR: canceling statement due to statement timeout (SQLSTATE 57014)"
	if !errors.Is(err, ledger.ErrUnavailable) || err.Error() != want || attempts != 1 {
		t.Errorf("after %d attempts: %v, want %s after 1", attempts, err, want)
	}

	impatient := open(t, with(t, address, "lock_timeout", "20"))
	impatient.retries = 2
	attempts, err = store(impatient)
	want = "store unavailable: gave up after 3 attempts: store unavailable: LockClaims: ERROR: canceling statement due to lock timeout (SQLSTATE 55P03)"
	if !errors.Is(err, ledger.ErrUnavailable) || err.Error() != want || attempts != 3 {
		t.Errorf("after %d attempts: %v, want %s after 3", attempts, err, want)
	}

	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if attempts, err = store(impatient); err != nil || attempts != 1 {
		t.Errorf("with the lock free: %v after %d attempts", err, attempts)
	}
}

func TestContextErrorsAreKept(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t), WithMaxConnections(1))
	view(t, store, func(ctx context.Context, _ ledger.Tx) error {
		// The only connection is taken.
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := store.View(ctx, func(ledger.Tx) error { return nil })
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ledger.ErrUnavailable) {
			t.Errorf("%v, want %v", err, context.DeadlineExceeded)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	err := store.Update(ctx, func(tx ledger.Tx) error {
		cancel()
		_, err := tx.Tenants(ctx)
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %v", err, context.Canceled)
	}
}

// What a caller's function returns is the caller's, and ends the transaction.
func TestUpdatePassesTheCallersErrorOn(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t))
	mine := errors.New("mine")
	for _, run := range []func(context.Context, func(ledger.Tx) error) error{store.Update, store.View, store.Rehearse} {
		if err := run(t.Context(), func(ledger.Tx) error { return mine }); err != mine { //nolint:errorlint // the very same
			t.Errorf("%v, want %v", err, mine)
		}
	}
}
