package postgres

import (
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/ledgertest"
)

func TestLedger(t *testing.T) {
	t.Parallel()
	ledgertest.Exercise(t, func(t *testing.T) ledger.Ledger {
		t.Helper()
		return open(t, migratedURL(t))
	})
}
