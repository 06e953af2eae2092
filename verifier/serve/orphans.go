package serve

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

const (
	// orphansEvery is the shortest time between two counts.
	orphansEvery = time.Minute
	// orphansShare bounds what counting costs: it rests this many times as long as it took.
	orphansShare = 50
	// orphansTimeout ends a count.
	orphansTimeout = 30 * time.Second
	// Counted are effects that occurred up to orphansBack ago, and not the newest:
	// the action that explains those may still be on its way.
	orphansBack  = engine.Hour
	orphansFresh = 5 * engine.Minute
)

// orphans shows effects that no recorded action explains. All sidecars of a store show the same.
type orphans struct {
	store  ledger.Ledger
	now    func() engine.Instant
	logger *slog.Logger
	counts *prometheus.GaugeVec
}

func newOrphans(registry *prometheus.Registry, store ledger.Ledger, now func() engine.Instant, logger *slog.Logger) *orphans {
	o := &orphans{store: store, now: now, logger: logger, counts: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "countersign_orphan_effects",
		Help: "Effects of the types that contracts expect, of the last hour without its last 5 minutes, that no recorded action explains, by source; the 100 sources with the most.",
	}, []string{"source"})}
	registry.MustRegister(o.counts)
	return o
}

// run counts until ctx ends.
func (o *orphans) run(ctx context.Context) error {
	for {
		started := time.Now()
		if err := o.look(ctx); err != nil && ctx.Err() == nil {
			o.logger.Warn("orphan effects cannot be counted; the metric shows what was known", "error", err)
		}
		timer := time.NewTimer(orphansPause(time.Since(started)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// orphansPause is the time until the next count, after one that took a time.
func orphansPause(took time.Duration) time.Duration {
	return max(orphansEvery, orphansShare*took)
}

func (o *orphans) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	now := o.now()
	var found []ledger.OrphanCount
	var unread error
	err := o.store.View(ctx, func(tx ledger.Tx) error {
		documents, err := tx.ListContracts(ctx, "")
		if err != nil {
			return err
		}
		var effects []ledger.EffectType
		if effects, unread = ledger.ExpectedEffects(documents, ""); len(effects) == 0 {
			return nil
		}
		found, err = tx.CountOrphans(ctx, effects, now.Sub(orphansBack), now.Sub(orphansFresh), mostSources)
		return err
	})
	if err != nil {
		return err
	}
	o.counts.Reset()
	for _, c := range found {
		o.counts.WithLabelValues(c.Source).Set(float64(c.Facts))
	}
	return unread
}
