package sqlite

import (
	"context"
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

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
	"github.com/countersign-otel/countersign/ledger/internal/statements"
)

var update = flag.Bool("update", false, "write the golden plans")

// TestPlans holds every statement to its plan, so that an index that is lost,
// or a join that is turned around, fails a test and not a customer. Every index
// stands in some plan, and no plan can name one that is not there.
func TestPlans(t *testing.T) {
	t.Parallel()
	store := migratedStore(t)
	all := maps.Clone(fixed)
	for _, name := range []string{"refund_workflow", "payout"} {
		all["Evaluate "+name] = statements.Statement{Name: "Evaluate " + name, Text: evaluation(t, name)}
	}
	var text strings.Builder
	whole := map[string]bool{}
	tables := schemaNames(t, store, "table")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		steps := plan(t, store, all[name])
		fmt.Fprintf(&text, "%s\n%s\n", name, steps)
		for _, table := range wholeTables(all[name].Text, steps, tables) {
			whole[name+": "+table] = true
		}
	}
	checkWhole(t, whole)
	for _, index := range schemaNames(t, store, "index") {
		if !regexp.MustCompile(`INDEX ` + index + `\b`).MatchString(text.String()) {
			t.Errorf("index %s is in no plan, so that it could be lost without notice", index)
		}
	}
	golden := filepath.Join("testdata", "plans.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if difference := cmp.Diff(string(want), text.String()); difference != "" {
		t.Errorf("plans differ (-want +got); if that is meant, run: go test ./ledger/sqlite -run TestPlans -update\n%s", difference)
	}
}

// readWhole are the tables that a statement reads from one end, and why. A plan
// that reads any other one so fails, whatever the golden file says.
var readWhole = map[string]string{
	"Backlog: due":                "counts what waits, which is what it is asked for",
	"Backlog: outbox":             "counts what waits, which is what it is asked for",
	"Backlog: webhook_deliveries": "counts what waits, which is what it is asked for",
	"LeaseOutbox: outbox":         "takes the oldest in the order of an index, up to a limit",
	"DueTenants: tenants":         "looks for work of every tenant",
	"Tenants: tenants":            "the list itself",
	"ListContracts: contracts":    "the list itself",
	"SourceLags: sources":         "all connections of all tenants, once per scrape of the metrics",
	"AnyKey: api_keys":            "ends at the first key that is good",
	"TouchKeys: api_keys":         "keys are few, and their uses are noted together",

	"Evaluate payout: facts":            "x is a subquery there, of facts that were looked up",
	"Evaluate payout: sources":          "s is the batch's subjects there",
	"Evaluate refund_workflow: sources": "s is the batch's subjects there",
	"ReversedClaims: facts":             "f is the batch's new facts there",
	"TouchedClaims: facts":              "f is the batch's new facts there",
}

func checkWhole(t *testing.T, found map[string]bool) {
	t.Helper()
	for _, read := range slices.Sorted(maps.Keys(found)) {
		if readWhole[read] == "" {
			t.Errorf("%s is read from one end", read)
		}
	}
	for read := range readWhole {
		if !found[read] {
			t.Errorf("%s is listed as read from one end, and is not", read)
		}
	}
}

var scanned = regexp.MustCompile(`SCAN (\w+)(?: USING .*)?\n`)

// wholeTables are the tables that a plan reads without looking anything up, by the aliases of the statement.
func wholeTables(statement, steps string, tables []string) []string {
	var whole []string
	for _, scan := range scanned.FindAllStringSubmatch(steps, -1) {
		for _, table := range tables {
			if regexp.MustCompile(`\b(FROM|JOIN|UPDATE) `+table+`( (AS )?`+scan[1]+`)\b`).MatchString(statement) || table == scan[1] {
				whole = append(whole, table)
			}
		}
	}
	return whole
}

// schemaNames are the tables, or the indexes that a migration names.
func schemaNames(t *testing.T, store *Store, kind string) []string {
	t.Helper()
	var names []string
	err := store.writer.with(t.Context(), "test", func(c *connection) error {
		rows, err := c.raw.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL", kind)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name string
			if err := rows.Scan(&name); err != nil {
				return err
			}
			names = append(names, name)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func evaluation(t *testing.T, name string) string {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("..", "..", "contracts", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse(name, document)
	if c == nil {
		t.Fatal(diagnostics)
	}
	return sqleval.Compile(c, primitive.SQLite).Text
}

// plan is the query plan of a statement, one step a line, indented.
func plan(t *testing.T, store *Store, s statements.Statement) string {
	t.Helper()
	var lines strings.Builder
	err := store.writer.with(t.Context(), "test", func(c *connection) error {
		rows, err := c.raw.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+s.Text, make([]any, 20)...) // as many as any has
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		defer rows.Close()
		depth := map[int]int{0: 0}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				return err
			}
			depth[id] = depth[parent] + 1
			fmt.Fprintf(&lines, "%s%s\n", strings.Repeat("  ", depth[id]), detail)
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines.String()
}

func migratedStore(t testing.TB) *Store {
	t.Helper()
	store, err := OpenMemory(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	return store.(*Store)
}
