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
	verdictByHash = named("VerdictByHash")
)

// ChainHead implements ledger.Audit.
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
