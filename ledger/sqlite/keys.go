package sqlite

import (
	"context"
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	createKey = fixed.Named("CreateKey")
	keyByHash = fixed.Named("KeyByHash")
	listKeys  = fixed.Named("ListKeys")
	keyByID   = fixed.Named("KeyByID")
	anyKey    = fixed.Named("AnyKey")
	revokeKey = fixed.Named("RevokeKey")
	expireKey = fixed.Named("ExpireKey")
	touchKeys = fixed.Named("TouchKeys")
)

// CreateKey implements ledger.Keys.
func (t *tx) CreateKey(ctx context.Context, key ledger.Key) error {
	if _, err := t.execute(ctx, ownTenant, key.Tenant, key.CreatedAt); err != nil {
		return err
	}
	_, err := t.execute(ctx, createKey, key.Tenant, key.ID, key.Role, key.Prefix, key.Hash[:], list(key.Sources),
		key.CreatedAt, number(key.ExpiresAt), number(key.RevokedAt), number(key.LastUsedAt))
	return err
}

// KeyByHash implements ledger.Keys.
func (t *tx) KeyByHash(ctx context.Context, hash [32]byte) (ledger.Key, error) {
	return one(ctx, t, keyByHash, readKey, hash[:])
}

// ListKeys implements ledger.Keys.
func (t *tx) ListKeys(ctx context.Context, tenant string) ([]ledger.Key, error) {
	return collect(ctx, t, listKeys, readKey, tenant)
}

// KeyByID implements ledger.Keys.
func (t *tx) KeyByID(ctx context.Context, tenant, id string) (ledger.Key, error) {
	return one(ctx, t, keyByID, readKey, tenant, id)
}

// AnyKey implements ledger.Keys.
func (t *tx) AnyKey(ctx context.Context, roles []string, now engine.Instant) (bool, error) {
	return one(ctx, t, anyKey, column[bool], list(roles), now)
}

// RevokeKey implements ledger.Keys.
func (t *tx) RevokeKey(ctx context.Context, tenant, id string, now engine.Instant) error {
	touched, err := t.execute(ctx, revokeKey, tenant, id, now)
	if err == nil && touched == 0 {
		return fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
	}
	return err
}

// ExpireKey implements ledger.Keys.
func (t *tx) ExpireKey(ctx context.Context, tenant, id string, at engine.Instant) error {
	touched, err := t.execute(ctx, expireKey, tenant, id, at)
	if err == nil && touched == 0 {
		return fmt.Errorf("%w: key %q", ledger.ErrNotFound, id)
	}
	return err
}

// TouchKeys implements ledger.Keys.
func (t *tx) TouchKeys(ctx context.Context, uses []ledger.KeyUse) error {
	latest := map[[2]string]engine.Instant{}
	for _, use := range uses {
		key := [2]string{use.Tenant, use.ID}
		latest[key] = max(latest[key], use.At)
	}
	var rows batch
	for key, at := range latest {
		rows.row().text(key[0]).text(key[1]).integer(int64(at))
	}
	_, err := t.execute(ctx, touchKeys, rows.parameter())
	return err
}

func readKey(scan scan) (k ledger.Key, err error) {
	var hash []byte
	var sources string
	if err = scan(&k.Tenant, &k.ID, &k.Role, &k.Prefix, &hash, &sources, &k.CreatedAt, &k.ExpiresAt, &k.RevokedAt, &k.LastUsedAt); err != nil {
		return k, err
	}
	copy(k.Hash[:], hash)
	k.Sources, err = readList(sources)
	return k, err
}
