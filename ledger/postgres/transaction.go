package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-otel/countersign/ledger"
)

// A transaction that another one got in the way of runs again, at most
// maxRetries times, after a pause that doubles and is drawn at random, so that
// the two do not meet again.
const (
	maxRetries = 10
	firstPause = 5 * time.Millisecond
	longPause  = 500 * time.Millisecond

	rollbackTimeout = 5 * time.Second
)

// errRehearsed ends a rehearsal that went well.
var errRehearsed = errors.New("rehearsed")

// View implements ledger.Ledger.
func (s *Store) View(ctx context.Context, f func(ledger.Tx) error) error {
	_, err := s.run(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, f)
	return err
}

// Update implements ledger.Ledger.
func (s *Store) Update(ctx context.Context, f func(ledger.Tx) error) error {
	var done *tx
	if err := s.again(ctx, func() (err error) {
		done, err = s.run(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, f)
		return err
	}); err != nil {
		return err
	}
	return s.awaitEvidence(ctx, done.leased)
}

// Rehearse implements ledger.Ledger.
func (s *Store) Rehearse(ctx context.Context, f func(ledger.Tx) error) error {
	err := s.again(ctx, func() error {
		_, err := s.run(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(t ledger.Tx) error {
			if err := f(t); err != nil {
				return err
			}
			return errRehearsed
		})
		return err
	})
	if errors.Is(err, errRehearsed) {
		return nil
	}
	return err
}

// again repeats a transaction while its failure is a passing one.
func (s *Store) again(ctx context.Context, attempt func() error) error {
	pause := firstPause
	for tries := 1; ; tries++ {
		err := attempt()
		if err == nil || !passing(err) {
			return err
		}
		if tries > s.retries {
			return fmt.Errorf("%w: gave up after %d attempts: %w", ledger.ErrUnavailable, tries, err)
		}
		if err := rest(ctx, pause/2+rand.N(pause)); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

func rest(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// run is one attempt: begin, f, commit.
func (s *Store) run(ctx context.Context, options pgx.TxOptions, f func(ledger.Tx) error) (*tx, error) {
	begun, err := s.begin(ctx, options)
	if err != nil {
		return nil, fail("begin", err)
	}
	t := &tx{db: begun, store: s, readOnly: options.AccessMode == pgx.ReadOnly}
	committed := false
	defer func() {
		if !committed {
			// Also after a panic, and when ctx is over: the connection goes back clean or is closed.
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
			defer cancel()
			_ = begun.Rollback(ctx)
		}
	}()
	if err := f(t); err != nil {
		return nil, err
	}
	if t.wake {
		if _, err := begun.Exec(ctx, notify.Text); err != nil {
			return nil, fail(notify.Name, err)
		}
	}
	committed = true
	return t, fail("commit", begun.Commit(ctx))
}

// begin takes a connection from the pool. One that broke while it lay idle,
// because the server was restarted, is replaced.
func (s *Store) begin(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	for broken := int32(0); ; broken++ {
		begun, err := s.pool.BeginTx(ctx, options)
		if err == nil || ctx.Err() != nil || broken >= s.pool.Stat().MaxConns() {
			return begun, err
		}
		var refused *pgconn.ConnectError
		if errors.As(err, &refused) || !lost(err) {
			return nil, err
		}
	}
}

// tx is one transaction.
type tx struct {
	db       pgx.Tx
	store    *Store
	readOnly bool
	// wake: work or events appeared; sleepers are told with the commit.
	wake bool
	// leased is what must not be judged before the evidence that is under way.
	leased []leasing
	// verified is what Snapshot saw; only where nothing changes until the end.
	verified *verified
}

var _ ledger.Tx = (*tx)(nil)

var notify = named("Notify")

// execute runs a statement that returns nothing and reports how many rows it touched.
func (t *tx) execute(ctx context.Context, s statement, args ...any) (int64, error) {
	tag, err := t.db.Exec(ctx, s.Text, args...)
	return tag.RowsAffected(), fail(s.Name, err)
}

// collect runs a statement and reads its rows.
func collect[T any](ctx context.Context, t *tx, s statement, read pgx.RowToFunc[T], args ...any) ([]T, error) {
	rows, err := t.db.Query(ctx, s.Text, args...)
	if err != nil {
		return nil, fail(s.Name, err)
	}
	all, err := pgx.CollectRows(rows, read)
	return all, fail(s.Name, err)
}

// into is collect for a statement of a batch.
func into[T any](s statement, all *[]T, read pgx.RowToFunc[T]) func(pgx.Rows) error {
	return func(rows pgx.Rows) (err error) {
		if *all, err = pgx.CollectRows(rows, read); err != nil {
			return &failedInBatch{s.Name, err}
		}
		return nil
	}
}

// failedInBatch tells which statement of a batch failed.
type failedInBatch struct {
	name  string
	cause error
}

func (e *failedInBatch) Error() string { return e.name + ": " + e.cause.Error() }

func (e *failedInBatch) Unwrap() error { return e.cause }

// send runs a batch in one round trip. Its error names the statement, or doing where that is not known.
func (t *tx) send(ctx context.Context, doing string, batch *pgx.Batch) error {
	err := t.db.SendBatch(ctx, batch).Close()
	var failed *failedInBatch
	if errors.As(err, &failed) {
		return fail(failed.name, failed.cause)
	}
	return fail(doing, err)
}

// one runs a statement that yields at most one row; without one it fails with ledger.ErrNotFound.
func one[T any](ctx context.Context, t *tx, s statement, read pgx.RowToFunc[T], args ...any) (T, error) {
	rows, err := t.db.Query(ctx, s.Text, args...)
	if err != nil {
		var none T
		return none, fail(s.Name, err)
	}
	found, err := pgx.CollectExactlyOneRow(rows, read)
	return found, fail(s.Name, err)
}
