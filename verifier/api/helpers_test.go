package api

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// objects compares params and attributes by their text.
var objects = cmp.Comparer(func(a, b engine.Object) bool { return a.Text() == b.Text() })

func claimID(tenant, actionID string) string { return engine.ClaimID(tenant, actionID) }

func index(i int) *int { return &i }

func refundContract(t *testing.T, f *fixture) (c *contract.Contract) {
	t.Helper()
	err := f.store.View(context.Background(), func(tx ledger.Tx) (err error) {
		c, err = f.service.Contracts.Get(context.Background(), tx, ledger.ContractRef{ID: "refund_workflow"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// key makes another key and returns its secret.
func (f *fixture) key(t *testing.T, request keys.Request) string {
	t.Helper()
	key, secret, err := keys.Create(context.Background(), f.store, request, engine.Instant(f.clock.Load()))
	if err != nil {
		t.Fatal(err)
	}
	f.lastKey = key
	return string(secret)
}

func (f *fixture) revokeLast(t *testing.T) {
	t.Helper()
	err := f.store.Update(context.Background(), func(tx ledger.Tx) error {
		return tx.RevokeKey(context.Background(), f.lastKey.Tenant, f.lastKey.ID, engine.Instant(f.clock.Load()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) connection(t *testing.T, setting ledger.ConnectionSetting) {
	t.Helper()
	err := f.store.Update(context.Background(), func(tx ledger.Tx) error {
		return tx.SetConnection(context.Background(), tenantA, setting, engine.Instant(f.clock.Load()))
	})
	if err != nil {
		t.Fatal(err)
	}
}

func health(h engine.Health) *engine.Health { return &h }
