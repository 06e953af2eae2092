package api

import (
	"net/http"
	"strings"
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
