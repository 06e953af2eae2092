package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/ledger"
)

var (
	chainHead     = named("ChainHead")
	verdictByHash = named("VerdictByHash")
)

// ChainHead implements ledger.Audit.
func (t *tx) ChainHead(ctx context.Context, tenant string) (ledger.ChainHead, error) {
	head, err := one(ctx, t, chainHead, func(row pgx.CollectableRow) (ledger.ChainHead, error) { return scanHead(row) }, tenant)
	if errors.Is(err, ledger.ErrNotFound) {
		return ledger.ChainHead{}, nil
	}
	return head, err
}

func scanHead(row pgx.Row) (head ledger.ChainHead, err error) {
	var hash, run []byte
	if err := row.Scan(&head.Seq, &hash, &run); err != nil {
		return head, err
	}
	if run != nil {
		if head.RunHash, err = hashOf("run_hash of the chain's head", run); err != nil {
			return head, err
		}
	}
	head.Hash, err = hashOf("chain_hash of the chain's head", hash)
	return head, err
}

// VerdictByHash implements ledger.Reading.
func (t *tx) VerdictByHash(ctx context.Context, hash [32]byte) (ledger.PublicVerdict, error) {
	return one(ctx, t, verdictByHash, func(row pgx.CollectableRow) (ledger.PublicVerdict, error) {
		var v ledger.PublicVerdict
		return v, row.Scan(&v.Document, (*int64)(&v.ComputedAt))
	}, hash[:])
}
