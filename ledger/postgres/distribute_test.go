package postgres

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

func TestDistributeNamesTheMissingExtension(t *testing.T) {
	t.Parallel()
	err := open(t, migratedURL(t)).Distribute(t.Context())
	want := "the database has no citus extension: run CREATE EXTENSION citus on the coordinator and add its nodes"
	if !errors.Is(err, ErrNoCitus) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// Every table is distributed by tenant or lies whole on every node, and every
// unique key of a distributed one starts with tenant_id, as Citus demands.
func TestEveryTableCanBeDistributed(t *testing.T) {
	t.Parallel()
	conn := connect(t, migratedURL(t))
	names := func(sql string) []string {
		rows, err := conn.Query(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(found)
		return found
	}
	all := names("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> '" + migrationsTable + "'")
	placed := slices.Sorted(slices.Values(append(slices.Clone(distributedTables), referenceTables...)))
	if diff := cmp.Diff(placed, all); diff != "" {
		t.Errorf("tables that are placed (-) and that there are (+):\n%s", diff)
	}
	keyed := names(`SELECT DISTINCT i.indrelid::regclass::text
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		WHERE i.indisunique AND a.attname = 'tenant_id' AND i.indrelid::regclass::text NOT LIKE 'pg_%'`)
	if diff := cmp.Diff(slices.Sorted(slices.Values(distributedTables)), keyed); diff != "" {
		t.Errorf("distributed tables (-) and those with a unique key that starts with tenant_id (+):\n%s", diff)
	}
	if triggers := names("SELECT tgrelid::regclass || ': ' || tgname FROM pg_trigger WHERE NOT tgisinternal"); len(triggers) > 0 {
		t.Errorf("triggers, which distributed tables may not have: %v", triggers)
	}
	others := names(`SELECT i.indexrelid::regclass::text
		FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
		JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE i.indisunique AND a.attname <> 'tenant_id' AND n.nspname = current_schema()
			AND c.relname NOT LIKE 'contract%' AND c.relname <> '` + migrationsTable + `'`)
	if len(others) > 0 {
		t.Errorf("unique keys without tenant_id in front: %v", others)
	}
}
