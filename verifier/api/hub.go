package api

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// Hub holds those who wait for verdicts to settle. Waiters on one action share
// a gate; runs that this process stored open it at once, and those of other
// processes when the store wakes or at the next poll, with one query for all
// waiters of a tenant.
type Hub struct {
	store  ledger.Ledger
	poll   time.Duration
	logger *slog.Logger

	mu     sync.Mutex
	gates  map[gateKey]*gate
	closed chan struct{}
}

type gateKey struct{ tenant, claimID string }

type gate struct {
	open    chan struct{}
	waiters int
}

// Bounds of a scan for verdicts that other processes stored.
const (
	// defaultPoll bounds how late a missed wake-up is noticed.
	defaultPoll = time.Second
	// scanPause is the shortest time between two scans; scanShare keeps the
	// scans of many waiters below a tenth of the time, down to one per poll.
	scanPause = 25 * time.Millisecond
	scanShare = 10
	// scanBatch is how many actions one query asks for.
	scanBatch = 1000
)

// NewHub makes a hub over a store. Poll below 1 means one second; logger may be nil.
func NewHub(store ledger.Ledger, poll time.Duration, logger *slog.Logger) *Hub {
	if poll <= 0 {
		poll = defaultPoll
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Hub{store: store, poll: poll, logger: logger, gates: map[gateKey]*gate{}, closed: make(chan struct{})}
}

// Waiters is how many calls wait now.
func (h *Hub) Waiters() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, g := range h.gates {
		n += g.waiters
	}
	return n
}

// Stored opens the gates of runs that settled. Give it to settle.Config.OnStored.
func (h *Hub) Stored(tenant string, runs []ledger.Run) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range runs {
		if runs[i].Status == ledger.Settled {
			h.open(gateKey{tenant, runs[i].ClaimID})
		}
	}
}

// open needs the lock. A gate that is open is forgotten: who comes later reads the store.
func (h *Hub) open(key gateKey) {
	if g, ok := h.gates[key]; ok {
		close(g.open)
		delete(h.gates, key)
	}
}

// join adds a waiter; it must leave.
func (h *Hub) join(tenant, claimID string) (*gate, gateKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	key := gateKey{tenant, claimID}
	g, ok := h.gates[key]
	if !ok {
		g = &gate{open: make(chan struct{})}
		h.gates[key] = g
	}
	g.waiters++
	return g, key
}

func (h *Hub) leave(key gateKey, g *gate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g.waiters--
	if g.waiters == 0 && h.gates[key] == g {
		delete(h.gates, key)
	}
}

// Run looks for verdicts that other processes stored, until ctx ends; then it
// lets all waiters go with what is known. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	defer close(h.closed)
	wake, err := h.store.Wake(ctx)
	if err != nil {
		return err
	}
	for {
		timer := time.NewTimer(h.poll)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case _, open := <-wake:
			if !open {
				wake = nil
			}
		case <-timer.C:
		}
		timer.Stop()
		started := time.Now()
		if err := h.scan(ctx); err != nil && ctx.Err() == nil {
			h.logger.Warn("looking for settled verdicts failed; trying again", "error", err)
		}
		rest(ctx, min(max(scanPause, scanShare*time.Since(started)), h.poll))
	}
}

// ended says that waiters are let go.
func (h *Hub) ended() bool {
	select {
	case <-h.closed:
		return true
	default:
		return false
	}
}

func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// scan opens the gates of actions whose latest run is settled.
func (h *Hub) scan(ctx context.Context) error {
	for tenant, claims := range h.waitedFor() {
		for len(claims) > 0 {
			n := min(scanBatch, len(claims))
			if err := h.scanBatch(ctx, tenant, claims[:n]); err != nil {
				return err
			}
			claims = claims[n:]
		}
	}
	return nil
}

func (h *Hub) scanBatch(ctx context.Context, tenant string, claims []string) error {
	var settled []string
	err := h.store.View(ctx, func(tx ledger.Tx) (err error) {
		settled, err = tx.SettledClaims(ctx, tenant, claims)
		return err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, claim := range settled {
		h.open(gateKey{tenant, claim})
	}
	return nil
}

func (h *Hub) waitedFor() map[string][]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	claims := map[string][]string{}
	for key := range h.gates {
		claims[key.tenant] = append(claims[key.tenant], key.claimID)
	}
	return claims
}
