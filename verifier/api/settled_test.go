package api

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

// TestWatermarksOfTimesToComeAreRejected: they could never be taken back, and
// would settle verdicts without what is still to come.
func TestWatermarksOfTimesToComeAreRejected(t *testing.T) {
	t.Parallel()
	f := newFixture(t) // at 10:50
	var pushed Pushed
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", `{"watermarks": {
		"stripe": "9999-12-31T23:59:59Z", "crm": "2026-09-28T10:55:01Z", "shopify": "2026-09-28T10:55:00Z"}}`).decode(t, &pushed)
	if len(pushed.Rejected) != 2 || pushed.Rejected[0].Pointer != "/watermarks/crm" || pushed.Rejected[1].Pointer != "/watermarks/stripe" ||
		!strings.Contains(pushed.Rejected[1].Error, "lies ahead of now") {
		t.Errorf("rejected: %+v", pushed.Rejected)
	}
	var sources SourceList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/sources", "").decode(t, &sources)
	for _, source := range sources.Sources {
		if source.Source != "shopify" || source.Watermark == nil || *source.Watermark != instant(t, "2026-09-28T10:55:00Z") {
			t.Errorf("source %+v", source)
		}
	}
}

// TestUnavailableSourcesTakeNoVerdictBack: a FAIL that is settled stays one,
// whoever says afterwards that its source could not be read.
func TestUnavailableSourcesTakeNoVerdictBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "180.0,", "400,", 1))
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	var settled Verified
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &settled)
	if settled.Status != ledger.Settled || settled.Policy.Verdict != "FAIL" {
		t.Fatalf("%+v", settled)
	}
	const away = `{"action_id": "act_1", "unavailable_sources": ["stripe"]`
	if got := f.do(t, ledger.RoleEvidence, "POST", "/v1/actions/verify", away+`}`); got.status != http.StatusConflict || !strings.Contains(got.body, "send dry_run") {
		t.Errorf("%d %s", got.status, got.body)
	}
	var rehearsed Verified
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/actions/verify", away+`, "dry_run": true}`).decode(t, &rehearsed)
	if rehearsed.Policy.Verdict != "UNKNOWN" {
		t.Errorf("rehearsed: %+v", rehearsed.Policy)
	}
	var history History
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1/runs", "").decode(t, &history)
	if len(history.Runs) != 1 {
		t.Errorf("%d runs", len(history.Runs))
	}
}

// TestGateStaysShutForWhatWaitsToBeJudged: a reversal that is stored and not
// judged yet lets nobody through on the verdict before it.
func TestGateStaysShutForWhatWaitsToBeJudged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	publishDocument(t, f.store, "booking.yaml", []byte(`
id: booking
version: 1
kind: action
vendor: internal
source_citation: {url: "internal://booking", retrieved: "2026-09-28", title: "Bookings"}
action_type: book
subject_kind: order
action:
  window: 15m
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created}
  reversed_by:
    - reversal_observed: {source: shopify, type: order_reopened, within: 7d}
`))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", `{"action_id": "b_1", "contract_id": "booking", "subject_id": "order_10231", "requested_at": "2026-09-28T10:42:00Z", "params": {}}`)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(refunded))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "b_1"}`)
	wait := func(seconds string) (got Waited) {
		f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/b_1/wait?timeout="+seconds, "").decode(t, &got)
		return got
	}
	if got := wait("1"); got.TimedOut || got.Policy.Verdict != "PASS" {
		t.Fatalf("settled: %+v", got)
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(strings.NewReplacer("order_cancelled", "order_reopened", "sh_2", "sh_3").Replace(cancelled)))
	if got := wait("0.2"); !got.TimedOut || got.Settlement.NextCheckAt == nil {
		t.Errorf("with a reversal that nobody judged: timed out %t, next check %v", got.TimedOut, got.Settlement.NextCheckAt)
	}
	f.clock.Store(int64(instant(t, "2026-09-28T11:00:00Z"))) // the window has closed
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	for _, run := range []func(context.Context) error{f.verifier.Run, f.hub.Run} {
		working.Go(func() { _ = run(ctx) })
	}
	if got := wait("30"); got.TimedOut || got.Policy.Verdict != "FAIL" {
		t.Errorf("judged: %+v", got)
	}
	stop()
	working.Wait()
}
