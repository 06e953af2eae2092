package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
	"github.com/countersign-otel/countersign/verifier/view"
)

// failing is a store whose transactions fail once it is told to.
type failing struct {
	ledger.Ledger
	err error
}

func (f *failing) View(ctx context.Context, work func(ledger.Tx) error) error {
	if f.err != nil {
		return f.err
	}
	return f.Ledger.View(ctx, work)
}

func (f *failing) CheckSchema(ctx context.Context) error {
	if f.err != nil {
		return f.err
	}
	return f.Ledger.CheckSchema(ctx)
}

// TestStoreTroubleIsToldWithoutDetails: what helps the caller, and nothing of the inside.
func TestStoreTroubleIsToldWithoutDetails(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		err                 error
		status              int
		code, detail, retry string
	}{
		{fmt.Errorf("%w: /var/lib/secret.db is locked", ledger.ErrUnavailable), 503, "unavailable", "the store cannot be reached or is busy; try again", "1"},
		{fmt.Errorf("%w: /var/lib/secret.db", ledger.ErrReadOnly), 503, "unavailable", "the store cannot be written; make its file and folder writable for the sidecar", "1"},
		{fmt.Errorf("syntax error near SELECT"), 500, "internal", "something went wrong that the sidecar did not expect; its log tells more", ""},
	} {
		f := newFixture(t)
		f.service.Ledger = &failing{f.store, row.err}
		got := f.do(t, ledger.RoleViewer, "GET", "/v1/actions", "")
		want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"code":%q,"detail":%q,"request_id":"test"}`, http.StatusText(row.status), row.status, row.code, row.detail)
		if got.body != want || got.header.Get("Retry-After") != row.retry {
			t.Errorf("Retry-After %q\n%s", got.header.Get("Retry-After"), cmp.Diff(want, got.body))
		}
		if ready := f.do(t, "", "GET", "/readyz", ""); ready.status != http.StatusServiceUnavailable || ready.body != "not ready: "+row.detail {
			t.Errorf("readyz: %d %s", ready.status, ready.body)
		}
		if health := f.do(t, "", "GET", "/healthz", ""); health.status != http.StatusOK {
			t.Errorf("healthz: %d", health.status)
		}
	}
}

// TestD23_DisagreementIsToldAndHoldsNothingElse: an injected fault in the second evaluator.
func TestD23_DisagreementIsToldAndHoldsNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.verifier.Derive = func(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation {
		evaluations := goeval.Evaluate(c, s)
		for i := range evaluations {
			if evaluations[i].ActionID == "act_1" {
				evaluations[i].Policy.Raw = engine.Verified
			}
		}
		return evaluations
	}
	for _, id := range []string{"act_1", "act_2"} {
		f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "act_1", id, 1))
	}
	got := f.do(t, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	start := `{"type":"about:blank","title":"Conflict","status":409,"code":"parked","detail":"the action cannot be verified until somebody looks at it: evaluators disagree: `
	if !strings.HasPrefix(got.body, start) {
		t.Errorf("got %s\nwant %s...", got.body, start)
	}
	if got := f.do(t, ledger.RoleRecorder, "GET", "/v1/actions/act_1/wait?timeout=60", ""); !strings.HasPrefix(got.body, start) {
		t.Errorf("wait: %s", got.body)
	}
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_2"}`)
	var shown view.Verification
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1", "").decode(t, &shown)
	if shown.Status != view.Unverified {
		t.Errorf("something was stored: %+v", shown)
	}
	var page Page
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions", "").decode(t, &page)
	parked := 0
	for _, row := range page.Actions {
		if row.ParkedError != "" {
			parked++
		}
	}
	if parked != 1 {
		t.Errorf("%d parked actions in the list", parked)
	}
}

// TestActionIDsAreOpaque: whatever an agent calls its action, it can be asked for.
func TestActionIDsAreOpaque(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{"a/b", "a b", "a%2Fb", "ä?#&=", "a//b", "summary/../x", `"quoted"`} {
		body := strings.Replace(refundAction, `"act_1"`, engine.StringValue(id).Text(), 1)
		f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", body)
		got := f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/"+url.PathEscape(id), "")
		var shown view.Verification
		got.decode(t, &shown)
		if shown.Action.ActionID != id {
			t.Errorf("asked for %q, got %q", id, shown.Action.ActionID)
		}
	}
}

// TestLastUseOfKeysIsStored: in batches, at the end at the latest.
func TestLastUseOfKeysIsStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	uses := NewUses(f.store, func() engine.Instant { return engine.Instant(f.clock.Load()) }, nil)
	var key ledger.Key
	read := func() {
		t.Helper()
		err := f.store.View(context.Background(), func(tx ledger.Tx) error {
			all, err := tx.ListKeys(context.Background(), tenantA)
			key = all[0]
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	read()
	if key.LastUsedAt != nil {
		t.Fatalf("used before: %v", key.LastUsedAt)
	}
	uses.Note(keys.Use{Key: key, Status: http.StatusOK})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := uses.Run(ctx); err != nil {
		t.Fatal(err)
	}
	read()
	if key.LastUsedAt == nil || *key.LastUsedAt != engine.Instant(f.clock.Load()) {
		t.Errorf("last used: %v", key.LastUsedAt)
	}
}
