package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// TestOldVerdictIsNoneOfAnActionRecordedAnew: an update keeps the action's
// history (AC "Idempotency"), so that a settled PASS can stand beside a subject
// and an amount that nobody ever looked at. It says so, and the gate stays shut
// until what the action says now was verified.
func TestOldVerdictIsNoneOfAnActionRecordedAnew(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	wait := func(role string) (waited Waited) {
		t.Helper()
		f.must(t, http.StatusOK, role, "GET", "/v1/actions/act_1/wait?timeout=0", "").decode(t, &waited)
		return waited
	}
	if passed := wait(ledger.RoleRecorder); passed.TimedOut || passed.ActionChanged || passed.Policy.Verdict != "PASS" {
		t.Fatalf("not passed: %+v", passed)
	}

	other := strings.NewReplacer("order_10231", "order_666", "180.0", "99999").Replace(refundAction)
	var recorded recordedBody
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions", other).decode(t, &recorded)
	var shown view.Verification
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "").decode(t, &shown)
	var page Page
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions", "").decode(t, &page)
	if !recorded.Action.Latest.ActionChanged || !shown.ActionChanged || !page.Actions[0].ActionChanged {
		t.Errorf("an old verdict is shown as if it were of the new content: %t %t %t", recorded.Action.Latest.ActionChanged, shown.ActionChanged, page.Actions[0].ActionChanged)
	}
	// A viewer may not ask for a verdict: there is none, whatever the old one says.
	if seen := wait(ledger.RoleViewer); !seen.TimedOut || !seen.ActionChanged {
		t.Errorf("the gate lets a viewer through: %+v", seen)
	}
	if judged := wait(ledger.RoleRecorder); judged.ActionChanged || judged.Policy.Verdict != "UNKNOWN" || !judged.Changed || judged.Run.TriggeredBy != triggerManual {
		t.Errorf("what the action says now was not judged: %+v", judged)
	}
}
