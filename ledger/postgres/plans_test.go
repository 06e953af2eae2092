package postgres

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/internal/pgserver"
)

var updatePlans = flag.Bool("update", false, "write the golden plans in testdata/plans")

// unplanned are the statements without a plan of their own, and why.
var unplanned = map[string]string{
	"Listen":            "a command, without a plan",
	"TakeRetentionRole": "a command, without a plan",
	"IsDistributed":     "names what only Citus has",
	"DistributeTable":   "names what only Citus has",
	"ReferenceTable":    "names what only Citus has",
	"CitusInstalled":    "looks at the catalog",
	"EvidenceUnderWay":  "looks at locks",
	"NewestApplied":     "reads a handful of rows that no index is for",

	"ListActions": "planned for values, below",
	"Summary":     "planned for values, below",
	"Orphans":     "planned for values, below",
}

// readWhole are the tables that a statement reads without an index, and why. A
// plan that reads any other one fails, whatever its golden file says.
var readWhole = map[string]string{
	"ReversalTypes: contract_reversals": "belongs to all tenants and grows with the contracts alone",
	"WakeReversed: contract_reversals":  "belongs to all tenants and grows with the contracts alone",
	"AnyKey: api_keys":                  "ends at the first key that is good",
	"SourceLags: sources":               "all connections of all tenants, once per scrape of the metrics",
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

// A lost index, or a statement that no longer uses one, shows as another plan:
// every index stands in some plan, and no plan can name one that is not there.
func TestPlansOfHotStatements(t *testing.T) {
	t.Parallel()
	conn := seeded(t)
	plans := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(allStatements)) {
		if unplanned[name] == "" {
			plans[name] = explain(t, conn, allStatements[name].Text, "")
		}
	}
	for title, list := range lists {
		plans[title] = explain(t, conn, allStatements[list.name].Text, list.arguments)
	}
	for name := range unplanned {
		if _, ok := allStatements[name]; !ok {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
	for _, name := range []string{"refund_workflow", "payout"} {
		plans["Evaluate "+name] = explain(t, conn, sqleval.Compile(library(t, name), primitive.Postgres).Text, "")
	}
	for title, plan := range plans {
		checkPlan(t, title, plan)
	}
	checkWhole(t, plans)
	checkIndexes(t, conn, plans)
}

var wholeScan = regexp.MustCompile(`Seq Scan on (\w+)`)

// checkWhole holds plans that read all of a table to readWhole.
func checkWhole(t *testing.T, plans map[string]string) {
	t.Helper()
	found := map[string]bool{}
	for title, plan := range plans {
		for _, scan := range wholeScan.FindAllStringSubmatch(plan, -1) {
			found[title+": "+scan[1]] = true
		}
	}
	for _, read := range slices.Sorted(maps.Keys(found)) {
		if readWhole[read] == "" {
			t.Errorf("%s is read without an index", read)
		}
	}
	for read := range readWhole {
		if !found[read] {
			t.Errorf("%s is listed as read without an index, and is not", read)
		}
	}
}

// checkIndexes holds every index to be of use to some plan: one that is in none
// could be lost without notice, and costs every writer for nothing.
func checkIndexes(t *testing.T, conn *pgx.Conn, plans map[string]string) {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema() AND tablename <> $1", migrationsTable)
	if err != nil {
		t.Fatal(err)
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, index := range indexes {
		name := regexp.MustCompile(`(using|Index Scan on|Arbiter Indexes:) ` + index + `\b`)
		used := slices.ContainsFunc(slices.Collect(maps.Values(plans)), name.MatchString)
		if !used {
			t.Errorf("index %s is in no plan", index)
		}
	}
}

// seeded is a connection like those of the pool to a database with testdata/seed.sql.
func seeded(t *testing.T) *pgx.Conn {
	t.Helper()
	address := pgserver.Shared(t).Database(t) // not one whose tables have grown and shrunk
	if err := migrate(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	seed, err := os.ReadFile("testdata/seed.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, address)
	for _, sql := range []string{string(seed), "ANALYZE", "SET max_parallel_workers_per_gather = 0"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql[:min(len(sql), 40)], err)
		}
	}
	for name, value := range sessionSettings {
		if _, err := conn.Exec(t.Context(), "SELECT set_config($1, $2, false)", name, value); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return conn
}

// checkPlan compares the plan with its golden file: the generic one, or the one
// for some arguments. Servers of another major version print plans a little
// differently: of those only the way into each table is compared.
func checkPlan(t *testing.T, title, got string) {
	t.Helper()
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

// library is a contract of the library.
func library(t *testing.T, name string) *contract.Contract {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("..", "..", "contracts", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse(name, document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	return c
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
