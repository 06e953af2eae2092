package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

const (
	// usesInterval is how late uses of keys may be stored.
	usesInterval = 10 * time.Second
	// mostUses is how many different uses of one tenant's keys are told apart
	// between two times of storing; those above are counted by key and kind alone.
	mostUses = 1000
	// mostUsesInAll bounds the memory when the store is away; what is above is lost.
	mostUsesInAll = 50_000
	// mostRefusals is how many refused keys are logged in a second.
	mostRefusals = 5
)

// Uses collects uses of keys and stores them in batches, so that no request
// writes for it: the last use of each key, and the audit log. Give Note to
// Options and run it.
type Uses struct {
	store  ledger.Ledger
	now    func() engine.Instant
	logger *slog.Logger

	mu     sync.Mutex
	last   map[useKey]engine.Instant
	events map[useID]ledger.KeyEvent
	// different counts events by tenant.
	different map[string]int
	lost      int
	// logged are the refusals of the second refusedAt.
	refusedAt          engine.Instant
	logged, suppressed int
}

type useKey struct{ tenant, id string }

// useID is what uses have to have in common to be counted as one.
type useID struct {
	tenant, kind, key, route, status, remote, detail string
	day                                              engine.Instant
}

// NewUses makes a collector over a store; logger may be nil.
func NewUses(store ledger.Ledger, now func() engine.Instant, logger *slog.Logger) *Uses {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Uses{
		store: store, now: now, logger: logger,
		last: map[useKey]engine.Instant{}, events: map[useID]ledger.KeyEvent{}, different: map[string]int{},
	}
}

// Note notes a use of a key. Refused ones are logged too, and only logged when
// the key is unknown: it belongs to no tenant.
func (u *Uses) Note(use keys.Use) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.now()
	kind := use.Kind()
	if kind != ledger.KeyUsed {
		u.logRefusal(use, now)
	}
	if use.Key.ID == "" {
		return
	}
	if kind == ledger.KeyUsed {
		u.last[useKey{use.Key.Tenant, use.Key.ID}] = now
	}
	u.count(use.Event(now))
}

// logRefusal tells of a key that was not good, a few times a second at most.
func (u *Uses) logRefusal(use keys.Use, now engine.Instant) {
	if now != u.refusedAt {
		u.refusedAt, u.logged = now, 0
	}
	if u.logged >= mostRefusals {
		u.suppressed++
		return
	}
	u.logged++
	event := use.Event(now)
	attributes := []any{"route", event.Route, "status", use.Status, "remote", event.Remote, "suppressed_before", u.suppressed}
	u.suppressed = 0
	if use.Key.ID == "" {
		u.logger.Warn("an unknown key was refused", attributes...)
		return
	}
	u.logger.Warn("a key was refused", append(attributes, "kind", event.Kind, "reason", event.Detail,
		"tenant", event.Tenant, "key_id", event.KeyID, "prefix", event.Prefix)...)
}

// count adds an event, as one of many when the tenant has had too many different ones.
func (u *Uses) count(event ledger.KeyEvent) {
	id := idOf(event)
	if _, known := u.events[id]; !known && u.different[event.Tenant] >= mostUses {
		event.Route, event.Status, event.Remote, event.Detail = "", "", "", "one of too many different uses to tell apart"
		id = idOf(event)
	}
	event.Times, event.LastAt = max(event.Times, 1), max(event.LastAt, event.FirstAt)
	counted, known := u.events[id]
	switch {
	case known:
		event.FirstAt, event.LastAt = min(event.FirstAt, counted.FirstAt), max(event.LastAt, counted.LastAt)
		event.Times += counted.Times
	case len(u.events) >= mostUsesInAll:
		u.lost += event.Times
		return
	default:
		u.different[event.Tenant]++
	}
	u.events[id] = event
}

func idOf(e ledger.KeyEvent) useID {
	return useID{e.Tenant, e.Kind, e.KeyID, e.Route, e.Status, e.Remote, e.Detail, e.FirstAt / engine.Instant(engine.Day)}
}

// Run stores uses now and then until ctx ends, and then what is left.
func (u *Uses) Run(ctx context.Context) error {
	ticker := time.NewTicker(usesInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			u.flush(context.WithoutCancel(ctx))
			return nil
		case <-ticker.C:
			u.flush(ctx)
		}
	}
}

// flush stores what was collected. What cannot be stored is kept for the next time; no request waits for it.
func (u *Uses) flush(ctx context.Context) {
	uses, events := u.take()
	if len(events) == 0 && len(uses) == 0 {
		return
	}
	err := u.store.Update(ctx, func(tx ledger.Tx) error {
		if err := tx.TouchKeys(ctx, uses); err != nil {
			return err
		}
		return tx.NoteKeyEvents(ctx, events)
	})
	if err == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, use := range uses {
		key := useKey{use.Tenant, use.ID}
		u.last[key] = max(u.last[key], use.At)
	}
	for _, event := range events {
		u.count(event)
	}
	u.logger.Warn("uses of keys could not be stored; it is tried again", "error", err, "uses", len(events), "lost", u.lost)
}

func (u *Uses) take() (uses []ledger.KeyUse, events []ledger.KeyEvent) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, at := range u.last {
		uses = append(uses, ledger.KeyUse{Tenant: key.tenant, ID: key.id, At: at})
	}
	for _, event := range u.events {
		events = append(events, event)
	}
	clear(u.last)
	clear(u.events)
	clear(u.different)
	return uses, events
}
