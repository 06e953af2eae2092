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
// waiters of a tenant (a thousand of them at most).
type Hub struct {
	store  ledger.Ledger
	poll   time.Duration
	logger *slog.Logger

	// opened is told which gates have opened: their answers are looked up then.
	opened func([]*gate)

	mu      sync.Mutex
	gates   map[gateKey]*gate
	closed  chan struct{}
	held    int           // calls that wait with only their connection
	drained chan struct{} // closed when nobody is held any more; nil unless somebody asks
}

type gateKey struct{ tenant, claimID string }

// gate is what waiters on one action share. It opens once.
type gate struct {
	key     gateKey
	answer  *answerTo
	waiters int
	// held are those of the waiters that are to be woken; each knows its place.
	held []*held
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
	var keys []gateKey
	for i := range runs {
		if runs[i].Status == ledger.Settled {
			keys = append(keys, gateKey{tenant, runs[i].ClaimID})
		}
	}
	h.open(keys)
}

// open forgets gates: who comes later reads the store. Those who wait are let go
// with what is read now.
func (h *Hub) open(keys []gateKey) {
	var opened []*gate
	h.mu.Lock()
	for _, key := range keys {
		if g, ok := h.gates[key]; ok {
			delete(h.gates, key)
			opened = append(opened, g)
		}
	}
	h.mu.Unlock()
	if len(opened) > 0 {
		h.opened(opened)
	}
}

// join adds a waiter; it must leave.
func (h *Hub) join(key gateKey) *gate {
	h.mu.Lock()
	defer h.mu.Unlock()
	g, ok := h.gates[key]
	if !ok {
		g = &gate{key: key}
		g.answer = newAnswerTo(g)
		h.gates[key] = g
	}
	g.waiters++
	return g
}

func (h *Hub) leave(g *gate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g.waiters--
	if g.waiters == 0 && h.gates[g.key] == g {
		delete(h.gates, g.key)
	}
}

// take lets a call be held, unless the hub has ended.
func (h *Hub) take() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended() {
		return false
	}
	h.held++
	return true
}

// drop ends what take began.
func (h *Hub) drop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held--
	if h.held == 0 && h.drained != nil {
		close(h.drained)
		h.drained = nil
	}
}

// Drain waits until all whom Run let go when it ended have been answered, or ctx ends.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if h.held == 0 {
		h.mu.Unlock()
		return nil
	}
	if h.drained == nil {
		h.drained = make(chan struct{})
	}
	drained := h.drained
	h.mu.Unlock()
	select {
	case <-drained:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enlist says that a call is to be woken when its gate's answer is ready; false
// when nobody would wake it any more.
func (h *Hub) enlist(d *held) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.gate.answer.isReady() || h.ended() {
		return false
	}
	d.place = len(d.gate.held)
	d.gate.held = append(d.gate.held, d)
	return true
}

func (h *Hub) delist(d *held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := d.gate.held
	if d.place >= len(all) || all[d.place] != d {
		return
	}
	last := len(all) - 1
	all[d.place] = all[last]
	all[d.place].place = d.place
	all[last] = nil
	d.gate.held = all[:last]
}

// wake wakes those who are held at gates whose answers are ready.
func (h *Hub) wake(gates []*gate) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, g := range gates {
		for _, d := range g.held {
			d.wake()
		}
		g.held = nil
	}
}

// end lets all go.
func (h *Hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.closed)
	for _, g := range h.gates {
		for _, d := range g.held {
			d.wake()
		}
	}
}

// Run looks for verdicts that other processes stored, until ctx ends; then it
// lets all waiters go with what is known. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	defer h.end()
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
	keys := make([]gateKey, len(settled))
	for i, claim := range settled {
		keys[i] = gateKey{tenant, claim}
	}
	h.open(keys)
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
