package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	backlog    = named("Backlog")
	sourceLags = named("SourceLags")

	countOrphans = named("CountOrphans")
)

// Backlog implements ledger.Overview.
func (t *tx) Backlog(ctx context.Context, now engine.Instant) (ledger.Backlog, error) {
	return one(ctx, t, backlog, func(row pgx.CollectableRow) (b ledger.Backlog, err error) {
		err = row.Scan(&b.Outbox, (*int64)(&b.OldestOutbox), &b.Due, &b.Scheduled, &b.Parked, &b.Webhooks, &b.DeadLetters)
		return b, err
	}, now)
}

// SourceLags implements ledger.Overview.
func (t *tx) SourceLags(ctx context.Context, limit int) ([]ledger.SourceLag, error) {
	return collect(ctx, t, sourceLags, func(row pgx.CollectableRow) (l ledger.SourceLag, err error) {
		err = row.Scan(&l.Source, (*int64)(&l.Watermark))
		return l, err
	}, limit)
}

// CountOrphans implements ledger.Overview.
func (t *tx) CountOrphans(ctx context.Context, effects []ledger.EffectType, since, until engine.Instant, limit int) ([]ledger.OrphanCount, error) {
	sources, types := effectArrays(effects)
	return collect(ctx, t, countOrphans, pgx.RowToStructByPos[ledger.OrphanCount], pgx.QueryExecModeCacheDescribe, sources, types, since, until, limit)
}
