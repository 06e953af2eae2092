package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
	"github.com/countersign-otel/countersign/engine/sqleval"
)

// Evaluate implements ledger.Verification.
func (t *tx) Evaluate(ctx context.Context, tenant string, c *contract.Contract, claimIDs, unavailable []string) ([]engine.Evaluation, error) {
	compiled := t.store.compile(c)
	doing := fmt.Sprintf("Evaluate %s version %d", c.ID, c.Version)
	rows, err := t.db.Query(ctx, compiled.Text, tenant, claimIDs, listed(unavailable))
	if err != nil {
		return nil, fail(doing, err)
	}
	columns := make([]*string, compiled.Columns())
	targets := make([]any, len(columns))
	for i := range columns {
		targets[i] = &columns[i]
	}
	evaluations, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (engine.Evaluation, error) {
		if err := row.Scan(targets...); err != nil {
			return engine.Evaluation{}, err
		}
		evaluation, err := compiled.Evaluation(columns)
		if err != nil {
			return evaluation, fmt.Errorf("%w: %w", errStored, err)
		}
		return evaluation, nil
	})
	return evaluations, fail(doing, err)
}

// compile keeps what a contract's content compiles to.
func (s *Store) compile(c *contract.Contract) *sqleval.Statement {
	if known, ok := s.compiled.Get(c.Hash); ok {
		return known
	}
	compiled := sqleval.Compile(c, primitive.Postgres)
	s.compiled.Add(c.Hash, compiled)
	return compiled
}
