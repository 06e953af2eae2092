package sqlite

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
// or a join that is turned around, fails a test and not a customer.
func TestPlans(t *testing.T) {
	t.Parallel()
	store := migratedStore(t)
	all := maps.Clone(fixed)
	for _, name := range []string{"refund_workflow", "payout"} {
		all["Evaluate "+name] = statements.Statement{Name: "Evaluate " + name, Text: evaluation(t, name)}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&text, "%s\n%s\n", name, plan(t, store, all[name]))
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
