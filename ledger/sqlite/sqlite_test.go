package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/ledgertest"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

// migrated is a store whose schema is current, closed with the test.
func migrated(tb testing.TB, store ledger.Ledger, err error) ledger.Ledger {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	if err := store.Migrate(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return store
}

// inFile is a migrated store in a file of the test's own.
func inFile(tb testing.TB) ledger.Ledger {
	tb.Helper()
	store, err := sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "countersign.db"))
	return migrated(tb, store, err)
}

func TestFile(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t *testing.T) ledger.Ledger { return inFile(t) })
}

func TestMemory(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t *testing.T) ledger.Ledger {
		store, err := sqlite.OpenMemory(t.Context())
		return migrated(t, store, err)
	})
}
