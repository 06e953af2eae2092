package postgres

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/internal/pgserver"
)

var updatePlans = flag.Bool("update", false, "write the golden plans in testdata/plans")

// hot are the statements whose plans are kept. What runs once in a while, and
// what touches a handful of rows by design, is not among them.
var hot = []string{
	"StandingFacts", "FactsOfSubjects", "LinksOfSubjects", "LinkSubjects", "MeetConnections",
	"KnownClaims", "UpdateClaims", "CompleteClaims", "CompensationChains", "LockClaims", "SetLatest", "SnapshotActions", "Peers",
	"Wake", "WakeSubjects", "WakeReversed", "WakeReaders",
	"DueTenants", "NextDue", "LeaseDue", "LeaseActions", "LeasesOf", "ScheduleDue", "FinishDue", "Release", "Park", "ParkedActions",
	"LatestRuns", "Runs", "RunsBySeq", "Actions", "Compensations", "ReadChain", "ChainRuns", "FactsByRef", "CheckLatest", "VerdictByHash", "Dropped", "ExpiredClaims", "OldFacts", "DropFacts", "OldReports", "OldContexts", "DropContexts",
	"ReadEvents", "EventHead", "LockWebhook", "LeaseDeliveries", "CompleteDeliveries", "DeadLetters", "ExpireDeliveries", "WaitingEvents", "LeaseOutbox", "RemoveEvents", "RetryEvents", "KeyByHash", "KeyEvents", "OldKeyEvents",
}

// lists are statements that are planned for the values they get.
var lists = map[string]struct{ name, arguments string }{
	"ListActions of a tenant":   {"ListActions", "'tenant_1', '', '', '', '', '', '', 51, NULL, '', '', NULL, NULL"},
	"ListActions next page":     {"ListActions", "'tenant_1', 'FAIL', '', '', '', '', '', 51, 1790005000, 'clm_5', 'NOT_VERIFIED', NULL, NULL"},
	"ListActions of a contract": {"ListActions", "'tenant_1', '', 'contract_3', '', '', '', '', 51, NULL, '', '', NULL, NULL"},
	"ListActions of a subject":  {"ListActions", "'tenant_1', '', '', '', 'order_77', '', '', 51, NULL, '', '', NULL, NULL"},
	"ListActions of a trace":    {"ListActions", "'tenant_1', '', '', '', '', 'abc', '', 51, NULL, '', '', NULL, NULL"},
	"ListActions compensated":   {"ListActions", "'tenant_1', 'COMPENSATED', '', '', '', '', '', 51, NULL, '', '', NULL, NULL"},
	"Summary of an hour":        {"Summary", "'tenant_1', '', '', '', '', '', '', '', 1790001000, 1790001400"},
	"Orphans of an hour":        {"Orphans", "'tenant_1', 1790001000, 1790001400, '{payments}', '{type_3}', 100"},
}

// A lost index, or a statement that no longer uses one, shows as another plan.
func TestPlansOfHotStatements(t *testing.T) {
	t.Parallel()
	conn := seeded(t)
	for _, name := range hot {
		checkPlan(t, conn, name, allStatements[name].Text, "")
	}
	for title, list := range lists {
		checkPlan(t, conn, title, allStatements[list.name].Text, list.arguments)
	}
	evaluation := sqleval.Compile(refunds(t, 1), primitive.Postgres).Text
	checkPlan(t, conn, "Evaluate refund_workflow", evaluation, "")
}

// seeded is a connection to a database with testdata/seed.sql.
func seeded(t *testing.T) *pgx.Conn {
	t.Helper()
	address := pgserver.Shared(t).Database(t) // not one whose tables have grown and shrunk
	if err := migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, address)
	seed, err := os.ReadFile("testdata/seed.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		string(seed), "ANALYZE",
		"SET max_parallel_workers_per_gather = 0", "SET jit = off",
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql[:min(len(sql), 40)], err)
		}
	}
	return conn
}

// checkPlan compares the plan with its golden file: the generic one, or the one
// for some arguments. Servers of another major version print plans a little
// differently: of those only the way into each table is compared.
func checkPlan(t *testing.T, conn *pgx.Conn, title, statement, arguments string) {
	t.Helper()
	got := explain(t, conn, statement, arguments)
	file := filepath.Join("testdata", "plans", strings.ReplaceAll(title, " ", "_")+".txt")
	if *updatePlans {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := string(golden)
	if header(want) != header(got) {
		got, want = accesses(got), accesses(want)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan of %s (-want +got):\n%s\nIf it is meant to change: go test ./ledger/postgres -run TestPlansOfHotStatements -update", title, diff)
	}
}

func explain(t *testing.T, conn *pgx.Conn, statement, arguments string) string {
	t.Helper()
	mode := "force_custom_plan"
	if arguments == "" {
		mode = "force_generic_plan"
		arguments = strings.TrimPrefix(strings.Repeat(", NULL", parameters(statement)), ", ")
	}
	if arguments != "" {
		arguments = "(" + arguments + ")"
	}
	var version string
	if err := conn.QueryRow(t.Context(), "SHOW server_version_num").Scan(&version); err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"SET plan_cache_mode = " + mode, "PREPARE hot AS " + statement} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN (COSTS OFF) EXECUTE hot"+arguments, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	if _, err := conn.Exec(t.Context(), "DEALLOCATE hot"); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("PostgreSQL %s\n%s\n", version[:len(version)-4], strings.Join(lines, "\n"))
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// parameters is the highest parameter number of a statement.
func parameters(statement string) int {
	highest := 0
	for _, match := range parameter.FindAllStringSubmatch(statement, -1) {
		var n int
		if _, err := fmt.Sscan(match[1], &n); err == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

func header(plan string) string {
	line, _, _ := strings.Cut(plan, "\n")
	return line
}

var access = regexp.MustCompile(`(?:Seq Scan on|Index Scan using|Index Scan Backward using|Index Only Scan using|Index Only Scan Backward using|Bitmap Index Scan on) .*`)

// accesses are the ways into the tables, without order.
func accesses(plan string) string {
	found := access.FindAllString(plan, -1)
	slices.Sort(found)
	return strings.Join(slices.Compact(found), "\n")
}
