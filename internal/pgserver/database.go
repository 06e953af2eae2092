package pgserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const databaseTimeout = 30 * time.Second

// template is a database that others are copied from, prepared once.
type template struct {
	once sync.Once
	name string
	err  error
}

// Database makes an empty database for one test and returns its URL. It is dropped with the test,
// whatever connections are still open.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	return s.create(tb, "template0")
}

// DatabaseFrom makes a database as a copy of the named template and returns its URL. The first call
// with a name makes the template: an empty database that prepare fills, given its URL, typically by
// running the migrations; later calls copy it, which takes a fraction of the time. prepare must
// have closed its connections when it returns, because PostgreSQL does not copy a database in use.
func (s *Server) DatabaseFrom(tb testing.TB, name string, prepare func(ctx context.Context, url string) error) string {
	tb.Helper()
	s.mu.Lock()
	t := s.templates[name]
	if t == nil {
		t = &template{name: fmt.Sprintf("template_%d", len(s.templates)+1)}
		s.templates[name] = t
	}
	s.mu.Unlock()

	t.once.Do(func() { t.err = s.prepare(t.name, prepare) })
	if t.err != nil {
		tb.Fatalf("pgserver: template %q: %v", name, t.err)
	}
	return s.create(tb, t.name)
}

func (s *Server) prepare(name string, prepare func(ctx context.Context, url string) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := s.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		return err
	}
	return prepare(ctx, s.DatabaseURL(name))
}

func (s *Server) create(tb testing.TB, template string) string {
	tb.Helper()
	s.mu.Lock()
	s.databases++
	name := fmt.Sprintf("test_%d", s.databases)
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := s.execute(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		tb.Fatalf("pgserver: %v", err)
	}
	tb.Cleanup(func() { s.drop(tb, name) })
	return s.DatabaseURL(name)
}

func (s *Server) drop(tb testing.TB, name string) {
	s.mu.Lock()
	down := s.postmaster == nil
	s.mu.Unlock()
	if down {
		return // the test took the server down; its folder goes as a whole
	}
	ctx, cancel := context.WithTimeout(context.Background(), databaseTimeout)
	defer cancel()
	if err := s.execute(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
		tb.Errorf("pgserver: %v", err)
	}
}

func (s *Server) execute(ctx context.Context, sql string) (err error) {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if _, err := conn.Exec(ctx, sql); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}
