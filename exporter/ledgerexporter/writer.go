package ledgerexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
)

// writer is the exporter of both signals.
type writer struct {
	keeper     *keeper
	sorter     sorter
	counters   counters
	warnings   *warnings
	watermarks *watermarks
	budget     ledger.RejectedBudget
	logger     *zap.Logger
	now        func() time.Time

	cancel     context.CancelFunc
	background sync.WaitGroup
}

func newWriter(settings component.TelemetrySettings, config *Config, open opener) (*writer, error) {
	telemetry, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	return &writer{
		keeper:     newKeeper(config, open, settings.Logger),
		sorter:     newSorter(config),
		counters:   newCounters(telemetry),
		warnings:   newWarnings(settings.Logger),
		watermarks: newWatermarks(config),
		logger:     settings.Logger,
		now:        time.Now,
		cancel:     func() {},
	}, nil
}

// start opens the store in the background, so that whoever watches the
// collector's status knows early, and a store that is away holds up nothing.
func (w *writer) start(_ context.Context, host component.Host) error {
	w.keeper.watchedBy(host)
	w.watermarks.start(w.now())
	// The context of start ends with it; this work ends with shutdown.
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.background.Go(func() {
		_, err := w.keeper.get(ctx)
		if ctx.Err() == nil {
			w.keeper.report(err)
		}
	})
	if !w.watermarks.off() {
		w.background.Go(func() { w.follow(ctx) })
	}
	return nil
}

// follow writes watermarks now and then until ctx ends.
func (w *writer) follow(ctx context.Context) {
	ticker := time.NewTicker(watermarkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.writeWatermarks(ctx)
		}
	}
}

// writeWatermarks says in the log what only delays verdicts.
func (w *writer) writeWatermarks(ctx context.Context) {
	if err := w.watermarks.write(ctx, w.keeper.get, w.now()); err != nil && ctx.Err() == nil {
		w.logger.Debug("watermarks wait for the ledger", zap.Error(err))
	}
}

// lastWatermarks is how long a shutdown may wait for a store that does not answer.
const lastWatermarks = 5 * time.Second

// shutdown runs after the queue was drained: no batch is under way, and what
// was reported needs to wait for none. It may be called without start, and twice.
func (w *writer) shutdown(ctx context.Context) error {
	w.cancel()
	w.background.Wait()
	ctx, cancel := context.WithTimeout(ctx, lastWatermarks)
	defer cancel()
	w.watermarks.finish()
	if err := w.watermarks.write(ctx, w.keeper.get, w.now()); err != nil && !errors.Is(err, errClosed) {
		w.logger.Warn("the last watermarks were not written; sources stay behind until they report again", zap.Error(err))
	}
	w.counters.telemetry.Shutdown()
	return w.keeper.close()
}

func (w *writer) traces(ctx context.Context, td ptrace.Traces) error {
	return w.write(ctx, func() record.Batch { return record.FromTraces(td) })
}

func (w *writer) logs(ctx context.Context, ld plog.Logs) error {
	return w.write(ctx, func() record.Batch { return record.FromLogs(ld) })
}

// write stores a batch. What it returns is of the store as a whole and always
// retryable; what is wrong with an item is counted, of evidence kept apart, and
// no error, because no other item of the batch must wait for it or fall with it.
func (w *writer) write(ctx context.Context, read func() record.Batch) error {
	t := tally{}
	w.watermarks.look()
	batch := read()
	items := w.sorter.sort(&batch, &t)
	reports := w.reports(&batch, &t)
	sum := w.watermarks.seen(items, reports, w.now())
	if batch.Empty() {
		return nil
	}
	err := w.store(ctx, items, &t)
	w.watermarks.end(sum, items, reports, err, w.now())
	w.keeper.report(err)
	if err != nil {
		return err // the batch comes again, and what was rejected is counted then
	}
	w.counters.add(ctx, &t)
	w.warnings.unknownContracts(w.now(), t.unknownContracts)
	w.warnings.held(t.held, t.firstHeld)
	return nil
}

// reports: of a clock that is out of range nothing can be believed.
func (w *writer) reports(batch *record.Batch, t *tally) []report {
	if len(batch.Watermarks) == 0 {
		return nil
	}
	now, err := engine.InstantOf(w.now())
	if err != nil {
		now = 0
	}
	return w.sorter.reports(batch, now, t)
}

func (w *writer) store(ctx context.Context, items []item, t *tally) error {
	if len(items) == 0 && len(t.kept) == 0 {
		return nil
	}
	store, err := w.keeper.get(ctx)
	if err != nil {
		return err
	}
	started := w.now()
	now, err := engine.InstantOf(started)
	if err != nil {
		return fmt.Errorf("the clock of this host: %w", err)
	}
	if err := w.transact(ctx, store, items, now, t); err != nil {
		return err
	}
	// Good items are in; should this fail, they come again and change nothing.
	err = w.keep(ctx, store, t, now)
	switch {
	case err == nil:
	case passes(err) || ctx.Err() != nil:
		return fmt.Errorf("keep what was rejected: %w", err)
	default:
		// What was rejected must not hold up what comes behind it.
		w.logger.Error("rejected evidence could not be kept", zap.Error(err))
	}
	w.counters.duration(ctx, w.now().Sub(started))
	return nil
}

// transact writes items in one transaction. Where the store refuses the whole
// for a reason that will not pass, halves are tried, down to the item that
// cannot be stored, so that it takes no other one with it.
func (w *writer) transact(ctx context.Context, store ledger.Ledger, items []item, now engine.Instant, t *tally) error {
	if len(items) == 0 {
		return nil
	}
	var attempt tally
	err := store.Update(ctx, func(tx ledger.Tx) error {
		attempt = tally{} // Update may run this again
		for i := range items {
			items[i].refused = false
		}
		return w.sorter.write(ctx, tx, items, now, &attempt)
	})
	switch {
	case err == nil:
		t.merge(&attempt)
		return nil
	case passes(err) || ctx.Err() != nil:
		return err
	case len(items) == 1:
		w.sorter.refuse(&items[0], reasonStore, err.Error(), t)
		return nil
	}
	half := len(items) / 2
	if err := w.transact(ctx, store, items[:half], now, t); err != nil {
		return err
	}
	return w.transact(ctx, store, items[half:], now, t)
}

// passes tells errors of the store as a whole, which an operator or time will
// mend, from those of an item. A store that is read-only now may be a server
// on its way to another primary, so it counts among them: trying again costs
// nothing, and giving up loses actions.
func passes(err error) bool {
	for _, whole := range []error{
		ledger.ErrUnavailable, ledger.ErrReadOnly, ledger.ErrNotMigrated, ledger.ErrNewerSchema, errNoContracts,
		context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, whole) {
			return true
		}
	}
	return false
}
