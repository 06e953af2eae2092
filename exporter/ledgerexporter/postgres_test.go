package ledgerexporter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/exporter/ledgerexporter/internal/metadata"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
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
			if err := e.ConsumeTraces(t.Context(), given(spans(withAction(refund(i))))); err != nil {
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

// TestPoisonInPostgreSQL: what the database refuses for a reason of its own is
// told by SQLSTATE from what passes, kept with its words, and holds up nothing.
func TestPoisonInPostgreSQL(t *testing.T) {
	t.Parallel()
	url := pgserver.Start(t).Database(t)
	store := openStore(t, url)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	if _, err := conn.Exec(t.Context(), `ALTER TABLE facts ADD CONSTRAINT of_an_operator CHECK (raw_ref <> 're_13')`); err != nil {
		t.Fatal(err)
	}
	config := NewDefaultConfig()
	config.Store = opaque(url)
	evidenceOf("stripe")(config)
	w := newTestWriter(t, componenttest.NewNopTelemetrySettings(), config, open.Ledger)
	var items []func(ptrace.Span)
	for i := range 40 {
		items = append(items, refund1(fmt.Sprintf("re_%d", i), `{"amount": 1}`))
	}
	for range 2 {
		if err := w.traces(t.Context(), spans(items...)); err != nil {
			t.Fatal(err)
		}
	}
	got, found := rejectedLines(t, store, engine.DefaultTenant)
	if diff := cmp.Diff([]string{"fact stripe hook store re_13 xx"}, got); diff != "" || !strings.Contains(found[0].Error, "of_an_operator") {
		t.Errorf("%v (-want +got):\n%s", found, diff)
	}
	var refs []string
	for i := range 40 {
		refs = append(refs, fmt.Sprintf("re_%d", i))
	}
	if stored := factRefs(t, store, refs...); len(stored) != 39 {
		t.Errorf("%d facts: %v", len(stored), stored)
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
