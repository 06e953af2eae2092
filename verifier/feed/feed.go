// Package feed tells those who listen what happened to a tenant's actions. It
// follows the durable sequence of events (ledger.Events), whoever stored them:
// one query a tenant and batch for all listeners of this process. The newest
// events are kept in memory once for all; a listener is only a place in the
// sequence, so that a slow one costs nothing but its connection.
package feed

import (
	"context"
	"errors"
	"log/slog"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// Errors of Join and Read.
var (
	// ErrFull: so many listen already that no other one is let in.
	ErrFull = errors.New("too many listeners")
	// ErrKeyFull: so many listen with this key that others would find no place.
	ErrKeyFull = errors.New("too many listeners with one key")
	// ErrAhead: the position is beyond what the store has, for example because it was restored from an older copy.
	ErrAhead = errors.New("position is ahead of the store")
	// ErrClosed: the feed has ended.
	ErrClosed = errors.New("feed has ended")
)

// Bounds of a feed.
const (
	// MostReaders is how many listen to one process.
	MostReaders = 2000
	// MostOfKey is how many of them use one key.
	MostOfKey = MostReaders / 4
	// pageSize is how many runs one query reads.
	pageSize = 500
	// kept is how many of a tenant's newest events are held in memory, at least, once there were so many.
	kept = 4096
	// restTime is the shortest time between two looks at the store.
	restTime = 20 * time.Millisecond
	// catchUps is how many listeners who were away read at once what they missed.
	catchUps = 4
	// catchUpsOfKey is how many of them use one key.
	catchUpsOfKey = catchUps / 2
)

// Feed follows the events of the tenants that somebody listens to. Run it once.
type Feed struct {
	store  ledger.Ledger
	poll   time.Duration
	logger *slog.Logger
	nudges chan struct{}
	closed chan struct{}
	behind chan struct{} // one place per catch-up

	mu      sync.Mutex
	tails   map[string]*tail
	users   map[user]*usage
	readers int
	reads   atomic.Int64
}

// user is one key of a tenant.
type user struct{ tenant, key string }

// usage is what the listeners of one key hold.
type usage struct {
	readers int
	behind  chan struct{} // one place per catch-up
}

// tail is the end of one tenant's sequence.
type tail struct {
	readers int
	// events are all after base, up to head. What stands here is never changed.
	events     []ledger.Event
	base, head ledger.Position
	// changed is closed when events are added.
	changed chan struct{}
}

// New makes a feed over a store. Poll, which bounds how late a missed wake-up
// is noticed, is one second when it is below 1; logger may be nil.
func New(store ledger.Ledger, poll time.Duration, logger *slog.Logger) *Feed {
	if poll <= 0 {
		poll = time.Second
	}
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Feed{
		store: store, poll: poll, logger: logger, nudges: make(chan struct{}, 1), closed: make(chan struct{}),
		behind: make(chan struct{}, catchUps), tails: map[string]*tail{}, users: map[user]*usage{},
	}
}

// Nudge makes the feed look at once.
func (f *Feed) Nudge() {
	select {
	case f.nudges <- struct{}{}:
	default: // one is waiting already
	}
}

// Closed is closed when Run has ended: listeners should go.
func (f *Feed) Closed() <-chan struct{} { return f.closed }

// Readers is how many listen now.
func (f *Feed) Readers() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readers
}

// Reads is how many pages of events were read from the store, for all listeners.
func (f *Feed) Reads() int64 { return f.reads.Load() }

// Run follows until ctx ends.
func (f *Feed) Run(ctx context.Context) error {
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
				f.logger.Warn("looking for new events failed; trying again", "tenant", tenant, "error", err)
			}
		}
		rest(ctx, restTime)
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

func (f *Feed) followed() map[string]ledger.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	heads := make(map[string]ledger.Position, len(f.tails))
	for tenant, t := range f.tails {
		heads[tenant] = t.head
	}
	return heads
}

// follow reads what was stored after head.
func (f *Feed) follow(ctx context.Context, tenant string, head ledger.Position) error {
	for {
		page, err := f.read(ctx, tenant, head)
		if err != nil {
			return err
		}
		f.add(tenant, head, page)
		if !page.More {
			return nil
		}
		head = page.Next
	}
}

func (f *Feed) read(ctx context.Context, tenant string, after ledger.Position) (page ledger.EventPage, err error) {
	f.reads.Add(1)
	err = f.store.View(ctx, func(tx ledger.Tx) (err error) {
		page, err = tx.ReadEvents(ctx, tenant, after, pageSize)
		return err
	})
	return page, err
}

// add appends a page that was read after a head. The tail may have begun anew
// meanwhile, somewhere else.
func (f *Feed) add(tenant string, head ledger.Position, page ledger.EventPage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.tails[tenant]
	if t == nil || t.head != head || len(page.Events) == 0 {
		return
	}
	t.events = append(t.events, page.Events...)
	t.head = page.Next
	if over := len(t.events) - kept; over > kept {
		t.base = t.events[over-1].Position
		t.events = append([]ledger.Event(nil), t.events[over:]...)
	}
	close(t.changed)
	t.changed = make(chan struct{})
}

// Reader is one listener. It is not safe for concurrent use. Close it.
type Reader struct {
	feed  *Feed
	user  user
	usage *usage
	tail  *tail
	at    ledger.Position
}

// Join adds a listener that begins after a position, or at the end when it is
// nil. Key is the id of the key that it listens with. It fails with ErrFull,
// with ErrKeyFull, with ErrAhead, or with the store's error.
func (f *Feed) Join(ctx context.Context, tenant, key string, after *ledger.Position) (*Reader, error) {
	who := user{tenant, key}
	r, known, err := f.join(who, ledger.Position{}, false)
	if err != nil {
		return nil, err
	}
	if !known || after != nil && after.Compare(r.at) > 0 {
		var head ledger.Position
		err := f.store.View(ctx, func(tx ledger.Tx) (err error) {
			head, err = tx.EventHead(ctx, tenant)
			return err
		})
		if err == nil && after != nil && after.Compare(head) > 0 {
			err = ErrAhead
		}
		if err != nil {
			r.Close()
			return nil, err
		}
		if !known {
			if r, _, err = f.join(who, head, true); err != nil {
				return nil, err
			}
		}
	}
	if after != nil {
		r.at = *after
	}
	return r, nil
}

// join adds a reader to a known tail, or begins one at head when told to.
func (f *Feed) join(who user, head ledger.Position, begin bool) (r *Reader, known bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	used := f.users[who]
	switch {
	case f.readers >= MostReaders:
		return nil, false, ErrFull
	case used != nil && used.readers >= MostOfKey:
		return nil, false, ErrKeyFull
	}
	t, known := f.tails[who.tenant]
	if !known {
		if !begin {
			return &Reader{}, false, nil
		}
		t = &tail{base: head, head: head, changed: make(chan struct{})}
		f.tails[who.tenant] = t
	}
	if used == nil {
		used = &usage{behind: make(chan struct{}, catchUpsOfKey)}
		f.users[who] = used
	}
	f.readers++
	t.readers++
	used.readers++
	return &Reader{feed: f, user: who, usage: used, tail: t, at: t.head}, true, nil
}

// Close ends the listening.
func (r *Reader) Close() {
	if r.feed == nil {
		return
	}
	f := r.feed
	r.feed = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readers--
	r.tail.readers--
	if r.tail.readers == 0 {
		delete(f.tails, r.user.tenant)
	}
	r.usage.readers--
	if r.usage.readers == 0 {
		delete(f.users, r.user)
	}
}

// At is the position up to which the reader has read.
func (r *Reader) At() ledger.Position { return r.at }

// Read returns the next events, which belong to all listeners: they must not be
// changed. When there are none, changed is closed once there are. It fails with
// ErrClosed or the store's error.
func (r *Reader) Read(ctx context.Context) (events []ledger.Event, changed <-chan struct{}, err error) {
	select {
	case <-r.feed.closed:
		return nil, nil, ErrClosed
	default:
	}
	events, changed, base := r.recent()
	if r.at.Compare(base) >= 0 {
		if len(events) > 0 {
			r.at = events[len(events)-1].Position
		}
		return events, changed, nil
	}
	page, err := r.catchUp(ctx)
	if err != nil {
		return nil, nil, err
	}
	r.at = page.Next
	// All that the store had when memory began has been read: without this a
	// reader that resumes at the last event, before the end where memory begins,
	// would ask the store again and again.
	if !page.More && r.at.Compare(base) < 0 {
		r.at = base
	}
	return page.Events, alwaysClosed, nil
}

var alwaysClosed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// recent are events that are held in memory: none when the reader's place is before base, where memory begins.
func (r *Reader) recent() (events []ledger.Event, changed <-chan struct{}, base ledger.Position) {
	r.feed.mu.Lock()
	defer r.feed.mu.Unlock()
	t := r.tail
	if r.at.Compare(t.base) < 0 {
		return nil, nil, t.base
	}
	from := sort.Search(len(t.events), func(i int) bool { return t.events[i].Compare(r.at) > 0 })
	to := min(from+pageSize, len(t.events))
	return t.events[from:to:to], t.changed, t.base
}

// catchUp waits for a place of its own key first: however many listeners of one
// key are behind, those of another wait for a few of them at most.
func (r *Reader) catchUp(ctx context.Context) (ledger.EventPage, error) {
	for _, places := range []chan struct{}{r.usage.behind, r.feed.behind} {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-r.feed.closed:
			return ledger.EventPage{}, ErrClosed
		case <-ctx.Done():
			return ledger.EventPage{}, ctx.Err()
		}
	}
	return r.feed.read(ctx, r.user.tenant, r.at)
}
