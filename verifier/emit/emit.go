// Package emit sends verdicts back as telemetry: it drains the store's outbox
// through OTLP, and into tracing back ends that take annotations of spans, at
// least once, with ids that make a repeat harmless.
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
	// routes is empty when nothing is told anywhere.
	routes []*route
	taken  taken
	// refusals are counted to know when to give up.
	refusals refusals
	events   *prometheus.CounterVec
	givenUp  *prometheus.CounterVec
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
	e := &Emitter{Options: o, config: c, taken: newTaken(), refusals: newRefusals()}
	e.events = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_emitted_events_total", Help: "Events of the outbox by kind and what became of them: sent, failed (they are sent again), discarded, given_up (a destination refused them for good).",
	}, []string{"kind", "result"})
	e.givenUp = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_emit_given_up_total", Help: "Events that a destination refused so often, and for good, that they were given up for it.",
	}, []string{"destination"})
	if o.Registry != nil {
		o.Registry.MustRegister(e.events, e.givenUp)
	}
	if err := e.connect(ctx); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

// connect prepares the destinations that the settings name.
func (e *Emitter) connect(ctx context.Context) error {
	c := e.config
	if c.Endpoint != "" {
		client, err := newClient(ctx, c, e.Version)
		if err != nil {
			return err
		}
		e.routes = append(e.routes, &route{name: "otlp", destination: &otlp{client, writer{c, e.Version}, c, e.Logger}})
	}
	if c.Phoenix.Endpoint != "" {
		phoenix, err := newPhoenix(ctx, c, e.Version, e.Now, e.Logger)
		if err != nil {
			return err
		}
		e.routes = append(e.routes, &route{name: "phoenix", destination: newAnnotator(phoenix, e.Ledger, c)})
	}
	if c.Langfuse.Endpoint != "" {
		langfuse, err := newLangfuse(ctx, c, e.Version)
		if err != nil {
			return err
		}
		e.routes = append(e.routes, &route{name: "langfuse", destination: newAnnotator(langfuse, e.Ledger, c)})
	}
	return nil
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
		if err != nil && n == 0 && ctx.Err() != nil {
			break // it was ended before it had leased anything: that is no failure
		}
		if err != nil {
			failures++
			e.Logger.Warn("sending verdicts failed; trying again", "failures", failures, "error", err)
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
	var all error
	for _, r := range e.routes {
		all = errors.Join(all, r.close())
	}
	return all
}

func (e *Emitter) backOff(failures int) time.Duration {
	return min(firstBackOff<<min(failures-1, 20), e.config.MaxBackOff)
}

// longestWait bounds the pause between attempts for events that only one of
// several destinations has not taken, or that one refuses: many of them must
// not keep the outbox busy for long.
const longestWait = 10 * time.Minute

func (e *Emitter) retryAt(event ledger.OutboxEvent, failure error) engine.Instant {
	wait := e.backOff(event.Attempts + 1)
	if e.taken.waits(event) || permanent(failure) {
		wait = min(firstBackOff<<min(event.Attempts, 20), longestWait)
	}
	return e.Now().Add(engine.Duration(wait / time.Second))
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
	failures, stuck := e.tell(ctx, leased)
	return len(leased), errors.Join(stuck, e.complete(ctx, leased, failures))
}

// tell tells a batch everywhere and says for each event what went wrong.
func (e *Emitter) tell(ctx context.Context, leased []ledger.OutboxEvent) (failures []error, stuck error) {
	failures = make([]error, len(leased))
	if len(e.routes) == 0 {
		return failures, nil
	}
	items, err := e.items(ctx, leased)
	if err == nil {
		return e.deliver(ctx, items)
	}
	for i := range failures {
		failures[i] = err
	}
	return failures, err
}

// complete removes what was delivered and keeps the rest for later.
func (e *Emitter) complete(ctx context.Context, leased []ledger.OutboxEvent, failures []error) error {
	var delivered []ledger.OutboxEvent
	var retry []ledger.OutboxRetry
	for i, event := range leased {
		result := "sent"
		switch {
		case errors.Is(failures[i], errGivenUp):
			result = "given_up"
			delivered = append(delivered, event)
		case failures[i] != nil:
			result = "failed"
			retry = append(retry, ledger.OutboxRetry{Tenant: event.Tenant, ID: event.ID, RetryAt: e.retryAt(event, failures[i]), Error: failures[i].Error()})
		case len(e.routes) == 0:
			result = "discarded"
			fallthrough
		default:
			delivered = append(delivered, event)
		}
		e.events.WithLabelValues(event.Kind, result).Inc()
	}
	err := e.Ledger.Update(ctx, func(tx ledger.Tx) error {
		return tx.CompleteOutbox(ctx, e.Owner, delivered, retry)
	})
	if err == nil {
		e.taken.forget(delivered)
	}
	return err
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
