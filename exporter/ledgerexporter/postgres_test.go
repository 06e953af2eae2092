package ledgerexporter

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
)

// TestOutageOfPostgreSQL: the server is down when the collector starts, comes
// up, crashes in the middle, and comes back; every action is there, once.
func TestOutageOfPostgreSQL(t *testing.T) {
	t.Parallel()
	const before, after = 20, 20
	server := pgserver.Start(t)
	url := server.Database(t)
	store := openStore(t, url)
	server.Stop(t)

	config := NewDefaultConfig()
	config.Store = opaque(url)
	config.RetryConfig.InitialInterval = 20 * time.Millisecond
	config.RetryConfig.MaxInterval = 100 * time.Millisecond
	e, err := NewFactory().CreateTraces(t.Context(), exportertest.NewNopSettings(metadata.Type), config)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{Host: componenttest.NewNopHost()}
	if err := e.Start(t.Context(), h); err != nil {
		t.Fatalf("a database that is down stops the collector: %v", err)
	}
	send := func(from, to int) {
		for i := from; i < to; i++ {
			if err := e.ConsumeTraces(t.Context(), spans(withAction(refund(i)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(0, before)
	server.Resume(t)
	waitForActions(t, store, before)
	server.Crash(t)
	send(before, before+after)
	server.Resume(t)
	waitForActions(t, store, before+after)
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	statuses := h.statuses()
	if len(statuses) < 2 || statuses[0] != componentstatus.StatusRecoverableError || statuses[len(statuses)-1] != componentstatus.StatusOK {
		t.Errorf("statuses %v", statuses)
	}
}

// waitForActions looks until the store has as many actions, or a minute is over.
func waitForActions(t *testing.T, store ledger.Ledger, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		found := 0
		err := store.View(ctx, func(tx ledger.Tx) error {
			page, err := tx.ListActions(ctx, engine.DefaultTenant, ledger.ActionFilter{Limit: 500})
			found = len(page.Actions)
			return err
		})
		if err == nil && found == want {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			t.Fatalf("%d of %d actions (%v)", found, want, err)
		}
	}
}
