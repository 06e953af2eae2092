package emit

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func pemOf(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

// attempts is the largest number of attempts of an event that is left.
func (f *fixture) attempts(t *testing.T) int {
	t.Helper()
	most := 0
	err := f.store.Rehearse(context.Background(), func(tx ledger.Tx) error {
		far := f.now().Add(engine.Week)
		events, err := tx.LeaseOutbox(context.Background(), ledger.Lease{Owner: "count", Now: far, Until: far}, 1000)
		for _, event := range events {
			most = max(most, event.Attempts)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return most
}
