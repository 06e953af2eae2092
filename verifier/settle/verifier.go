// Package settle decides verdicts: it takes what is due, evaluates it in SQL,
// derives it again in Go, and stores runs, verdicts, chain, events and the
// next check in one transaction (AC "Settlement window", decision D23).
package settle

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// ErrDisagreement: the SQL and the Go evaluator do not say the same of an
// action. Nothing was stored and the action is parked (decision D23).
var ErrDisagreement = errors.New("evaluators disagree")

// Config of a Verifier. Ledger, Contracts and Now are required.
type Config struct {
	Ledger    ledger.Ledger
	Contracts *ledger.ContractCache
	Settings  report.Settings
	// Owner names this verifier in leases; it must differ between processes.
	Owner string
	Now   func() engine.Instant
	// Logger may be nil.
	Logger *slog.Logger
	// BatchSize is how many actions are leased at once, 1 to 10,000; default 500.
	BatchSize int
	// Workers settle side by side; default 2.
	Workers int
	// LeaseFor is how long a killed verifier's work waits for another one; default 60 seconds.
	LeaseFor engine.Duration
	// PollInterval bounds how late missed wake-ups are noticed; default 1 second.
	PollInterval time.Duration
	// OnStored is called after runs were committed, by any goroutine; may be nil.
	OnStored func(tenant string, runs []ledger.Run)
	// Observe is told of every run that was committed, for metrics, by any goroutine; may be nil.
	Observe func(tenant string, observed []Observation)
	// OnParked is called after work was parked; may be nil.
	OnParked func(tenant string, parked []ledger.Parked)
	// Derive is the second evaluator; nil means goeval.Evaluate. Fault tests replace it.
	Derive func(*contract.Contract, *engine.Snapshot) []engine.Evaluation
}

// Observation is a run that was stored, with the action as it was judged.
type Observation struct {
	Run    *ledger.Run
	Action *engine.Action
	// Took is the time from asking for work to the commit.
	Took time.Duration
}

// Verifier evaluates what is due. It is safe for concurrent use.
type Verifier struct{ Config }

// New fills in defaults.
func New(c Config) *Verifier {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.BatchSize = orDefault(c.BatchSize, 500)
	c.Workers = orDefault(c.Workers, 2)
	c.LeaseFor = orDefault(c.LeaseFor, engine.Minute)
	c.PollInterval = orDefault(c.PollInterval, time.Second)
	if c.Settings == (report.Settings{}) {
		c.Settings = report.DefaultSettings()
	}
	if c.Derive == nil {
		c.Derive = goeval.Evaluate
	}
	return &Verifier{c}
}

func orDefault[T int | engine.Duration | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

// Run settles what is due until ctx ends, and then finishes what it holds. It
// returns nil then; it fails only when the store cannot tell about new work at all.
func (v *Verifier) Run(ctx context.Context) error {
	wake, err := v.Ledger.Wake(ctx)
	if err != nil {
		return err
	}
	// A signal is taken by one worker, the first that is idle; who finds more than
	// one batch passes it on. So a trickle of work wakes one of them, not all.
	signal := make(chan struct{}, 1)
	var workers sync.WaitGroup
	for range v.Workers {
		workers.Go(func() { v.work(ctx, signal) })
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case _, open := <-wake:
			if !open {
				wake = nil
			}
			send(signal)
		}
	}
	workers.Wait()
	return nil
}

func send(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default: // a signal is waiting already
	}
}

// work settles until nothing is due, then waits for a signal, the next due time or the poll interval.
func (v *Verifier) work(ctx context.Context, signal chan struct{}) {
	failures := 0
	for ctx.Err() == nil {
		worked, err := v.round(ctx, func() { send(signal) })
		switch {
		case err != nil && ctx.Err() == nil:
			failures++
			v.Logger.Error("settling failed; trying again", "error", err, "failures", failures)
		case err == nil:
			failures = 0
		}
		if worked && err == nil {
			continue
		}
		pause(ctx, signal, backOff(v.PollInterval, failures))
	}
}

// backOff doubles the poll interval per failure, up to half a minute.
func backOff(interval time.Duration, failures int) time.Duration {
	return min(interval<<min(failures, 10), 30*time.Second)
}

func pause(ctx context.Context, signal <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-signal:
	case <-timer.C:
	}
}

// maxTenants bounds how many tenants one round serves; the next round serves the rest.
const maxTenants = 1000

// maxFailures ends a round.
const maxFailures = 2

// round leases and settles one batch of every tenant that has due work. It calls
// more when there may be work for another worker.
func (v *Verifier) round(ctx context.Context, more func()) (worked bool, err error) {
	var tenants []string
	err = v.Ledger.View(ctx, func(tx ledger.Tx) error {
		tenants, err = tx.DueTenants(ctx, v.Now(), maxTenants)
		return err
	})
	if err != nil {
		return false, err
	}
	if len(tenants) > 1 {
		more()
	}
	var failures []error
	for _, tenant := range tenants {
		n, err := v.settleTenant(ctx, tenant, more)
		worked = worked || n > 0
		if err == nil {
			continue
		}
		// One tenant whose evidence does not end is no reason to let the others
		// wait; two are a store that is away.
		if failures = append(failures, err); len(failures) == maxFailures || ctx.Err() != nil {
			break
		}
	}
	return worked, errors.Join(failures...)
}

func (v *Verifier) settleTenant(ctx context.Context, tenant string, more func()) (leased int, err error) {
	started := time.Now()
	var due []ledger.Due
	err = v.Ledger.Update(ctx, func(tx ledger.Tx) error {
		due, err = tx.LeaseDue(ctx, tenant, v.lease(), v.BatchSize)
		return err
	})
	if err != nil || len(due) == 0 {
		return 0, err
	}
	if len(due) == v.BatchSize {
		more()
	}
	// What is leased is finished even when the verifier is told to stop.
	_, err = v.settleLeased(context.WithoutCancel(ctx), started, tenant, due, nil)
	return len(due), err
}

func (v *Verifier) lease() ledger.Lease {
	now := v.Now()
	return ledger.Lease{Owner: v.Owner, Now: now, Until: now.Add(v.LeaseFor)}
}
