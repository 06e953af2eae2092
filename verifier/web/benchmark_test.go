package web

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/ledger/sqlite"
)

var (
	benchmarkActions = flag.Int("actions", 2000, "how many actions BenchmarkFirstPaint stores first; a million takes minutes to store")
	benchmarkStore   = flag.String("store", "", "SQLite file of BenchmarkFirstPaint, kept and taken again as it is; by default a temporary one")
)

// BenchmarkFirstPaint measures how long the page takes to answer over many
// actions of thirty days in a SQLite file: whole-ms with every count in it,
// which a browser gets by looking again; first-ms with nothing counted yet, as
// after a start; then again and again.
func BenchmarkFirstPaint(b *testing.B) {
	f := newFixtureWith(b, Config{Patience: defaultPatience}).library()
	path := *benchmarkStore
	if path == "" {
		path = filepath.Join(b.TempDir(), "countersign.db")
	}
	_, missing := os.Stat(path)
	store, err := sqlite.Open(b.Context(), path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	if err := store.Migrate(b.Context()); err != nil {
		b.Fatal(err)
	}
	f.store, f.page.Ledger = store, store
	f.update(func(tx ledger.Tx) error { return tx.CreateKey(b.Context(), f.keys[ledger.RoleViewer]) })
	if missing != nil {
		f.library()
		f.fill(b, *benchmarkActions)
	}
	handler := f.page.Handler(http.NotFoundHandler())
	one := engine.ClaimID(acme, "act_0000000")
	for _, path := range []string{"/", "/?range=30d", "/actions", "/actions?verdict=FAIL", "/actions?agent_id=agent_3", "/actions/" + one, "/contracts", "/contracts/refund_workflow", "/sources", "/orphans"} {
		b.Run(path, func(b *testing.B) {
			anew := func(patience time.Duration) {
				f.page.figures.close()
				f.page.figures = newFigures(patience)
			}
			anew(time.Minute)
			whole := f.timed(b, handler, path)
			anew(0)
			first := f.timed(b, handler, path)
			b.ResetTimer()
			for b.Loop() {
				f.timed(b, handler, path)
			}
			b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
			b.ReportMetric(float64(whole.Microseconds())/1000, "whole-ms")
		})
	}
}

// timed answers one request as somebody who is signed in.
func (f *fixture) timed(b *testing.B, handler http.Handler, path string) time.Duration {
	b.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	value, err := seal(ticket{acme, f.keys[ledger.RoleViewer].ID, f.now() + 3600}, f.keys[ledger.RoleViewer].Hash)
	if err != nil {
		b.Fatal(err)
	}
	request.AddCookie(&http.Cookie{Name: "countersign-session", Value: value})
	answer := httptest.NewRecorder()
	started := time.Now()
	handler.ServeHTTP(answer, request)
	took := time.Since(started)
	if answer.Code != http.StatusOK {
		b.Fatalf("%s: %d %s", path, answer.Code, answer.Body)
	}
	return took
}

// fill stores actions with verdicts, evenly over thirty days; one of twenty failed.
func (f *fixture) fill(b *testing.B, n int) {
	b.Helper()
	ctx := context.Background()
	now := f.now()
	const batch = 5000
	for from := 0; from < n; from += batch {
		items := make([]ledger.RecordRequest, 0, batch)
		runs := make([]ledger.Run, 0, batch)
		for i := from; i < min(from+batch, n); i++ {
			at := now - engine.Instant(30*86400*float64(n-i)/float64(n))
			a := refund(fmt.Sprintf("act_%07d", i), fmt.Sprintf("order_%d", i), at, "10")
			a.AgentID = fmt.Sprintf("agent_%d", i%12)
			items = append(items, ledger.RecordRequest{Action: a})
			runs = append(runs, finishedRun(a, i%20 == 0))
		}
		f.update(func(tx ledger.Tx) error {
			if _, err := ledger.Record(ctx, tx, acme, items, now); err != nil {
				return err
			}
			_, err := tx.StoreRuns(ctx, acme, runs)
			return err
		})
	}
	facts := refundFacts("order_0", now-30*86400, "10")
	f.ingest(acme, ledger.FactBatch{Facts: facts})
}

func finishedRun(a engine.Action, failed bool) ledger.Run {
	run := ledger.Run{
		ClaimID: engine.ClaimID(acme, a.ActionID), Contract: ledger.ContractRef{ID: a.ContractID, Version: 1},
		ComputedAt: a.RequestedAt + 60, TriggeredBy: "action", Status: ledger.Settled,
		Headline: "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected",
		Report:   json.RawMessage(`{"checks":[],"summary":{"headline":"","evidence_trust":"shared"},"settlement":{"settles_at":"2026-09-28T10:42:00Z","next_check_at":null,"waiting_on":[],"stale_sources":[]},"sources":[],"reversal":null}`),
	}
	raw, reasons := engine.Verified, []string{"effect_observed:stripe.refund_created", "effect_observed:shopify.order_cancelled"}
	if failed {
		run.Headline = "FAIL — Customer was not notified"
		raw, reasons = engine.NotVerified, []string{"verified_condition_not_met", "expected_effect_missing:messaging.customer_notified"}
	}
	for lens, verdict := range map[string]*ledger.StoredVerdict{"outcome": &run.Outcome, "policy": &run.Policy} {
		verdict.Raw, verdict.Reasons = raw, reasons
		verdict.Document = fmt.Sprintf(`{"action":{"action_id":%q,"agent_id":%q,"params":%q,"requested_at":%q,"subject_id":%q},"lens":%q}`,
			a.ActionID, a.AgentID, a.Params.Canonical(), a.RequestedAt, a.SubjectID, lens)
		verdict.Hash = sha256.Sum256([]byte(verdict.Document))
	}
	return run
}
