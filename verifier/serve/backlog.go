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
	// backlogEvery is how often the store is asked what is still to do: not with
	// every scrape, so that scrapes cost the store nothing.
	backlogEvery = 15 * time.Second
	// mostSources is how many sources have a lag of their own, the slowest first.
	mostSources = 100
)

// backlog shows what the store has still to do. All sidecars of a store show the same.
type backlog struct {
	store  ledger.Ledger
	now    func() engine.Instant
	logger *slog.Logger

	gauges    []prometheus.Gauge
	oldest    prometheus.Gauge
	sourceLag *prometheus.GaugeVec
}

func newBacklog(registry *prometheus.Registry, store ledger.Ledger, now func() engine.Instant, logger *slog.Logger) *backlog {
	b := &backlog{store: store, now: now, logger: logger}
	for _, g := range []struct{ name, help string }{
		{"countersign_outbox_depth", "Events in the store that wait to be sent as telemetry."},
		{"countersign_due", "Verifications in the store that are due now."},
		{"countersign_scheduled", "Verifications in the store that are due now or later."},
		{"countersign_parked_actions", "Actions in the store that cannot be verified until somebody looks."},
		{"countersign_webhooks_waiting", "Webhook deliveries in the store that wait."},
		{"countersign_webhooks_dead", "Webhook deliveries in the store that were given up."},
	} {
		b.gauges = append(b.gauges, prometheus.NewGauge(prometheus.GaugeOpts{Name: g.name, Help: g.help}))
		registry.MustRegister(b.gauges[len(b.gauges)-1])
	}
	b.oldest = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "countersign_outbox_age_seconds", Help: "Age of the oldest event that waits to be sent as telemetry; 0 for none.",
	})
	b.sourceLag = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "countersign_source_lag_seconds", Help: "How far a source's watermark is behind, in the tenant where it is furthest; the 100 slowest sources. Sources without a watermark are taken as current.",
	}, []string{"source"})
	registry.MustRegister(b.oldest, b.sourceLag)
	return b
}

// run asks until ctx ends.
func (b *backlog) run(ctx context.Context) error {
	ticker := time.NewTicker(backlogEvery)
	defer ticker.Stop()
	for {
		if err := b.look(ctx); err != nil && ctx.Err() == nil {
			b.logger.Warn("the store cannot say what is still to do; the metrics show what was known", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (b *backlog) look(ctx context.Context) error {
	now := b.now()
	var found ledger.Backlog
	var lags []ledger.SourceLag
	err := b.store.View(ctx, func(tx ledger.Tx) (err error) {
		if found, err = tx.Backlog(ctx, now); err != nil {
			return err
		}
		lags, err = tx.SourceLags(ctx, mostSources)
		return err
	})
	if err != nil {
		return err
	}
	for i, n := range []int64{found.Outbox, found.Due, found.Scheduled, found.Parked, found.Webhooks, found.DeadLetters} {
		b.gauges[i].Set(float64(n))
	}
	b.oldest.Set(0)
	if found.Outbox > 0 {
		b.oldest.Set(float64(max(0, now-found.OldestOutbox)))
	}
	b.sourceLag.Reset()
	for _, lag := range lags {
		b.sourceLag.WithLabelValues(lag.Source).Set(float64(max(0, now-lag.Watermark)))
	}
	return nil
}
