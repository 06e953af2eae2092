package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/ledger"
)

// patience bounds what a test waits for; nothing is expected to take a hundredth of it.
const patience = 30 * time.Second

func waitFor(t *testing.T, what string, signal <-chan struct{}) {
	t.Helper()
	select {
	case _, open := <-signal:
		if !open {
			t.Fatalf("%s: the channel is closed", what)
		}
	case <-time.After(patience):
		t.Fatalf("%s: no signal within %s", what, patience)
	}
}

func TestWakeIsToldByAnotherProcess(t *testing.T) {
	t.Parallel()
	url := migratedURL(t)
	sleeper, writer := open(t, url), open(t, url)
	ctx, cancel := context.WithCancel(t.Context())
	first, err := sleeper.Wake(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := sleeper.Wake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	queue := func(id string) {
		update(t, writer, func(ctx context.Context, tx ledger.Tx) error {
			_, err := tx.RecordActions(ctx, tenant, []ledger.NewAction{{Action: action(id, "order_1"), Verify: true}}, noon)
			return err
		})
	}
	queue("act_1")
	waitFor(t, "first sleeper", first)
	waitFor(t, "second sleeper", second)

	cancel()
	if _, open := <-first; open {
		t.Error("a sleeper that went away was told something")
	}
	queue("act_2")
	waitFor(t, "second sleeper, alone", second)

	// The listening connection breaks: what may have been missed is told, and then what is new.
	if _, err := connect(t, url).Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "after the connection broke", second)
	queue("act_3")
	waitFor(t, "over the new connection", second)
}

func TestWakeOfAClosedStoreFails(t *testing.T) {
	t.Parallel()
	store := open(t, migratedURL(t))
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Wake(t.Context()); !errors.Is(err, ledger.ErrUnavailable) || err.Error() != "store unavailable: the store is closed" {
		t.Errorf("%v", err)
	}
}
