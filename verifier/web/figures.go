package web

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// Counting a million actions takes longer than a page may. figures counts
// outside of requests: a page waits patience for a count, and shows what is
// known when it takes longer. A count is shown as fresh for countShare times as
// long as it took, so that counting never takes more than that part of the time.
const (
	defaultPatience = 30 * time.Millisecond
	countShare      = 20
	// countTimeout ends a count that nobody would wait for.
	countTimeout = 2 * time.Minute
	// countsKept is how many counts are remembered, countsAtOnce how many run at the same time.
	countsKept   = 256
	countsAtOnce = 2
)

type figures struct {
	patience time.Duration
	ctx      context.Context
	cancel   context.CancelFunc
	slots    chan struct{}
	going    sync.WaitGroup

	mu    sync.Mutex
	known *lru.Cache[string, *figure]
}

// figure is one count. done is not nil while it is counted again.
type figure struct {
	value any
	err   error
	at    time.Time
	cost  time.Duration
	done  chan struct{}
}

func newFigures(patience time.Duration) *figures {
	if patience <= 0 {
		patience = defaultPatience
	}
	known, err := lru.New[string, *figure](countsKept)
	if err != nil {
		panic(err) // only for a size below 1
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &figures{patience: patience, ctx: ctx, cancel: cancel, slots: make(chan struct{}, countsAtOnce), known: known}
}

func (f *figures) close() {
	f.cancel()
	f.going.Wait()
}

// counted is a count for a page.
type counted[T any] struct {
	Value T
	// Known is false while the first count is under way; Stale while a newer one is.
	Known, Stale bool
}

// count returns what is known under a key, counting where that is old. The key
// must name everything that compute depends on, the tenant first. It fails only
// while nothing is known.
func count[T any](f *figures, key string, compute func(context.Context) (T, error)) (counted[T], error) {
	found, done := f.begin(key, func(ctx context.Context) (any, error) { return compute(ctx) })
	if done != nil {
		timer := time.NewTimer(f.patience)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	value, known := found.value.(T)
	if found.err != nil && found.done == nil && !known {
		return counted[T]{}, found.err
	}
	return counted[T]{Value: value, Known: known, Stale: known && (found.done != nil || found.err != nil)}, nil
}

// begin starts a count unless one is fresh or under way.
func (f *figures) begin(key string, compute func(context.Context) (any, error)) (*figure, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.known.Get(key)
	if !ok {
		found = &figure{}
		f.known.Add(key, found)
	}
	if found.done != nil || (found.err == nil && found.value != nil && time.Since(found.at) < countShare*found.cost) || f.ctx.Err() != nil {
		return found, found.done
	}
	done := make(chan struct{})
	found.done = done
	f.going.Go(func() { f.compute(found, compute) })
	return found, done
}

func (f *figures) compute(found *figure, compute func(context.Context) (any, error)) {
	ctx, cancel := context.WithTimeout(f.ctx, countTimeout)
	defer cancel()
	value, cost, err := f.timed(ctx, compute)
	f.mu.Lock()
	defer f.mu.Unlock()
	found.at, found.cost, found.err = time.Now(), cost, err
	if err == nil {
		found.value = value
	}
	close(found.done)
	found.done = nil
}

func (f *figures) timed(ctx context.Context, compute func(context.Context) (any, error)) (any, time.Duration, error) {
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-ctx.Done():
		return nil, 0, ctx.Err()
	}
	started := time.Now()
	value, err := compute(ctx)
	return value, time.Since(started), err
}
