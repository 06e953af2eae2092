package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/internal/statements"
)

//go:embed statements/*.sql
var statementFiles embed.FS

var fixed = statements.MustLoad(statementFiles, "statements")

// A transaction that found the file busy runs again, at most maxRetries times,
// after a pause that doubles and is drawn at random, so that two processes do
// not meet again.
const (
	maxRetries = 3
	firstPause = 10 * time.Millisecond
	longPause  = 500 * time.Millisecond
)

// errRehearsed ends a rehearsal that went well.
var errRehearsed = errors.New("rehearsed")

// View implements ledger.Ledger.
func (s *Store) View(ctx context.Context, f func(ledger.Tx) error) error {
	return s.again(ctx, func() error {
		return s.readers.with(ctx, s.path, func(c *connection) error { return s.run(ctx, c, beginReading, f) })
	})
}

// Update implements ledger.Ledger.
func (s *Store) Update(ctx context.Context, f func(ledger.Tx) error) error {
	return s.again(ctx, func() error {
		return s.writer.with(ctx, s.path, func(c *connection) error { return s.run(ctx, c, s.beginWriting, f) })
	})
}

// Rehearse implements ledger.Ledger.
func (s *Store) Rehearse(ctx context.Context, f func(ledger.Tx) error) error {
	err := s.Update(ctx, func(t ledger.Tx) error {
		if err := f(t); err != nil {
			return err
		}
		return errRehearsed
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
		if err == nil || !passing(err) || s.retries == 0 {
			return err
		}
		if tries > s.retries {
			return fmt.Errorf("gave up after %d attempts: %w", tries, err)
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

// run is one attempt: begin, f, commit. The end of a transaction does not heed
// ctx, so that it is known whether it was committed.
func (s *Store) run(ctx context.Context, c *connection, begin func(context.Context, *connection) error, f func(ledger.Tx) error) error {
	ending := context.WithoutCancel(ctx)
	if err := begin(ctx, c); err != nil {
		// A transaction that was cancelled while it began may have begun: it would
		// hold the file's lock, and the connection take no other one.
		return errors.Join(s.fail("begin", err), c.rollback(ending))
	}
	t := &tx{store: s, connection: c}
	if err := f(t); err != nil {
		return errors.Join(err, c.rollback(ending))
	}
	if err := ctx.Err(); err != nil {
		return errors.Join(err, c.rollback(ending))
	}
	if err := c.control(ending, "COMMIT"); err != nil {
		return errors.Join(s.fail("commit", err), c.rollback(ending))
	}
	if t.wake {
		s.wakes.tell()
	}
	return nil
}

func beginReading(ctx context.Context, c *connection) error { return c.control(ctx, "BEGIN") }

// beginWriting takes the write lock, in turn with other processes.
func (s *Store) beginWriting(ctx context.Context, c *connection) error {
	err := s.inPlace()
	if err != nil {
		return err
	}
	waited := s.queue.wait(ctx, s.busyTimeout, func() (busy bool) {
		err = c.control(ctx, "BEGIN IMMEDIATE")
		return passing(err)
	})
	if errors.Is(waited, errImpatient) && err != nil {
		return err // what SQLite said last
	}
	if waited != nil {
		return waited
	}
	return err
}

// rollback ends a transaction that failed. SQLite itself has ended it after
// some errors, such as a full disk, and says so.
func (c *connection) rollback(ctx context.Context) error {
	err := c.control(ctx, "ROLLBACK")
	if err == nil || code(err) == sqliteError {
		return nil
	}
	return fmt.Errorf("%w: %w", errBroken, err)
}

// sqliteError is SQLITE_ERROR, here: no transaction is active.
const sqliteError = 1

// tx is one transaction.
type tx struct {
	store      *Store
	connection *connection
	// wake: work or events appeared; sleepers are told after the commit.
	wake bool
}

var _ ledger.Tx = (*tx)(nil)

// execute runs a statement that returns nothing and reports how many rows it touched.
func (t *tx) execute(ctx context.Context, s statements.Statement, args ...any) (int64, error) {
	statement, err := t.connection.prepare(ctx, s.Text)
	if err != nil {
		return 0, t.store.fail(s.Name, err)
	}
	result, err := statement.ExecContext(ctx, args...)
	if err != nil {
		return 0, t.store.fail(s.Name, err)
	}
	touched, err := result.RowsAffected()
	return touched, t.store.fail(s.Name, err)
}

// collect runs a statement and reads its rows.
func collect[T any](ctx context.Context, t *tx, s statements.Statement, read func(scan) (T, error), args ...any) ([]T, error) {
	statement, err := t.connection.prepare(ctx, s.Text)
	if err != nil {
		return nil, t.store.fail(s.Name, err)
	}
	rows, err := statement.QueryContext(ctx, args...)
	if err != nil {
		return nil, t.store.fail(s.Name, err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		row, err := read(rows.Scan)
		if err != nil {
			return nil, t.store.fail(s.Name, err)
		}
		all = append(all, row)
	}
	return all, t.store.fail(s.Name, rows.Err())
}

// scan reads the current row, as sql.Rows.Scan does.
type scan func(...any) error

// one runs a statement that yields at most one row; without one it fails with ledger.ErrNotFound.
func one[T any](ctx context.Context, t *tx, s statements.Statement, read func(scan) (T, error), args ...any) (T, error) {
	all, err := collect(ctx, t, s, read, args...)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: %s", ledger.ErrNotFound, s.Name)
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// column reads a row of one column.
func column[T any](scan scan) (value T, err error) {
	err = scan(&value)
	return value, err
}
