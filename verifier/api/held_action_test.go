package api

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// publishHeld makes a next version of the refund contract the latest, which says updates: until_settled.
func (f *fixture) publishHeld(t *testing.T) {
	t.Helper()
	document := strings.Replace(string(refundContract(t, f).Document), "\nversion: 1\n", "\nversion: 2\n", 1)
	document = strings.Replace(document, "\naction:\n", "\naction:\n  updates: until_settled\n", 1)
	publishDocument(t, f.store, "refund_workflow.yaml", []byte(document))
}

// TestSettledActionThatIsHeld: under updates: until_settled a recorder cannot make
// a settled FAIL about something else, by whatever request it tries.
func TestSettledActionThatIsHeld(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.publishHeld(t)
	tooMuch := strings.Replace(refundAction, "180.0,", "400,", 1)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", tooMuch)
	var failed Verified
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &failed)
	if failed.Status != ledger.Settled || failed.Policy.Verdict != "FAIL" {
		t.Fatalf("not failed: %+v", failed)
	}

	const want = `{"type":"about:blank","title":"Conflict","status":409,"code":"conflict",` +
		`"detail":"action \"act_1\" settled as FAIL in run_2, and its contract refund_workflow version 2 has updates: until_settled, ` +
		`so that what the verdict depends on stays as it was recorded; record a new action that compensates it, ` +
		`or, for actions to come, publish a version of the contract without this key",` +
		`"request_id":"test","errors":[{"pointer":"/subject_id","detail":"differs from what is recorded"},{"pointer":"/params","detail":"differs from what is recorded"}]}`
	harmless := strings.Replace(refundAction, "order_10231", "order_666", 1)
	dry := strings.Replace(harmless, `{"action_id"`, `{"dry_run": true, "action_id"`, 1)
	for _, request := range []struct{ path, body string }{
		{"/v1/actions", strings.Replace(harmless, `{"action_id"`, `{"verify": "auto", "trace_id": "0af7651916cd43dd8448eb211c80319c", "action_id"`, 1)},
		{"/v1/actions/verify", harmless}, {"/v1/actions/verify", dry},
	} {
		if got := f.must(t, http.StatusConflict, ledger.RoleRecorder, "POST", request.path, request.body); compactJSON(t, got.body) != want {
			t.Errorf("%s:\n  got  %s\n  want %s", request.path, got.body, want)
		}
	}

	// The same again is no conflict, with or without its time, and what no verdict depends on is taken.
	f.clock.Add(60)
	timeless := strings.Replace(tooMuch, `"requested_at": "2026-09-28T10:42:00Z",`, "", 1)
	traced := strings.Replace(tooMuch, `{"action_id"`, `{"trace_id": "1af7651916cd43dd8448eb211c80319c", "workflow_id": "wf_2", "action_id"`, 1)
	traced = strings.Replace(traced, `"workflow_id": "wf_1", `, "", 1)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", timeless)
	for _, body := range []string{tooMuch, timeless, traced} {
		f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions", body)
	}

	var shown view.Verification
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "").decode(t, &shown)
	if shown.Policy.Verdict != "FAIL" || shown.ActionChanged {
		t.Errorf("shown: %+v", shown)
	}
	stored := f.recorded(t, "act_1")
	if stored.Params.Text() != `{"amount":400,"currency":"USD"}` || stored.SubjectID != "order_10231" || stored.RequestedAt != instant(t, "2026-09-28T10:42:00Z") ||
		stored.TraceID != "1af7651916cd43dd8448eb211c80319c" || stored.WorkflowID != "wf_2" {
		t.Errorf("recorded: %+v", stored)
	}
}

// recorded is an action as the store has it.
func (f *fixture) recorded(t *testing.T, ref string) (a engine.Action) {
	t.Helper()
	err := f.store.View(context.Background(), func(tx ledger.Tx) error {
		stored, err := find(context.Background(), tx, tenantA, ref)
		a = stored.Action
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
