package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/pgserver"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/open"
)

// TestBenchLedger: one line of figures, and nothing stays of the facts.
func TestBenchLedger(t *testing.T) {
	t.Parallel()
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		checkBench(t, migrated(t), "sqlite")
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := pgserver.Start(t).Database(t)
		if code, _, stderr := command(t, "migrate", "--store", url); code != exitDone {
			t.Fatal(stderr)
		}
		checkBench(t, url, "postgres")
	})
}

func checkBench(t *testing.T, store, dialect string) {
	t.Helper()
	code, stdout, stderr := command(t, "bench", "ledger", "--store", store, "--facts", "250", "--batch", "100", "--writers", "2", "-o", "json")
	if code != exitDone || stderr != "" || strings.Count(stdout, "\n") != 1 {
		t.Fatalf("exit code %d, %q, %q, want one line", code, stdout, stderr)
	}
	var got benchView
	decode(t, stdout, &got)
	if got.New <= 0 || got.Redelivered <= 0 {
		t.Errorf("figures %+v", got)
	}
	tenant := got.Tenant
	got.New, got.Redelivered, got.Tenant = 0, 0, ""
	if diff := cmp.Diff(benchView{Bench: "ledger", Dialect: dialect, Facts: 250, Batch: 100, Writers: 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	opened, err := open.Ledger(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	err = opened.View(t.Context(), func(tx ledger.Tx) error {
		facts, err := tx.RecentFacts(t.Context(), tenant, 0, 10)
		if len(facts) > 0 {
			t.Errorf("%d facts of the bench are still there", len(facts))
		}
		var dropped ledger.Dropped
		if err == nil {
			dropped, err = tx.Dropped(t.Context(), tenant)
		}
		if dropped.Facts != 250 {
			t.Errorf("retention dropped %d facts of the bench, want 250", dropped.Facts)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := opened.Close(); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(tenant, "bench_") || tenant == engine.DefaultTenant {
		t.Errorf("tenant %q", tenant)
	}
}

func TestBenchLedgerForPeople(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := command(t, "bench", "ledger", "--store", memoryStore, "--facts", "10", "--batch", "4")
	if code != exitDone || stderr != "" || !strings.HasPrefix(stdout, "sqlite, 10 facts, 4 a transaction, 1 writing: ") {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
	for _, args := range [][]string{{"--facts", "0"}, {"--batch", "0"}, {"--writers", "1001"}} {
		if code, _, _ := command(t, append([]string{"bench", "ledger", "--store", memoryStore}, args...)...); code != exitUsage {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
	}
}
