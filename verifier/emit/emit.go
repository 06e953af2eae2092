// Package emit sends verdicts back as telemetry: it drains the store's outbox
// through OTLP, at least once, with ids that make a repeat harmless.
package emit

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Options of an Emitter. Ledger, Contracts, Owner and Now are required.
type Options struct {
	Ledger    ledger.Ledger
	Contracts *ledger.ContractCache
	// Owner names this process in leases.
	Owner string
	Now   func() engine.Instant
	// Version is that of the program.
	Version string
	// Registry takes the metrics; may be nil.
	Registry *prometheus.Registry
	// Logger may be nil.
	Logger *slog.Logger
	// PollInterval bounds how late a missed wake-up is noticed; default 1 second.
	PollInterval time.Duration
}

// Emitter drains the outbox. Run it once.
type Emitter struct {
	Options
	config Config
	client client // nil when nothing is sent
	events *prometheus.CounterVec
}

const (
	// leaseFor is how long a killed emitter's events wait for another one.
	leaseFor = engine.Minute
	// firstBackOff doubles with every failure.
	firstBackOff = 500 * time.Millisecond
	// lastDrain bounds how long an ending emitter goes on sending.
	lastDrain = 5 * time.Second
)

// New checks the settings and prepares the connection.
func New(ctx context.Context, c Config, o Options) (*Emitter, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PollInterval <= 0 {
		o.PollInterval = time.Second
	}
	e := &Emitter{Options: o, config: c}
	e.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_emitted_events_total", Help: "Events of the outbox by kind and what became of them: sent, failed (they are sent again), discarded.",
	}, []string{"kind", "result"})
	if o.Registry != nil {
		o.Registry.MustRegister(e.events)
	}
	if c.Endpoint == "" {
		return e, nil
	}
	var err error
	e.client, err = newClient(ctx, c, o.Version)
	return e, err
}

// Run drains the outbox until ctx ends, then sends what is left for a few
// seconds more. What is not sent by then stays for the next start.
func (e *Emitter) Run(ctx context.Context) error {
	wake, err := e.Ledger.Wake(ctx)
	if err != nil {
		return err
	}
	failures := 0
	for ctx.Err() == nil {
		n, err := e.round(ctx)
		if err != nil {
			failures++
			e.Logger.Warn("sending verdicts failed; trying again", "endpoint", e.config.Endpoint, "failures", failures, "error", err)
			pause(ctx, nil, e.backOff(failures))
			continue
		}
		failures = 0
		if n == 0 {
			pause(ctx, wake, e.PollInterval)
		}
	}
	return errors.Join(e.drain(context.WithoutCancel(ctx), failures), e.close())
}

// drain sends what is left. After a failure there is no point in it.
func (e *Emitter) drain(ctx context.Context, failures int) error {
	if failures > 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastDrain)
	defer cancel()
	for {
		n, err := e.round(ctx)
		if err != nil {
			e.Logger.Warn("verdicts are left to send at the next start", "error", err)
			return nil
		}
		if n == 0 {
			return nil
		}
	}
}

func (e *Emitter) close() error {
	if e.client == nil {
		return nil
	}
	return e.client.close()
}

func (e *Emitter) backOff(failures int) time.Duration {
	return min(firstBackOff<<min(failures-1, 20), e.config.MaxBackOff)
}

// pause waits for a signal or the end of d. A closed channel is no signal.
func pause(ctx context.Context, wake <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
		case _, open := <-wake:
			if !open {
				wake = nil
				continue
			}
		case <-timer.C:
		}
		return
	}
}

// round sends one batch and returns how many events it took from the outbox.
// What is leased is finished even when ctx ends in between.
func (e *Emitter) round(ctx context.Context) (int, error) {
	now := e.Now()
	var leased []ledger.OutboxEvent
	err := e.Ledger.Update(ctx, func(tx ledger.Tx) (err error) {
		leased, err = tx.LeaseOutbox(ctx, ledger.Lease{Owner: e.Owner, Now: now, Until: now.Add(leaseFor)}, e.config.BatchSize)
		return err
	})
	if err != nil || len(leased) == 0 {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx)
	failures := e.deliver(ctx, leased)
	return len(leased), errors.Join(common(failures), e.complete(ctx, leased, failures))
}

// common is the error of a batch of which nothing was delivered.
func common(failures []error) error {
	for _, err := range failures {
		if err == nil {
			return nil
		}
	}
	return failures[0]
}

// complete removes what was delivered and keeps the rest for later.
func (e *Emitter) complete(ctx context.Context, leased []ledger.OutboxEvent, failures []error) error {
	var delivered []ledger.OutboxEvent
	var retry []ledger.OutboxRetry
	for i, event := range leased {
		result := "sent"
		switch {
		case failures[i] != nil:
			result = "failed"
			at := e.Now().Add(engine.Duration(e.backOff(event.Attempts+1) / time.Second))
			retry = append(retry, ledger.OutboxRetry{Tenant: event.Tenant, ID: event.ID, RetryAt: at, Error: failures[i].Error()})
		case e.client == nil:
			result = "discarded"
			fallthrough
		default:
			delivered = append(delivered, event)
		}
		e.events.WithLabelValues(event.Kind, result).Inc()
	}
	return e.Ledger.Update(ctx, func(tx ledger.Tx) error {
		return tx.CompleteOutbox(ctx, e.Owner, delivered, retry)
	})
}

// deliver sends a batch and says for each event what went wrong. When the
// other side refuses the batch, the events go one by one, so that one of them
// does not hold the others. Nothing is ever given up.
func (e *Emitter) deliver(ctx context.Context, leased []ledger.OutboxEvent) []error {
	failures := make([]error, len(leased))
	if e.client == nil {
		return failures
	}
	items, err := e.items(ctx, leased)
	if err == nil {
		err = e.send(ctx, items)
	}
	for i := range failures {
		failures[i] = err
		if len(items) > 1 && errors.Is(err, errRefused) {
			failures[i] = e.alone(ctx, items[i:i+1])
		}
	}
	return failures
}

func (e *Emitter) alone(ctx context.Context, one []item) error {
	err := e.send(ctx, one)
	if errors.Is(err, errRefused) {
		e.Logger.Error("a verdict is refused as telemetry and kept for later", "endpoint", e.config.Endpoint,
			"tenant", one[0].Tenant, "action_id", one[0].Action.Action.ActionID, "kind", one[0].Kind, "error", err)
	}
	return err
}

// send sends spans first, then events: what fails is repeated as a whole, and
// spans are told apart by their ids.
func (e *Emitter) send(ctx context.Context, items []item) error {
	logs, traces := writer{e.config, e.Version}.write(items)
	ctx, cancel := context.WithTimeout(ctx, e.config.Timeout)
	defer cancel()
	if traces.SpanCount() > 0 {
		dropped, err := e.client.traces(ctx, traces)
		if err != nil {
			return err
		}
		e.warn("spans", dropped)
	}
	if logs.LogRecordCount() == 0 {
		return nil
	}
	dropped, err := e.client.logs(ctx, logs)
	if err == nil {
		e.warn("events", dropped)
	}
	return err
}

func (e *Emitter) warn(what string, dropped partial) {
	if dropped.rejected > 0 {
		e.Logger.Warn("the endpoint took a batch and dropped part of it", "endpoint", e.config.Endpoint, "what", what, "dropped", dropped.rejected, "message", dropped.message)
	}
}

// items looks up what the events of a batch are told with: once per tenant.
func (e *Emitter) items(ctx context.Context, leased []ledger.OutboxEvent) ([]item, error) {
	items := make([]item, len(leased))
	err := e.Ledger.View(ctx, func(tx ledger.Tx) error {
		corrected, err := correctedActions(ctx, tx, leased)
		if err != nil {
			return err
		}
		for i, event := range leased {
			shown, err := view.Make(view.Parts{Stored: event.Action, Run: &event.Run})
			if err != nil {
				return err
			}
			items[i] = item{OutboxEvent: event, view: shown}
			if found, ok := corrected[actionKey{event.Tenant, event.Action.Action.Compensates}]; ok {
				items[i].corrected = &found
			}
			if c, err := e.Contracts.Get(ctx, tx, event.Run.Contract); err == nil { // from the cache: versions do not change
				items[i].digest = c.Hash
			}
		}
		return nil
	})
	return items, err
}

type actionKey struct{ tenant, actionID string }

func correctedActions(ctx context.Context, tx ledger.Tx, leased []ledger.OutboxEvent) (map[actionKey]ledger.StoredAction, error) {
	byTenant := map[string][]string{}
	for _, event := range leased {
		if event.Kind == Compensated {
			byTenant[event.Tenant] = append(byTenant[event.Tenant], event.Action.Action.Compensates)
		}
	}
	found := map[actionKey]ledger.StoredAction{}
	for tenant, refs := range byTenant {
		actions, err := tx.Actions(ctx, tenant, refs)
		if err != nil {
			return nil, err
		}
		for _, stored := range actions {
			found[actionKey{tenant, stored.Action.ActionID}] = stored
		}
	}
	return found, nil
}
