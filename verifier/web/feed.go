package web

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// feed tells browsers which actions have a new verdict. It follows the chain of
// each tenant that somebody looks at, whoever stored the verdicts: one query a
// tenant when the store wakes it, this process stored something, or the poll is due.
type feed struct {
	store  ledger.Ledger
	poll   time.Duration
	logger *slog.Logger
	nudges chan struct{}
	closed chan struct{}

	mu        sync.Mutex
	listeners map[string]map[*listener]bool
	// heads are the chain positions up to which the listeners of a tenant were told.
	heads map[string]int64
	count int
}

// Bounds of the feed.
const (
	// mostListeners is how many browsers one process tells.
	mostListeners = 1000
	// chainBatch is how many verdicts one event names; a browser that missed more loads again all the same.
	chainBatch = 500
	// feedPause is the shortest time between two looks at the chain.
	feedPause = 50 * time.Millisecond
)

// listener is one browser. Events coalesce.
type listener struct {
	mu      sync.Mutex
	pending event
	ready   chan struct{}
}

// event says which actions have a new verdict up to a chain position.
type event struct {
	Seq    int64    `json:"seq"`
	Claims []string `json:"claims"`
	// More: others changed too, which are not named.
	More bool `json:"more"`
}

func newFeed(store ledger.Ledger, poll time.Duration, logger *slog.Logger) *feed {
	if poll <= 0 {
		poll = time.Second
	}
	return &feed{
		store: store, poll: poll, logger: logger, nudges: make(chan struct{}, 1), closed: make(chan struct{}),
		listeners: map[string]map[*listener]bool{}, heads: map[string]int64{},
	}
}

// nudge makes the feed look at once.
func (f *feed) nudge(string) {
	select {
	case f.nudges <- struct{}{}:
	default: // one is waiting already
	}
}

func (f *feed) run(ctx context.Context) error {
	defer close(f.closed)
	wake, err := f.store.Wake(ctx)
	if err != nil {
		return err
	}
	ticker := time.NewTicker(f.poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-wake:
			if !open {
				wake = nil
			}
		case <-f.nudges:
		case <-ticker.C:
		}
		for tenant, head := range f.followed() {
			if err := f.follow(ctx, tenant, head); err != nil && ctx.Err() == nil {
				f.logger.Warn("looking for new verdicts failed; trying again", "error", err)
			}
		}
		pause(ctx, feedPause)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (f *feed) followed() map[string]int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	heads := make(map[string]int64, len(f.listeners))
	for tenant := range f.listeners {
		heads[tenant] = f.heads[tenant]
	}
	return heads
}

// follow tells the listeners of a tenant what was stored after head.
func (f *feed) follow(ctx context.Context, tenant string, head int64) error {
	var newest int64
	var entries []ledger.ChainEntry
	err := f.store.View(ctx, func(tx ledger.Tx) (err error) {
		if newest, _, err = tx.ChainHead(ctx, tenant); err != nil || newest <= head {
			return err
		}
		entries, err = tx.ReadChain(ctx, tenant, max(head, newest-chainBatch), chainBatch)
		return err
	})
	if err != nil || newest <= head {
		return err
	}
	told := event{Seq: newest, More: newest-head > chainBatch}
	seen := map[string]bool{}
	for _, entry := range entries {
		if !seen[entry.ClaimID] {
			seen[entry.ClaimID] = true
			told.Claims = append(told.Claims, entry.ClaimID)
		}
	}
	f.tell(tenant, told)
	return nil
}

func (f *feed) tell(tenant string, told event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heads[tenant] = told.Seq
	for l := range f.listeners[tenant] {
		l.add(told)
	}
}

func (l *listener) add(told event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending.Seq = told.Seq
	l.pending.More = l.pending.More || told.More
	if len(l.pending.Claims) < chainBatch {
		l.pending.Claims = append(l.pending.Claims, told.Claims...)
	} else {
		l.pending.More = true
	}
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

func (l *listener) take() event {
	l.mu.Lock()
	defer l.mu.Unlock()
	told := l.pending
	l.pending = event{}
	return told
}

// join adds a listener; it must leave. The first one of a tenant begins where the chain ends now.
func (f *feed) join(ctx context.Context, tenant string) (*listener, int64, error) {
	var head int64
	err := f.store.View(ctx, func(tx ledger.Tx) (err error) {
		head, _, err = tx.ChainHead(ctx, tenant)
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.count >= mostListeners {
		return nil, 0, &failure{http.StatusServiceUnavailable, "Too many pages are open. Reload to see what is new."}
	}
	f.count++
	if f.listeners[tenant] == nil {
		f.listeners[tenant], f.heads[tenant] = map[*listener]bool{}, head
	}
	l := &listener{ready: make(chan struct{}, 1)}
	f.listeners[tenant][l] = true
	return l, head, nil
}

func (f *feed) leave(tenant string, l *listener) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count--
	delete(f.listeners[tenant], l)
	if len(f.listeners[tenant]) == 0 {
		delete(f.listeners, tenant)
		delete(f.heads, tenant)
	}
}

const (
	// heartbeat keeps proxies from closing a quiet connection; the session is looked at again then.
	heartbeat = 20 * time.Second
	// writeTimeout is how long a browser may take to read an event.
	writeTimeout = 10 * time.Second
)

// live serves server-sent events: one event "verdicts" per change.
func (p *Page) live(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	s, err := p.find(r)
	if err != nil {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	l, head, err := p.feed.join(r.Context(), s.Tenant)
	if err != nil {
		told := explained(err)
		http.Error(w, told.text, told.status)
		return
	}
	defer p.feed.leave(s.Tenant, l)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := &stream{w: w, control: http.NewResponseController(w)}
	_ = stream.control.SetReadDeadline(time.Time{}) // an open page is no slow client
	if r.Header.Get("Last-Event-ID") != "" {
		l.add(event{Seq: head, More: true}) // what happened meanwhile is not known
	}
	if !stream.send("retry: 2000\n\n") {
		return
	}
	p.stream(r, stream, l)
}

func (p *Page) stream(r *http.Request, out *stream, l *listener) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-r.Context().Done():
			return
		case <-p.feed.closed:
			return
		case <-beat.C:
			if _, err := p.find(r); err != nil || !out.send(": still here\n\n") {
				return
			}
		case <-l.ready:
			told := l.take()
			data, err := json.Marshal(told)
			if err != nil || !out.send(fmt.Sprintf("id: %d\nevent: verdicts\ndata: %s\n\n", told.Seq, data)) {
				return
			}
		}
	}
}

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) send(text string) bool {
	// Not every response writer has deadlines (tests); the server's own hold then.
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	if _, err := s.w.Write([]byte(text)); err != nil {
		return false
	}
	return s.control.Flush() == nil
}
