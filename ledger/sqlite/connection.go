package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/countersign-otel/countersign/ledger"
)

// preparedStatements is how many statements a connection keeps compiled: the
// fixed ones and those of the contracts in use.
const preparedStatements = 512

// connection is one SQLite connection with its compiled statements. One
// goroutine uses it at a time.
type connection struct {
	raw      *sql.Conn
	prepared *lru.Cache[string, *sql.Stmt]
}

// connect opens a connection and runs statements on it.
func (s *Store) connect(ctx context.Context, first ...string) (*connection, error) {
	raw, err := s.database.Conn(ctx)
	if err != nil {
		return nil, err
	}
	statements, err := lru.NewWithEvict(preparedStatements, func(_ string, statement *sql.Stmt) { _ = statement.Close() })
	if err != nil {
		return nil, err
	}
	c := &connection{raw: raw, prepared: statements}
	for _, text := range first {
		if err := c.control(ctx, text); err != nil {
			return nil, errors.Join(err, c.close())
		}
	}
	return c, nil
}

// control runs a statement that begins or ends a transaction, or sets something.
func (c *connection) control(ctx context.Context, text string) error {
	_, err := c.raw.ExecContext(ctx, text)
	return err
}

// prepared is a statement that its connection keeps: whoever uses it does not close it.
type prepared interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, args ...any) *sql.Row
}

func (c *connection) prepare(ctx context.Context, text string) (prepared, error) {
	if statement, ok := c.prepared.Get(text); ok {
		return statement, nil
	}
	statement, err := c.raw.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	c.prepared.Add(text, statement)
	return statement, nil
}

func (c *connection) close() error {
	c.prepared.Purge()
	return c.raw.Close()
}

// pool lends connections. Waiting for one ends with the context.
type pool struct {
	open  func(context.Context) (*connection, error)
	slots chan *connection // nil for a connection that is not open yet

	mu     sync.Mutex
	closed chan struct{}
}

var errClosed = errors.New("the store is closed")

func newPool(size int, open func(context.Context) (*connection, error)) *pool {
	p := &pool{open: open, slots: make(chan *connection, size), closed: make(chan struct{})}
	for range size {
		p.slots <- nil
	}
	return p
}

// with lends a connection to f. One that f leaves broken is replaced.
func (p *pool) with(ctx context.Context, path string, f func(*connection) error) error {
	c, err := p.take(ctx)
	if err != nil {
		return describe(path, "open", err)
	}
	healthy := false
	defer func() {
		if !healthy { // also after a panic: what the connection holds is unknown
			_ = c.close()
			c = nil
		}
		p.slots <- c
	}()
	err = f(c)
	healthy = !errors.Is(err, errBroken)
	return err
}

// errBroken marks a connection that must not be used again.
var errBroken = errors.New("connection is in an unknown state")

func (p *pool) take(ctx context.Context) (*connection, error) {
	select {
	case <-p.closed:
		return nil, errClosed
	default:
	}
	select {
	case <-p.closed:
		return nil, errClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	case c := <-p.slots:
		if c != nil {
			return c, nil
		}
		c, err := p.open(ctx)
		if err != nil {
			p.slots <- nil
			return nil, err
		}
		return c, nil
	}
}

// close waits until every connection is back and closes them.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return nil
	default:
		close(p.closed)
	}
	var all error
	for range cap(p.slots) {
		if c := <-p.slots; c != nil {
			all = errors.Join(all, c.close())
		}
	}
	return all
}

// describe is fail without a store.
func describe(path, doing string, err error) error {
	if errors.Is(err, errClosed) {
		return fmt.Errorf("%w: %s: %w", ledger.ErrUnavailable, path, err)
	}
	return classify(path, doing, err)
}
