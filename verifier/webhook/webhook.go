// Package webhook tells endpoints of events, signed by the Standard Webhooks
// scheme (https://www.standardwebhooks.com). What is to be told stands in the
// store: it survives restarts, is told at least once, under the same id with
// every attempt, and becomes a dead letter when it was tried often enough.
//
// Every endpoint has workers of its own, so that a slow one holds up no other.
// Events of one endpoint may arrive in another order than they happened in;
// their ids say which one it was.
package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// Options of a Sender. Ledger, Owner and Now are required.
type Options struct {
	Ledger ledger.Ledger
	// Owner names this process in leases.
	Owner string
	Now   func() engine.Instant
	// Chance is a random length below a given one; nil takes math/rand.
	Chance func(below time.Duration) time.Duration
	// Version is that of the program.
	Version string
	// Registry takes the metrics; may be nil.
	Registry *prometheus.Registry
	// Logger may be nil.
	Logger *slog.Logger
	// PollInterval bounds how late a missed wake-up is noticed; default 1 second.
	PollInterval time.Duration
}

// Sender tells the endpoints. Run it once.
type Sender struct {
	Options
	config    Config
	endpoints []*endpoint
	attempts  *prometheus.CounterVec
}

const (
	// pageSize is how many runs are looked at for an endpoint in one transaction.
	pageSize = 500
	// leaseMargin is how much longer than an attempt may take a killed process's deliveries wait for another one.
	leaseMargin = 30 * engine.Second
	// lastDrain bounds how long attempts that are under way may take at the end.
	lastDrain = 5 * time.Second
	// expireEvery is how often what is old is removed, expireBatch how much at once.
	expireEvery = engine.Minute
	expireBatch = 1000
)

// New checks the settings.
func New(c Config, o Options) (*Sender, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.PollInterval <= 0 {
		o.PollInterval = time.Second
	}
	if o.Chance == nil {
		o.Chance = rand.N[time.Duration]
	}
	s := &Sender{Options: o, config: c, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_webhook_attempts_total", Help: "Attempts to deliver an event, by endpoint and what came of them: delivered, failed (tried again), dead (given up).",
	}, []string{"endpoint", "result"})}
	if o.Registry != nil {
		o.Registry.MustRegister(s.attempts)
	}
	for _, e := range c.Endpoints {
		made, err := s.endpoint(e.filled())
		if err != nil {
			return nil, err
		}
		s.endpoints = append(s.endpoints, made)
	}
	return s, nil
}

// Run tells the endpoints until ctx ends; attempts that are under way then may
// end. What is not told stays in the store.
func (s *Sender) Run(ctx context.Context) error {
	if len(s.endpoints) == 0 {
		<-ctx.Done()
		return nil
	}
	wake, err := s.Ledger.Wake(ctx)
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	for _, e := range s.endpoints {
		running.Go(func() { e.run(ctx) })
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case _, open := <-wake:
			if !open {
				wake = nil
			}
			for _, e := range s.endpoints {
				e.nudge()
			}
		}
	}
	running.Wait()
	return nil
}

// endpoint tells one address.
type endpoint struct {
	*Sender
	Endpoint
	poster *poster
	filter view.EventFilter
	wake   chan struct{}
	// done are results that are not stored yet.
	done       []ledger.DeliveryResult
	results    chan ledger.DeliveryResult
	underWay   int
	nextExpiry engine.Instant
}

func (s *Sender) endpoint(e Endpoint) (*endpoint, error) {
	poster, err := newPoster(e, s.config, s.Version)
	return &endpoint{
		Sender: s, Endpoint: e, poster: poster, filter: view.EventFilter{Kinds: e.Events},
		wake: make(chan struct{}, 1), results: make(chan ledger.DeliveryResult, s.config.Concurrency),
	}, err
}

func (e *endpoint) nudge() {
	select {
	case e.wake <- struct{}{}:
	default: // a signal is waiting already
	}
}

func (e *endpoint) run(ctx context.Context) {
	defer e.poster.close()
	// Attempts outlive ctx for a while.
	attempts, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	ticker := time.NewTicker(e.PollInterval)
	defer ticker.Stop()
	look := true
	for ctx.Err() == nil {
		if err := e.round(ctx, attempts, look); err != nil && ctx.Err() == nil {
			e.Logger.Warn("the store cannot say what an endpoint is to be told; trying again", "endpoint", e.Name, "tenant", e.Tenant, "error", err)
		}
		look = false
		select {
		case <-ctx.Done():
		case <-e.wake:
			look = true
		case <-ticker.C:
			look = true
		case result := <-e.results:
			e.take(result)
		}
	}
	e.end(context.WithoutCancel(ctx), cancel)
}

// end waits for what is under way, and notes what came of it.
func (e *endpoint) end(ctx context.Context, cancel context.CancelFunc) {
	timer := time.AfterFunc(lastDrain, cancel)
	defer timer.Stop()
	for e.underWay > 0 {
		e.take(<-e.results)
	}
	if err := e.complete(ctx); err != nil {
		e.Logger.Warn("deliveries that succeeded could not be noted, and will be repeated", "endpoint", e.Name, "error", err)
	}
}

// take collects all results that are there.
func (e *endpoint) take(result ledger.DeliveryResult) {
	for {
		e.underWay--
		e.done = append(e.done, result)
		select {
		case result = <-e.results:
		default:
			return
		}
	}
}

// round notes results, looks for new events, and begins attempts.
func (e *endpoint) round(ctx, attempts context.Context, look bool) error {
	if err := e.complete(ctx); err != nil {
		return err
	}
	for more := look; more; {
		var err error
		if more, err = e.enqueue(ctx); err != nil {
			return err
		}
	}
	if err := e.begin(ctx, attempts); err != nil {
		return err
	}
	return e.expire(ctx)
}

func (e *endpoint) complete(ctx context.Context) error {
	if len(e.done) == 0 {
		return nil
	}
	err := e.Ledger.Update(ctx, func(tx ledger.Tx) error {
		return tx.CompleteDeliveries(ctx, e.Tenant, e.Owner, e.done, e.Now())
	})
	if err == nil {
		e.done = nil
	}
	return err
}

// enqueue puts the next events of the sequence on the endpoint's list. All
// sidecars do it; each event is put there once.
func (e *endpoint) enqueue(ctx context.Context) (more bool, err error) {
	err = e.Ledger.Update(ctx, func(tx ledger.Tx) error {
		at, err := tx.LockWebhook(ctx, e.Tenant, e.Name)
		if err != nil {
			return err
		}
		page, err := tx.ReadEvents(ctx, e.Tenant, at, pageSize)
		if err != nil || page.Next == at {
			return err
		}
		more = page.More
		deliveries, err := e.deliveries(page.Events)
		if err != nil {
			return err
		}
		return tx.EnqueueDeliveries(ctx, e.Tenant, e.Name, page.Next, deliveries, e.Now())
	})
	return more && err == nil, err
}

func (e *endpoint) deliveries(events []ledger.Event) ([]ledger.NewDelivery, error) {
	var made []ledger.NewDelivery
	for i := range events {
		event := &events[i]
		if !e.filter.Match(event) || len(e.Contracts) > 0 && !slices.Contains(e.Contracts, event.Contract.ID) {
			continue
		}
		payload, err := json.Marshal(Message{event.Kind, event.At, view.EventOf(*event)})
		if err != nil {
			return nil, err
		}
		made = append(made, ledger.NewDelivery{ID: idOf(e.Tenant, e.Name, event.Position), Event: event.Position, Kind: event.Kind, Payload: string(payload)})
	}
	return made, nil
}

// Message is the body of a webhook.
type Message struct {
	Type      string         `json:"type"`
	Timestamp engine.Instant `json:"timestamp"`
	Data      view.Event     `json:"data"`
}

// idOf is made of what it names, so that the same event has the same id whoever enqueues it.
func idOf(tenant, endpoint string, event ledger.Position) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + endpoint + "\x00" + event.String()))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// begin begins as many attempts as are free.
func (e *endpoint) begin(ctx, attempts context.Context) error {
	free := e.config.Concurrency - e.underWay
	if free == 0 {
		return nil
	}
	now := e.Now()
	until := now.Add(engine.Duration(e.config.Timeout/time.Second) + leaseMargin)
	var leased []ledger.Delivery
	err := e.Ledger.Update(ctx, func(tx ledger.Tx) (err error) {
		leased, err = tx.LeaseDeliveries(ctx, e.Tenant, e.Name, ledger.Lease{Owner: e.Owner, Now: now, Until: until}, free)
		return err
	})
	if err != nil {
		return err
	}
	e.underWay += len(leased)
	for _, d := range leased {
		go func() { e.results <- e.attempt(attempts, d) }()
	}
	return nil
}

// attempt posts once and says what comes next.
func (e *endpoint) attempt(ctx context.Context, d ledger.Delivery) ledger.DeliveryResult {
	got := e.poster.post(ctx, d, e.Now())
	result := ledger.DeliveryResult{ID: d.ID, State: ledger.DeliveryDelivered, Status: got.status, DueAt: d.DueAt}
	name := "delivered"
	switch {
	case got.err == nil:
	case ctx.Err() != nil: // the sidecar ends: not the endpoint's fault
		name, result.State, result.Error = "failed", ledger.DeliveryWaiting, "the sidecar ended"
	case got.gone, d.Attempts >= e.config.MaxAttempts:
		name, result.State, result.Error = "dead", ledger.DeliveryDead, got.err.Error()
		e.Logger.Error("a webhook was given up; replay it once the endpoint is mended: countersign webhooks replay "+d.ID,
			"endpoint", e.Name, "tenant", e.Tenant, "id", d.ID, "attempts", d.Attempts, "error", got.err)
	default:
		name, result.State, result.Error = "failed", ledger.DeliveryWaiting, got.err.Error()
		result.DueAt = e.Now().Add(e.backOff(d.Attempts, got.retryAfter))
		e.Logger.Warn("a webhook failed; trying again", "endpoint", e.Name, "id", d.ID, "attempts", d.Attempts, "again_at", result.DueAt.String(), "error", got.err)
	}
	e.Sender.attempts.WithLabelValues(e.Name, name).Inc()
	return result
}

// backOff doubles with every attempt; up to half of it is left to chance, so
// that endpoints that come back are not met by all at once. What the endpoint
// asks for with Retry-After is heeded, within the longest pause.
func (e *endpoint) backOff(attempts int, asked time.Duration) engine.Duration {
	pause := e.config.MaxBackOff
	if doubled := e.config.FirstBackOff << min(attempts-1, 30); doubled > 0 {
		pause = min(pause, doubled)
	}
	pause = pause/2 + e.Chance(pause/2+1)
	pause = max(pause, min(asked, e.config.MaxBackOff))
	return engine.Duration((pause + time.Second - 1) / time.Second)
}

// expire removes now and then what is old: a batch, and the next with the next
// round as long as there is more, so that it keeps up with any traffic.
func (e *endpoint) expire(ctx context.Context) error {
	now := e.Now()
	if now < e.nextExpiry {
		return nil
	}
	more := false
	err := e.Ledger.Update(ctx, func(tx ledger.Tx) error {
		more = false
		for state, keep := range map[string]time.Duration{ledger.DeliveryDelivered: e.config.KeepDelivered, ledger.DeliveryDead: e.config.KeepDead} {
			n, err := tx.ExpireDeliveries(ctx, e.Tenant, e.Name, state, now.Sub(engine.Duration(keep/time.Second)), expireBatch)
			if err != nil {
				return err
			}
			more = more || n == expireBatch
		}
		return nil
	})
	if err != nil || !more {
		e.nextExpiry = now.Add(expireEvery)
	}
	return err
}
