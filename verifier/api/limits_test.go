package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// limited serves a fixture anew, with limits and a clock that stands still.
func limited(t *testing.T, f *fixture, l keys.Limits) {
	t.Helper()
	guard, err := keys.NewGuard(l, func() time.Time { return time.Unix(1_000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	f.server.Close()
	f.server = httptest.NewServer(Handler(f.service, Options{Guard: guard}))
	t.Cleanup(f.server.Close)
}

func wantTooMany(t *testing.T, got answer, retryAfter, detail string) {
	t.Helper()
	want := `{"type":"about:blank","title":"Too Many Requests","status":429,"code":"too_many_requests","detail":"` + detail + `","request_id":"test"}`
	if got.body != want || got.header.Get("Retry-After") != retryAfter || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("Retry-After %q, %s\n%s", got.header.Get("Retry-After"), got.header.Get("Content-Type"), cmp.Diff(want, got.body))
	}
}

func TestOneKeyIsLimitedAndNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	limited(t, f, keys.Limits{KeyRate: 1, KeyBurst: 3})
	for range 3 {
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions", "")
	}
	wantTooMany(t, f.do(t, ledger.RoleViewer, "GET", "/v1/sources", ""), "1", "this key sends too many requests; wait before you try again")
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions", "")
	f.must(t, http.StatusOK, "", "GET", "/healthz", "")
}

// TestWaitingCallsDoNotCountWhileTheyWait: one call is one request, however long it waits.
func TestWaitingCallsDoNotCountWhileTheyWait(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	limited(t, f, keys.Limits{KeyRate: 1, KeyBurst: 4})
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if got := f.do(t, ledger.RoleRecorder, "GET", "/v1/actions/act_1/wait?timeout=60", ""); got.status != http.StatusOK {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	within(t, time.Minute, "three calls wait", func() bool { return f.hub.Waiters() == 3 })
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions", "")
	wantTooMany(t, f.do(t, ledger.RoleRecorder, "GET", "/v1/actions", ""), "1", "this key sends too many requests; wait before you try again")
	f.settling(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	waiting.Wait()
}

// TestStrangersAreLimitedByAddress: also when they send a key that nothing looks at.
func TestStrangersAreLimitedByAddress(t *testing.T) {
	t.Parallel()
	const detail = "this address sends too many requests without a key; wait before you try again"
	for _, path := range []string{
		"/v1/public/definitions/refund_workflow", "/v1/public/verdicts/" + strings.Repeat("0", 64), "/metrics", "/v1/actions", "/nowhere",
	} {
		f := newFixture(t)
		limited(t, f, keys.Limits{AddressRate: 1, AddressBurst: 2})
		for range 2 {
			if got := f.do(t, "", "GET", path, ""); got.status == http.StatusTooManyRequests {
				t.Fatalf("%s: %s", path, got.body)
			}
		}
		wantTooMany(t, f.do(t, "", "GET", path, ""), "1", detail)
		if path != "/v1/actions" {
			wantTooMany(t, f.do(t, ledger.RoleViewer, "GET", path, ""), "1", detail)
		}
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions", "")
		f.must(t, http.StatusOK, "", "GET", "/healthz", "")
		f.must(t, http.StatusOK, "", "GET", "/readyz", "")
	}
}

// TestGuessesAreAnsweredAlike: 401 at first, then 429, whatever the key is.
func TestGuessesAreAnsweredAlike(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	limited(t, f, keys.Limits{FailedKeys: 2})
	good := f.secrets[tenantA][ledger.RoleViewer]
	for _, secret := range []string{"hunter2", flip(good)} {
		if got := f.as(t, secret, "GET", "/v1/actions", ""); got.status != http.StatusUnauthorized {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	for _, secret := range []string{"hunter2", good[:len("cs_viewer_")+8], good} {
		wantTooMany(t, f.as(t, secret, "GET", "/v1/actions", ""), "30", "too many keys that are not good came from this address; wait before you try again")
	}
}
