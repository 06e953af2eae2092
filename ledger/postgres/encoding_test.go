package postgres

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// TestDocumentsInADatabaseOfBytes: what is no UTF8 database, such as one of a
// cluster that was made in the locale C, counts other characters than Go does.
func TestDocumentsInADatabaseOfBytes(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		server := pgserver.Shared(t)
		name := "in_" + strings.ToLower(encoding)
		execute(t, server.URL(), "CREATE DATABASE "+name+" ENCODING '"+encoding+"' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
		t.Cleanup(func() { execute(t, server.URL(), "DROP DATABASE "+name+" WITH (FORCE)") })
		if err := migrate(t.Context(), server.DatabaseURL(name)); err != nil {
			t.Fatal(err)
		}
		store := open(t, server.DatabaseURL(name))
		want := [2]string{`{"id":"örder_1 €","lens":"outcome"}`, `{"id":"örder_1 €","lens":"policy"}`}
		update(t, store, func(ctx context.Context, tx ledger.Tx) error {
			if _, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action("act_1", "örder_1 €")}}, noon); err != nil {
				return err
			}
			settled := run("act_1", nil, "")
			settled.Outcome.Document, settled.Policy.Document = want[0], want[1]
			_, err := tx.StoreRuns(ctx, tenant, []ledger.Run{settled})
			return err
		})
		view(t, store, func(ctx context.Context, tx ledger.Tx) error {
			chain, err := tx.ReadChain(ctx, tenant, 0, 2)
			if err != nil || len(chain) != 2 {
				t.Fatalf("%s: %d verdicts, %v", encoding, len(chain), err)
			}
			if got := [2]string{chain[0].Document, chain[1].Document}; got != want {
				t.Errorf("%s: documents come back as %q", encoding, got)
			}
			return nil
		})
	}
}
