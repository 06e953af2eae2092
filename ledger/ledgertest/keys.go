package ledgertest

import (
	"errors"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func exerciseKeys(t *testing.T, open opener) {
	t.Run("Keys", func(t *testing.T) {
		b := setup(t, open)
		expires := noon.Add(engine.Day)
		evidence := ledger.Key{Tenant: acme, ID: "k1", Role: ledger.RoleEvidence, Prefix: "cs_ab", Hash: [32]byte{1, 2}, Sources: []string{"crm", "stripe"}, CreatedAt: noon, ExpiresAt: &expires}
		recorder := ledger.Key{Tenant: acme, ID: "k0", Role: ledger.RoleRecorder, Prefix: "cs_cd", Hash: [32]byte{3}, CreatedAt: noon + 1}
		theirs := ledger.Key{Tenant: other, ID: "k1", Role: ledger.RoleViewer, Prefix: "cs_ef", Hash: [32]byte{4}, CreatedAt: noon}
		b.update(func(tx ledger.Tx) error {
			return errors.Join(tx.CreateKey(t.Context(), evidence), tx.CreateKey(t.Context(), recorder), tx.CreateKey(t.Context(), theirs))
		})
		keys := func() (found []ledger.Key) {
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.ListKeys(t.Context(), acme)
				return err
			})
			return found
		}
		wantSame(t, "listed, oldest first", keys(), []ledger.Key{evidence, recorder})

		b.update(func(tx ledger.Tx) error {
			return tx.TouchKeys(t.Context(), []ledger.KeyUse{{Tenant: acme, ID: "k1", At: noon + 5}, {Tenant: acme, ID: "k1", At: noon + 9}, {Tenant: acme, ID: "nobody", At: noon}})
		})
		b.update(func(tx ledger.Tx) error {
			return tx.TouchKeys(t.Context(), []ledger.KeyUse{{Tenant: acme, ID: "k1", At: noon + 7}})
		})
		used, revoked := noon+9, noon+10
		evidence.LastUsedAt = &used
		wantSame(t, "the latest use", keys(), []ledger.Key{evidence, recorder})

		b.update(func(tx ledger.Tx) error { return tx.RevokeKey(t.Context(), acme, "k1", noon+10) })
		b.update(func(tx ledger.Tx) error { return tx.RevokeKey(t.Context(), acme, "k1", noon+20) })
		evidence.RevokedAt = &revoked
		b.view(func(tx ledger.Tx) error {
			found, err := tx.KeyByHash(t.Context(), evidence.Hash)
			wantSame(t, "by hash, revoked once", found, evidence)
			return err
		})
		b.view(func(tx ledger.Tx) error {
			found, err := tx.KeyByHash(t.Context(), theirs.Hash)
			wantSame(t, "across tenants", found, theirs)
			return err
		})
		b.view(func(tx ledger.Tx) error {
			found, err := tx.KeyByID(t.Context(), acme, "k1")
			wantSame(t, "by id, revoked", found, evidence)
			return err
		})
		anyOf := func(now engine.Instant, roles ...string) (found bool) {
			b.view(func(tx ledger.Tx) (err error) {
				found, err = tx.AnyKey(t.Context(), roles, now)
				return err
			})
			return found
		}
		until := noon + 50
		b.update(func(tx ledger.Tx) error {
			return tx.CreateKey(t.Context(), ledger.Key{Tenant: acme, ID: "k2", Role: ledger.RoleAnalyst, Prefix: "cs_gh", Hash: [32]byte{7}, CreatedAt: noon + 2, ExpiresAt: &until})
		})
		wantSame(t, "a good key of any tenant", anyOf(noon, ledger.RoleViewer), true)
		wantSame(t, "a revoked one", anyOf(noon, ledger.RoleEvidence), false)
		wantSame(t, "until it expires", [2]bool{anyOf(until-1, ledger.RoleEvidence, ledger.RoleAnalyst), anyOf(until, ledger.RoleEvidence, ledger.RoleAnalyst)}, [2]bool{true, false})
		wantSame(t, "of no role", anyOf(noon), false)
		for name, f := range map[string]func(ledger.Tx) error{
			"id that no key can have":  func(tx ledger.Tx) error { _, err := tx.KeyByID(t.Context(), acme, "k\x00"); return err },
			"other tenant's id":        func(tx ledger.Tx) error { _, err := tx.KeyByID(t.Context(), other, "k0"); return err },
			"unknown hash":             func(tx ledger.Tx) error { _, err := tx.KeyByHash(t.Context(), [32]byte{9}); return err },
			"unknown id":               func(tx ledger.Tx) error { return tx.RevokeKey(t.Context(), acme, "k9", noon) },
			"unknown id to expire":     func(tx ledger.Tx) error { return tx.ExpireKey(t.Context(), acme, "k9", noon) },
			"other tenant's to expire": func(tx ledger.Tx) error { return tx.ExpireKey(t.Context(), other, "k0", noon) },
			"other tenant":             func(tx ledger.Tx) error { return tx.RevokeKey(t.Context(), other, "k0", noon) },
		} {
			if err := b.store.Update(t.Context(), f); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("%s: %v, want ErrNotFound", name, err)
			}
		}
	})

	t.Run("KeysExpire", func(t *testing.T) {
		b := setup(t, open)
		early := noon + 5
		b.update(func(tx ledger.Tx) error {
			return errors.Join(
				tx.CreateKey(t.Context(), ledger.Key{Tenant: acme, ID: "k1", Role: ledger.RoleViewer, Prefix: "p", Hash: [32]byte{1}, CreatedAt: noon}),
				tx.CreateKey(t.Context(), ledger.Key{Tenant: acme, ID: "k2", Role: ledger.RoleViewer, Prefix: "q", Hash: [32]byte{2}, CreatedAt: noon, ExpiresAt: &early}),
				tx.CreateKey(t.Context(), ledger.Key{Tenant: other, ID: "k1", Role: ledger.RoleViewer, Prefix: "r", Hash: [32]byte{3}, CreatedAt: noon}))
		})
		for _, at := range []engine.Instant{noon + 9, noon + 20} {
			b.update(func(tx ledger.Tx) error {
				return errors.Join(tx.ExpireKey(t.Context(), acme, "k1", at), tx.ExpireKey(t.Context(), acme, "k2", at))
			})
		}
		b.view(func(tx ledger.Tx) error {
			found, err := tx.ListKeys(t.Context(), acme)
			theirs, theirErr := tx.ListKeys(t.Context(), other)
			wantSame(t, "expire at the earliest time", []engine.Instant{*found[0].ExpiresAt, *found[1].ExpiresAt}, []engine.Instant{noon + 9, early})
			wantSame(t, "the other tenant's key of this id", theirs[0].ExpiresAt == nil, true)
			return errors.Join(err, theirErr)
		})
	})

	t.Run("SameKeyTwice", func(t *testing.T) {
		b := setup(t, open)
		key := ledger.Key{Tenant: acme, ID: "k1", Role: ledger.RoleViewer, Prefix: "p", Hash: [32]byte{1}, CreatedAt: noon}
		b.update(func(tx ledger.Tx) error { return tx.CreateKey(t.Context(), key) })
		err := b.store.Update(t.Context(), func(tx ledger.Tx) error { return tx.CreateKey(t.Context(), key) })
		if !errors.Is(err, ledger.ErrImmutable) {
			t.Errorf("error %v, want ErrImmutable", err)
		}
	})
}
