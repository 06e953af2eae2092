package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

// TestWritersTakeTurns: a process that writes without a pause does not keep
// another one out. Two stores on one file queue up as two processes do.
func TestWritersTakeTurns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "countersign.db")
	var stores []ledger.Ledger
	for range 2 {
		store, err := sqlite.Open(t.Context(), path)
		stores = append(stores, migrated(t, store, err))
	}
	greedy, modest := stores[0], stores[1]
	write := func(ctx context.Context, store ledger.Ledger, batch int) error {
		return store.Update(ctx, func(tx ledger.Tx) error { return writeBatch(ctx, tx, batch) })
	}
	ctx, stop := context.WithCancel(t.Context())
	var taken atomic.Int64
	started, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for batch := 0; ; batch++ {
			if err := write(ctx, greedy, 1_000_000+batch); err != nil {
				ended <- err
				return
			}
			if taken.Add(1) == 1 {
				close(started)
			}
		}
	}()
	select {
	case <-started:
	case err := <-ended:
		t.Fatal(err)
	}
	const turns = 30
	for batch := range turns {
		if err := write(t.Context(), modest, batch); err != nil {
			t.Errorf("turn %d, after %d of the greedy one: %v", batch, taken.Load(), err)
			break
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the greedy one: %v", err)
	}
	// One turn each, and some more or fewer where this machine is busy.
	if n := taken.Load(); n < turns/4 || n > turns*4 {
		t.Errorf("the greedy one had %d turns for %d of the modest one", n, turns)
	}
}
