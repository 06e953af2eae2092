package api

import (
	"net/http"
	"testing"

	"github.com/countersign-otel/countersign/ledger"
)

func (f *fixture) conditional(t *testing.T, path, tag string) answer {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, f.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-API-Key", f.secrets[tenantA][ledger.RoleViewer])
	if tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	return send(t, request)
}

func TestWhatDidNotChangeIsNotSentAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	for _, path := range []string{"/v1/contracts", "/v1/contracts/refund_workflow", "/v1/public/definitions/refund_workflow", "/v1/actions/act_1"} {
		first := f.conditional(t, path, "")
		tag := first.header.Get("ETag")
		if first.status != http.StatusOK || len(tag) != 34 || first.header.Get("Cache-Control") != "private, no-cache" {
			t.Fatalf("%s: %d %v", path, first.status, first.header)
		}
		for _, known := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
			if again := f.conditional(t, path, known); again.status != http.StatusNotModified || again.body != "" || again.header.Get("ETag") != tag {
				t.Errorf("%s with %s: %d %q", path, known, again.status, again.body)
			}
		}
		if other := f.conditional(t, path, `"other"`); other.status != http.StatusOK || other.body != first.body {
			t.Errorf("%s with another tag: %d", path, other.status)
		}
	}
	before := f.conditional(t, "/v1/actions/act_1", "").header.Get("ETag")
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	if after := f.conditional(t, "/v1/actions/act_1", before); after.status != http.StatusOK || after.header.Get("ETag") == before {
		t.Errorf("after it was verified: %d %v", after.status, after.header)
	}
	if missing := f.conditional(t, "/v1/actions/nobody", "*"); missing.status != http.StatusNotFound || missing.header.Get("ETag") != "" {
		t.Errorf("what is not there: %d %v", missing.status, missing.header)
	}
	if list := f.conditional(t, "/v1/actions", ""); list.header.Get("ETag") != "" {
		t.Error("lists change too often for a tag")
	}
}
