package sqlite

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var (
	backlog    = fixed.Named("Backlog")
	sourceLags = fixed.Named("SourceLags")

	countOrphans = fixed.Named("CountOrphans")
)

// Backlog implements ledger.Overview.
func (t *tx) Backlog(ctx context.Context, now engine.Instant) (ledger.Backlog, error) {
	return one(ctx, t, backlog, func(scan scan) (b ledger.Backlog, err error) {
		return b, scan(&b.Outbox, &b.OldestOutbox, &b.Due, &b.Scheduled, &b.Parked, &b.Webhooks, &b.DeadLetters)
	}, now)
}

// SourceLags implements ledger.Overview.
func (t *tx) SourceLags(ctx context.Context, limit int) ([]ledger.SourceLag, error) {
	return collect(ctx, t, sourceLags, func(scan scan) (l ledger.SourceLag, err error) {
		return l, scan(&l.Source, &l.Watermark)
	}, limit)
}

// CountOrphans implements ledger.Overview.
func (t *tx) CountOrphans(ctx context.Context, effects []ledger.EffectType, since, until engine.Instant, limit int) ([]ledger.OrphanCount, error) {
	return collect(ctx, t, countOrphans, func(scan scan) (c ledger.OrphanCount, err error) {
		return c, scan(&c.Source, &c.Facts)
	}, effectRows(effects), since, until, limit)
}
