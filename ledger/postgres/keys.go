package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	createKey = named("CreateKey")
	keyByHash = named("KeyByHash")
	listKeys  = named("ListKeys")
	keyByID   = named("KeyByID")
	anyKey    = named("AnyKey")
	revokeKey = named("RevokeKey")
	expireKey = named("ExpireKey")
	touchKeys = named("TouchKeys")
)

// CreateKey implements ledger.Keys. A key id that is taken fails with ledger.ErrImmutable.
func (t *tx) CreateKey(ctx context.Context, key ledger.Key) error {
	if _, err := t.execute(ctx, ownTenant, key.Tenant, key.CreatedAt); err != nil {
		return err
	}
	_, err := t.execute(ctx, createKey, key.Tenant, key.ID, key.Role, key.Prefix, key.Hash[:], listed(key.Sources),
		key.CreatedAt, nullInstant(key.ExpiresAt), nullInstant(key.RevokedAt), nullInstant(key.LastUsedAt))
	return err
}

// KeyByHash implements ledger.Keys.
func (t *tx) KeyByHash(ctx context.Context, hash [32]byte) (ledger.Key, error) {
	return one(ctx, t, keyByHash, scanKey, hash[:])
}

// ListKeys implements ledger.Keys.
func (t *tx) ListKeys(ctx context.Context, tenant string) ([]ledger.Key, error) {
	return collect(ctx, t, listKeys, scanKey, tenant)
}

// KeyByID implements ledger.Keys.
func (t *tx) KeyByID(ctx context.Context, tenant, id string) (ledger.Key, error) {
	if unstorable(id) {
		return ledger.Key{}, fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
	}
	return one(ctx, t, keyByID, scanKey, tenant, id)
}

// AnyKey implements ledger.Keys.
func (t *tx) AnyKey(ctx context.Context, roles []string, now engine.Instant) (bool, error) {
	return one(ctx, t, anyKey, pgx.RowTo[bool], roles, int64(now))
}

func scanKey(row pgx.CollectableRow) (ledger.Key, error) {
	var k ledger.Key
	var hash []byte
	var created int64
	var expires, revoked, used *int64
	if err := row.Scan(&k.Tenant, &k.ID, &k.Role, &k.Prefix, &hash, &k.Sources, &created, &expires, &revoked, &used); err != nil {
		return k, err
	}
	if len(k.Sources) == 0 {
		k.Sources = nil
	}
	k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.LastUsedAt = engine.Instant(created), instant(expires), instant(revoked), instant(used)
	var err error
	k.Hash, err = hashOf("hash of key "+k.ID, hash)
	return k, err
}

// RevokeKey implements ledger.Keys. A key that was revoked before keeps its time.
func (t *tx) RevokeKey(ctx context.Context, tenant, id string, now engine.Instant) error {
	return t.endKey(ctx, revokeKey, tenant, id, now)
}

// ExpireKey implements ledger.Keys.
func (t *tx) ExpireKey(ctx context.Context, tenant, id string, at engine.Instant) error {
	return t.endKey(ctx, expireKey, tenant, id, at)
}

func (t *tx) endKey(ctx context.Context, statement statement, tenant, id string, at engine.Instant) error {
	unknown := fmt.Errorf("%w: no key %q", ledger.ErrNotFound, id)
	if unstorable(id) {
		return unknown
	}
	ended, err := t.execute(ctx, statement, tenant, id, at)
	if err == nil && ended == 0 {
		return unknown
	}
	return err
}

// TouchKeys implements ledger.Keys.
func (t *tx) TouchKeys(ctx context.Context, uses []ledger.KeyUse) error {
	latest := map[string]map[string]int64{}
	for _, use := range uses {
		if latest[use.Tenant] == nil {
			latest[use.Tenant] = map[string]int64{}
		}
		latest[use.Tenant][use.ID] = max(latest[use.Tenant][use.ID], int64(use.At))
	}
	if len(latest) == 0 {
		return nil
	}
	batch := &pgx.Batch{}
	for _, tenant := range sortedKeys(latest) {
		ids := sortedKeys(latest[tenant])
		times := make([]int64, len(ids))
		for i, id := range ids {
			times[i] = latest[tenant][id]
		}
		batch.Queue(touchKeys.Text, tenant, ids, times)
	}
	return fail(touchKeys.Name, t.db.SendBatch(ctx, batch).Close())
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
