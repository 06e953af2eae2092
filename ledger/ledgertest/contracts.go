package ledgertest

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/ledger"
)

// version is the suite's contract under another version.
func version(t *testing.T, id string, n int) *contract.Contract {
	t.Helper()
	document := bytes.Replace(refundYAML, []byte("id: refund\nversion: 1\n"), fmt.Appendf(nil, "id: %s\nversion: %d\n", id, n), 1)
	return parse(t, document)
}

func exerciseContracts(t *testing.T, open opener) {
	t.Run("D21_VersionIsImmutable", func(t *testing.T) {
		b := setup(t, open)
		original := version(t, "refund", 1)
		changed := parse(t, bytes.Replace(refundYAML, []byte("max: 250"), []byte("max: 251"), 1))
		b.publish(original) // again: no change
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
			return tx.PublishContracts(t.Context(), []*contract.Contract{version(t, "innocent", 1), changed}, noon)
		})
		if !errors.Is(err, ledger.ErrImmutable) {
			t.Fatalf("error %v, want ErrImmutable", err)
		}
		for _, hash := range []string{original.Hash, changed.Hash} {
			if !bytes.Contains([]byte(err.Error()), []byte(hash)) {
				t.Errorf("%q does not name %s", err, hash)
			}
		}
		b.view(func(tx ledger.Tx) error {
			found, err := tx.ContractVersions(t.Context(), []ledger.ContractRef{{ID: "refund", Version: 1}, {ID: "innocent"}})
			wantSame(t, "published", hashes(found), []string{original.Hash})
			return err
		})
	})

	t.Run("D21_WithinOneBatch", func(t *testing.T) {
		b := setup(t, open)
		one := version(t, "twice", 1)
		two := parse(t, bytes.Replace(one.Document, []byte("max: 250"), []byte("max: 251"), 1))
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error {
			return tx.PublishContracts(t.Context(), []*contract.Contract{one, two}, noon)
		})
		if !errors.Is(err, ledger.ErrImmutable) {
			t.Fatalf("error %v, want ErrImmutable", err)
		}
		b.publish(one, one)
	})

	t.Run("Versions", func(t *testing.T) {
		b := setup(t, open)
		second, tenth := version(t, "refund", 2), version(t, "refund", 10)
		b.publish(second, tenth, version(t, "aaa", 3))
		b.view(func(tx ledger.Tx) error {
			found, err := tx.ContractVersions(t.Context(), []ledger.ContractRef{
				{ID: "refund"}, {ID: "refund", Version: 2}, {ID: "refund", Version: 3}, {ID: "nobody"}, {ID: "refund", Version: 10},
			})
			wantSame(t, "found", refs(found), []ledger.ContractRef{{ID: "refund", Version: 2}, {ID: "refund", Version: 10}})
			if len(found) == 2 {
				wantSame(t, "document", found[1], ledger.ContractDocument{ID: "refund", Version: 10, Hash: tenth.Hash, Document: tenth.Document, PublishedAt: noon})
			}
			return err
		})
		b.view(func(tx ledger.Tx) error {
			latest, err := tx.ListContracts(t.Context(), "")
			wantSame(t, "latest of every contract", refs(latest), []ledger.ContractRef{{ID: "aaa", Version: 3}, {ID: "refund", Version: 10}})
			return err
		})
		b.view(func(tx ledger.Tx) error {
			all, err := tx.ListContracts(t.Context(), "refund")
			wantSame(t, "all versions", refs(all), []ledger.ContractRef{{ID: "refund", Version: 1}, {ID: "refund", Version: 2}, {ID: "refund", Version: 10}})
			return err
		})
	})

	t.Run("Cache", func(t *testing.T) {
		b := setup(t, open)
		cache := ledger.NewContractCache(2)
		get := func(ref ledger.ContractRef) (c *contract.Contract, err error) {
			err = b.store.View(t.Context(), func(tx ledger.Tx) error {
				c, err = cache.Get(t.Context(), tx, ref)
				return err
			})
			return c, err
		}
		first, err := get(ledger.ContractRef{ID: "refund"})
		if err != nil || first.Version != 1 {
			t.Fatalf("latest: %v, %v", first, err)
		}
		b.publish(version(t, "refund", 2))
		latest, err := get(ledger.ContractRef{ID: "refund"})
		if err != nil || latest.Version != 2 {
			t.Fatalf("latest after publishing: %v, %v", latest, err)
		}
		pinned, err := get(ledger.ContractRef{ID: "refund", Version: 1})
		if err != nil || pinned != first {
			t.Fatalf("version 1: %p, %v; want the cached %p", pinned, err, first)
		}
		_, err = get(ledger.ContractRef{ID: "refund", Version: 7})
		wantText(t, err, `unknown contract "refund" version 7: it was not published to this store; run countersign contracts publish with its file`)
	})
}

func refs(documents []ledger.ContractDocument) []ledger.ContractRef {
	var found []ledger.ContractRef
	for _, d := range documents {
		found = append(found, ledger.ContractRef{ID: d.ID, Version: d.Version})
	}
	return found
}

func hashes(documents []ledger.ContractDocument) []string {
	var found []string
	for _, d := range documents {
		found = append(found, d.Hash)
	}
	return found
}
