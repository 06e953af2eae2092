package torture

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/countersign-otel/countersign/examples/stack"
	"github.com/countersign-otel/countersign/internal/pgserver"
)

// store is a database that can be taken away.
type store struct {
	name, url string
	t         *testing.T
	db        *sql.DB
	server    *pgserver.Server // of PostgreSQL
	lock      *sql.Conn        // of SQLite, while it is held
}

func newPostgres(t *testing.T) *store {
	t.Helper()
	server := pgserver.Start(t, pgserver.WithFsync())
	address := server.Database(t)
	return &store{name: "PostgreSQL", url: address, t: t, db: openDB(t, "pgx", address), server: server}
}

func newSQLite(t *testing.T) *store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger.db")
	return &store{name: "SQLite", url: "sqlite:" + path, t: t, db: openDB(t, "sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: "_pragma=busy_timeout(10000)"}).String())}
}

func openDB(t *testing.T, driver, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// migrate makes the schema, as an operator does.
func (s *store) migrate(ctx context.Context) {
	s.t.Helper()
	tool := exec.CommandContext(ctx, filepath.Join(root, "bin", stack.SidecarBinary), "migrate", "--store", s.url)
	if out, err := tool.CombinedOutput(); err != nil {
		s.t.Fatalf("migrate: %v: %s", err, out)
	}
}

// down takes the database away: a server is stopped, a file is locked.
func (s *store) down(ctx context.Context) {
	s.t.Helper()
	if s.server != nil {
		s.server.Stop(s.t)
		return
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		s.t.Fatal(err)
	}
	s.lock = conn
}

func (s *store) up(ctx context.Context) {
	s.t.Helper()
	if s.server != nil {
		s.server.Resume(s.t)
		return
	}
	if _, err := s.lock.ExecContext(ctx, "ROLLBACK"); err != nil {
		s.t.Fatal(err)
	}
	if err := s.lock.Close(); err != nil {
		s.t.Fatal(err)
	}
}

// count is how many facts there are; -1 while nobody answers.
func (s *store) count(ctx context.Context, where string) int {
	var n int
	if err := s.db.QueryRowContext(ctx, "SELECT count(*) FROM facts WHERE "+where).Scan(&n); err != nil {
		return -1
	}
	return n
}

func (s *store) exec(ctx context.Context, statements ...string) {
	s.t.Helper()
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, statement); err != nil {
			s.t.Fatalf("%s: %v", statement, err)
		}
	}
}

// checkEach: every order has its one fact.
func (s *store) checkEach(ctx context.Context) {
	s.t.Helper()
	rows, err := s.db.QueryContext(ctx, "SELECT subject_id, count(*) FROM facts WHERE source = 'crm' GROUP BY subject_id")
	if err != nil {
		s.t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]int{}
	for rows.Next() {
		var subject string
		var n int
		if err := rows.Scan(&subject, &n); err != nil {
			s.t.Fatal(err)
		}
		found[subject] = n
	}
	if err := rows.Err(); err != nil {
		s.t.Fatal(err)
	}
	lost, doubled := 0, 0
	for n := range items {
		switch count := found[fmt.Sprintf("order_%05d", n)]; {
		case count == 0:
			lost++
		case count > 1:
			doubled++
		}
	}
	if lost+doubled > 0 || len(found) != items {
		s.t.Errorf("%d items lost, %d doubled, %d subjects", lost, doubled, len(found))
	}
}

// settled waits until everything is in the store.
func (s *store) settled(ctx context.Context) {
	s.t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		n := s.count(ctx, "source = 'crm'")
		if n == items {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("%d of %d items are in the ledger: %v", n, items, ctx.Err())
		case <-tick.C:
		}
	}
}
