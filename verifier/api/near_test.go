package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

// early is the refund by a clock that is 15 seconds behind, zoned the note in the time of another zone.
var (
	early = strings.Replace(refunded, "10:42:07Z", "10:41:45Z", 1)
	zoned = strings.Replace(noted, "10:42:30Z", "12:42:30Z", 1)
	upper = strings.Replace(notified, "order_10231", "ORDER_10231", 1)
)

// TestNearMissesAreShownWithOneAction: what came nearest to each fact that is
// missing, to those who may look at facts, and beside the verdict alone.
func TestNearMissesAreShownWithOneAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, early, zoned, upper))
	f.as(t, f.secrets[tenantB][ledger.RoleEvidence], "POST", "/v1/facts", facts(strings.Replace(cancelled, "10:42:20Z", "10:41:59Z", 1)))
	verified := f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)

	var shown view.Verification
	got := f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "")
	got.decode(t, &shown)
	var hints []string
	for _, m := range shown.NearMisses {
		check := shown.Checks[m.Check]
		if check.OK || check.Code != m.Code {
			t.Errorf("hint at check %d, which is %+v", m.Check, check)
		}
		trust := "unknown"
		if m.Fact.Trust != nil {
			trust = m.Fact.Trust.String()
		}
		hints = append(hints, check.Description+": "+m.Fact.RawRef+" ("+trust+") "+m.Text)
	}
	want := []string{
		"stripe refund_created: re_1 (shared) occurred 15s before the action was requested (a clock?)",
		"crm note_added: crm_1 (shared) occurred 1h 45m after its window of 15m closed, 2h after the action was requested (a time zone?)",
		`messaging customer_notified: msg_1 (shared) is about "ORDER_10231", and not about "order_10231"`,
	}
	if diff := cmp.Diff(want, hints); diff != "" {
		t.Errorf("hints (-want +got):\n%s", diff)
	}

	for _, path := range []string{"/v1/actions/act_1/wait?timeout=0", "/v1/actions/act_1/runs", "/v1/actions", "/v1/facts/rejected"} {
		if got := f.must(t, http.StatusOK, ledger.RoleViewer, "GET", path, ""); strings.Contains(got.body, "near_misses") {
			t.Errorf("%s has hints: %s", path, got.body)
		}
	}
	if strings.Contains(verified.body, "near_misses") {
		t.Errorf("verifying has hints: %s", verified.body)
	}
	for role, hints := range map[string]bool{ledger.RoleRecorder: false, ledger.RoleViewer: true, ledger.RoleAnalyst: true} {
		if got := f.must(t, http.StatusOK, role, "GET", "/v1/actions/act_1", ""); strings.Contains(got.body, "near_misses") != hints {
			t.Errorf("%s: %s, want hints: %t", role, got.body, hints)
		}
	}
}

// TestNearMissesAreOfTheActionThatWasVerified: one that was recorded anew with
// another time is judged again first.
func TestNearMissesAreOfTheActionThatWasVerified(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, early))
	f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "10:42:00Z", "10:43:00Z", 1))
	hinted := func(want string) {
		t.Helper()
		got := f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "")
		if want == "" && strings.Contains(got.body, "near_misses") || !strings.Contains(got.body, want) {
			t.Errorf("got %s, want %q", got.body, want)
		}
	}
	hinted("")
	f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	hinted("occurred 1m before the action was requested (a clock?)")
}

// TestNearMissesEndWithTheVerdict: a check that is met has no hint, and a fact that
// came after the verification is one until somebody asks again.
func TestNearMissesEndWithTheVerdict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hints := func() string {
		t.Helper()
		var shown view.Verification
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1", "").decode(t, &shown)
		var texts []string
		for _, m := range shown.NearMisses {
			texts = append(texts, m.Fact.RawRef+" "+m.Text)
		}
		return strings.Join(texts, "; ")
	}
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(early))
	if got := hints(); got != "" {
		t.Errorf("without a verification: %s", got)
	}
	f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	if got, want := hints(), "re_1 occurred 15s before the action was requested (a clock?)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(strings.Replace(refunded, `"raw_ref": "re_1"`, `"raw_ref": "re_2"`, 1)))
	if got, want := hints(), "re_2 came since this verification; verify the action again"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	if got := hints(); got != "" {
		t.Errorf("although the effect was seen: %s", got)
	}
}
