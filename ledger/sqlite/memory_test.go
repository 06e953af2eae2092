package sqlite

import (
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// A store in memory lives as long as it is open, whatever becomes of its connections.
func TestMemoryOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	store := migratedStore(t)
	for _, p := range []*pool{store.readers, store.writer} {
		for range cap(p.slots) {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was swallowed")
					}
				}()
				_ = p.with(t.Context(), "test", func(*connection) error { panic("bug in the caller") })
			}()
		}
	}
	if err := store.CheckSchema(t.Context()); err != nil {
		t.Error(err)
	}
}

// Two stores in memory know nothing of each other.
func TestMemoryIsPrivate(t *testing.T) {
	t.Parallel()
	one, two := migratedStore(t), migratedStore(t)
	err := one.Update(t.Context(), func(tx ledger.Tx) error {
		return tx.CreateKey(t.Context(), ledger.Key{Tenant: "acme", ID: "k", Role: ledger.RoleViewer})
	})
	if err != nil {
		t.Fatal(err)
	}
	err = two.View(t.Context(), func(tx ledger.Tx) error {
		tenants, err := tx.Tenants(t.Context())
		if len(tenants) > 0 {
			t.Errorf("the other store has tenants %v", tenants)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
