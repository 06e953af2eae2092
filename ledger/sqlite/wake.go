package sqlite

import (
	"context"
	"sync"
	"time"
)

// pollEvery is how often the file is asked whether another process wrote it:
// PRAGMA data_version reads a counter in shared memory and takes no lock.
const pollEvery = 50 * time.Millisecond

// wakes tells sleepers that something was committed.
type wakes struct {
	store *Store

	mu       sync.Mutex
	sleepers map[chan struct{}]struct{}
	// stop ends the poller; nil while nobody sleeps.
	stop    context.CancelFunc
	pollers sync.WaitGroup
	closed  bool
}

func newWakes(s *Store) *wakes { return &wakes{store: s, sleepers: map[chan struct{}]struct{}{}} }

// Wake implements ledger.Ledger. A commit of this process that made work is
// told at once; any commit of another process within pollEvery.
func (s *Store) Wake(ctx context.Context) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.wakes.add(ctx)
}

func (w *wakes) add(ctx context.Context) (<-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, describe(w.store.path, "wake", errClosed)
	}
	sleeper := make(chan struct{}, 1)
	w.sleepers[sleeper] = struct{}{}
	context.AfterFunc(ctx, func() { w.remove(sleeper) })
	if w.stop == nil && w.store.path != memoryPath {
		polling, stop := context.WithCancel(context.Background())
		w.stop = stop
		w.pollers.Go(func() { w.poll(polling) })
	}
	return sleeper, nil
}

func (w *wakes) remove(sleeper chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.sleepers[sleeper]; !ok {
		return
	}
	delete(w.sleepers, sleeper)
	close(sleeper)
	if len(w.sleepers) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// tell wakes all sleepers; one that was told already is not told twice.
func (w *wakes) tell() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for sleeper := range w.sleepers {
		select {
		case sleeper <- struct{}{}:
		default:
		}
	}
}

func (w *wakes) close() {
	w.mu.Lock()
	w.closed = true
	for sleeper := range w.sleepers {
		delete(w.sleepers, sleeper)
		close(sleeper)
	}
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.mu.Unlock()
	w.pollers.Wait()
}

// poll watches the file on a connection of its own, which sees the commits of
// all others. Where that fails it tries again: sleepers poll, too.
func (w *wakes) poll(ctx context.Context) {
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for ctx.Err() == nil {
		c, err := w.store.connect(ctx, "PRAGMA query_only = 1")
		if err == nil {
			w.watch(ctx, c, ticker.C)
			_ = c.close()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

func (w *wakes) watch(ctx context.Context, c *connection, tick <-chan time.Time) {
	statement, err := c.prepare(ctx, "PRAGMA data_version")
	if err != nil {
		return
	}
	// The first answer counts as news: what was committed while nobody watched.
	for seen := int64(-1); ; {
		var version int64
		if err := statement.QueryRowContext(ctx).Scan(&version); err != nil {
			return
		}
		if version != seen {
			w.tell()
		}
		seen = version
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
	}
}
