package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

func TestMain(m *testing.M) {
	if address := os.Getenv(writerVariable); address != "" {
		beWriter(address)
	}
	code := pgserver.Run(m)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

const (
	tenant = "acme"
	// noon is when most of these stories begin.
	noon engine.Instant = 1_790_000_000
)

// databases are migrated ones that no test uses just now. Emptying one takes a
// tenth of the time of making one.
var databases struct {
	sync.Mutex
	idle []string
	made int
}

// migratedURL is a database of the test's own, with the current schema and
// empty. The test must leave the schema as it is.
func migratedURL(tb testing.TB) string {
	tb.Helper()
	databases.Lock()
	defer databases.Unlock()
	if n := len(databases.idle); n > 0 {
		address := databases.idle[n-1]
		databases.idle = databases.idle[:n-1]
		putBack(tb, address)
		return address
	}
	address := newDatabase(tb)
	putBack(tb, address)
	return address
}

// unusedURL is a migrated database that no test used before, for tests that read
// what the server counts of a database.
func unusedURL(tb testing.TB) string {
	tb.Helper()
	databases.Lock()
	defer databases.Unlock()
	address := newDatabase(tb)
	putBack(tb, address)
	return address
}

// newDatabase needs the lock of databases.
func newDatabase(tb testing.TB) string {
	tb.Helper()
	server := pgserver.Shared(tb)
	databases.made++
	name := fmt.Sprintf("ledger_%d", databases.made)
	execute(tb, server.URL(), "CREATE DATABASE "+name)
	address := server.DatabaseURL(name)
	if err := migrate(tb.Context(), address); err != nil {
		tb.Fatal(err)
	}
	return address
}

// putBack hands the database on, emptied, when the test ends.
func putBack(tb testing.TB, address string) {
	tb.Helper()
	tb.Cleanup(func() {
		empty(tb, address)
		databases.Lock()
		defer databases.Unlock()
		databases.idle = append(databases.idle, address)
	})
}

// empty removes all rows but the schema's version.
func empty(tb testing.TB, address string) {
	execute(tb, address, `DO $$
DECLARE name text;
BEGIN
  FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'countersign_migrations' LOOP
    EXECUTE format('DELETE FROM %I', name);
  END LOOP;
END $$`)
}

// execute runs one statement on a connection of its own, also in a cleanup.
func execute(tb testing.TB, address, sql string) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = conn.Exec(ctx, sql)
	if err := errors.Join(err, conn.Close(ctx)); err != nil {
		tb.Fatal(err)
	}
}

func migrate(ctx context.Context, url string) error {
	store, err := Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	return store.Migrate(ctx)
}

func open(tb testing.TB, url string, options ...Option) *Store {
	tb.Helper()
	store, err := Open(tb.Context(), url, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store.(*Store)
}

// connect is a bare connection, for looking at what the store left behind.
func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	})
	return conn
}

func update(tb testing.TB, store ledger.Ledger, f func(ctx context.Context, tx ledger.Tx) error) {
	tb.Helper()
	ctx := tb.Context()
	if err := store.Update(ctx, func(tx ledger.Tx) error { return f(ctx, tx) }); err != nil {
		tb.Fatal(err)
	}
}

func view(tb testing.TB, store ledger.Ledger, f func(ctx context.Context, tx ledger.Tx) error) {
	tb.Helper()
	ctx := tb.Context()
	if err := store.View(ctx, func(tx ledger.Tx) error { return f(ctx, tx) }); err != nil {
		tb.Fatal(err)
	}
}

func action(id, subject string) engine.Action {
	return engine.Action{
		ActionID: id, ContractID: "refund_workflow", ContractVersion: 1, ActionType: "refund_order",
		SubjectID: subject, SubjectKind: "order", RequestedAt: noon, Params: parsed(`{"amount":180.0}`),
	}
}

func parsed(text string) engine.Object {
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		panic(err)
	}
	return o
}

func fact(ref, subject string) engine.Fact {
	return engine.Fact{
		RawRef: ref, Source: "stripe", Type: "refund_created", SubjectID: subject, SubjectKind: "order",
		OccurredAt: noon + 7, Attributes: parsed(`{"amount":180.00,"currency":"USD"}`),
	}
}

// changed is the action as an update that changes something would send it.
func changed(a engine.Action) engine.Action {
	a.Params = parsed(`{"amount":181.0}`)
	return a
}

// run is a pending run of an action with one event; verdicts differ by action.
func run(actionID string, lease *ledger.Due, owner string) ledger.Run {
	next := noon + 900
	return ledger.Run{
		ClaimID: engine.ClaimID(tenant, actionID), Lease: lease, Owner: owner,
		Contract: ledger.ContractRef{ID: "refund_workflow", Version: 1}, ComputedAt: noon + 1, TriggeredBy: "action",
		Status: ledger.Pending, Headline: "PENDING", Report: []byte(`{"checks":[]}`), NextCheckAt: &next, Events: []string{"action.pending"},
		Outcome: verdict(actionID, engine.Outcome), Policy: verdict(actionID, engine.Policy),
	}
}

func verdict(actionID string, lens engine.Lens) ledger.StoredVerdict {
	document := fmt.Sprintf(`{"action":%q,"lens":%q}`, actionID, lens)
	return ledger.StoredVerdict{
		Verdict:  engine.Verdict{Raw: engine.NotVerified, Reasons: []string{"verified_condition_not_met"}},
		Document: document, Hash: sha256.Sum256([]byte(document)),
	}
}

// refunds is the library's refund contract, as one of several versions.
func refunds(tb testing.TB, version int) *contract.Contract {
	tb.Helper()
	document, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	document = bytes.Replace(document, []byte("version: 1\n"), fmt.Appendf(nil, "version: %d\n", version), 1)
	c, diagnostics := contract.Parse("refund_workflow.yaml", document)
	if len(diagnostics) > 0 {
		tb.Fatal(diagnostics)
	}
	return c
}
