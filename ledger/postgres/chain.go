package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	chainHead     = named("ChainHead")
	readChain     = named("ReadChain")
	verdictByHash = named("VerdictByHash")
)

// ChainHead implements ledger.Reading.
func (t *tx) ChainHead(ctx context.Context, tenant string) (int64, [32]byte, error) {
	seq, hash, err := t.head(ctx, tenant, chainHead)
	if errors.Is(err, ledger.ErrNotFound) {
		return 0, [32]byte{}, nil
	}
	return seq, hash, err
}

func (t *tx) head(ctx context.Context, tenant string, s statement) (int64, [32]byte, error) {
	type row struct {
		Seq  int64
		Hash []byte
	}
	head, err := one(ctx, t, s, pgx.RowToStructByPos[row], tenant)
	if err != nil {
		return 0, [32]byte{}, err
	}
	hash, err := hashOf("chain_hash of the chain's head", head.Hash)
	return head.Seq, hash, err
}

// ReadChain implements ledger.Reading.
func (t *tx) ReadChain(ctx context.Context, tenant string, after int64, limit int) ([]ledger.ChainEntry, error) {
	return collect(ctx, t, readChain, func(row pgx.CollectableRow) (ledger.ChainEntry, error) {
		var e ledger.ChainEntry
		var hash, chain []byte
		if err := row.Scan(&e.Seq, &e.ClaimID, (*string)(&e.Lens), (*string)(&e.Raw), &hash, &chain, &e.Document); err != nil {
			return e, err
		}
		var err error
		if e.VerdictHash, err = hashOf("verdict_hash", hash); err != nil {
			return e, err
		}
		e.ChainHash, err = hashOf("chain_hash", chain)
		return e, err
	}, tenant, after, limit)
}

// VerdictByHash implements ledger.Reading.
func (t *tx) VerdictByHash(ctx context.Context, hash [32]byte) (ledger.PublicVerdict, error) {
	return one(ctx, t, verdictByHash, func(row pgx.CollectableRow) (ledger.PublicVerdict, error) {
		v := ledger.PublicVerdict{Hash: hash}
		var at int64
		err := row.Scan((*string)(&v.Raw), (*string)(&v.Lens), &v.ContractID, &v.ContractVersion, &at)
		v.ComputedAt = engine.Instant(at)
		return v, err
	}, hash[:])
}
