package sqlite

import (
	"strings"
	"testing"
)

// TestD02_Functions: exact decimals, NULL in, NULL out.
func TestD02_Functions(t *testing.T) {
	t.Parallel()
	store := migratedStore(t)
	for _, c := range []struct{ expression, want string }{
		{`countersign_decimal(' +1.50e2 ')`, "150"},
		{`countersign_decimal('-0.0')`, "0"},
		{`countersign_decimal('1,000')`, "NULL"},
		{`countersign_decimal('1e101')`, "NULL"},
		{`countersign_decimal('0.` + strings.Repeat("0", 1100) + `')`, "NULL"},
		{`countersign_decimal(NULL)`, "NULL"},
		{`countersign_compare('0.3', countersign_add('0.1', '0.2'))`, "0"},
		{`countersign_compare('9', '10')`, "-1"},
		{`countersign_compare('10', '9')`, "1"},
		{`countersign_compare(NULL, '9')`, "NULL"},
		{`countersign_compare('9', NULL)`, "NULL"},
		{`countersign_add('99999999999999999999999999999999999999', '1')`, "1" + strings.Repeat("0", 38)},
		{`countersign_add('1', NULL)`, "NULL"},
		{`countersign_subtract('0.1', '0.3')`, "-0.2"},
		{`countersign_distance('0.1', '0.3')`, "0.2"},
		{`countersign_distance('0.3', '0.1')`, "0.2"},
		{`(SELECT countersign_sum(column1) FROM (VALUES ('0.1'), (NULL), ('0.2')))`, "0.3"},
		{`(SELECT countersign_sum(column1) FROM (VALUES ('0.1')) WHERE column1 = 'x')`, "NULL"},
		{`(SELECT countersign_sum(column1) FROM (VALUES (NULL)))`, "NULL"},
		{`(SELECT group_concat(total) FROM (SELECT countersign_sum(column1) OVER (ROWS 1 PRECEDING) AS total FROM (VALUES ('1'), ('2'), ('4'))))`, "1,3,6"},
	} {
		err := store.writer.with(t.Context(), "test", func(conn *connection) error {
			var got string
			err := conn.raw.QueryRowContext(t.Context(), "SELECT coalesce("+c.expression+", 'NULL')").Scan(&got)
			if got != c.want {
				t.Errorf("%s is %s, want %s", c.expression, got, c.want)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
		}
	}
}
