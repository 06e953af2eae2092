package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/keys"
)

// TestRoleByEndpoint tries every cell: what each role gets from each endpoint,
// and what a request without a key gets.
func TestRoleByEndpoint(t *testing.T) {
	t.Parallel()
	inline := strings.Replace(refundAction, "act_1", "act_inline", 1)
	with := func(body, members string) string { return strings.TrimSuffix(body, "}") + ", " + members + "}" }
	oneFact := `"facts": [` + refunded + `]`
	type row struct {
		name, method, path, body                    string
		recorder, evidence, analyst, viewer, nobody int
	}
	rows := []row{
		{"record", "POST", "/v1/actions", strings.Replace(refundAction, "act_1", "act_{role}", 1), 201, 403, 201, 403, 401},
		{"push", "POST", "/v1/facts", facts(refunded), 403, 200, 200, 403, 401},
		{"verify by reference", "POST", "/v1/actions/verify", `{"action_id": "act_1"}`, 200, 200, 200, 403, 401},
		{"verify with facts", "POST", "/v1/actions/verify", with(`{"action_id": "act_1"`, oneFact), 403, 200, 200, 403, 401},
		{"verify with links", "POST", "/v1/actions/verify", `{"action_id": "act_1", "links": [{"subject_id": "a", "linked_subject_id": "b"}]}`, 403, 200, 200, 403, 401},
		{"verify with watermarks", "POST", "/v1/actions/verify", `{"action_id": "act_1", "watermarks": {"crm": "2026-09-28T10:45:00Z"}}`, 403, 200, 200, 403, 401},
		{"verify without a source", "POST", "/v1/actions/verify", `{"action_id": "act_1", "unavailable_sources": ["crm"]}`, 403, 200, 200, 403, 401},
		{"verify with empty evidence", "POST", "/v1/actions/verify", `{"action_id": "act_1", "facts": [ ], "links": [], "watermarks": {}}`, 200, 200, 200, 403, 401},
		{"verify inline", "POST", "/v1/actions/verify", inline, 200, 403, 200, 403, 401},
		{"verify inline with facts", "POST", "/v1/actions/verify", with(inline, oneFact), 403, 403, 200, 403, 401},
		{"dry run inline", "POST", "/v1/actions/verify", with(inline, `"dry_run": true`), 200, 200, 200, 403, 401},
		{"dry run inline with facts", "POST", "/v1/actions/verify", with(inline, `"dry_run": true, `+oneFact), 403, 200, 200, 403, 401},
		{"list", "GET", "/v1/actions", "", 200, 403, 200, 200, 401},
		{"get", "GET", "/v1/actions/act_1", "", 200, 403, 200, 200, 401},
		{"wait", "GET", "/v1/actions/act_1/wait?timeout=0", "", 200, 403, 200, 200, 401},
		{"events", "GET", "/v1/events?type=none", "", 422, 403, 422, 422, 401}, // what is let in is told that the type is wrong, and ends
		{"runs", "GET", "/v1/actions/act_1/runs", "", 200, 403, 200, 200, 401},
		{"summary", "GET", "/v1/actions/summary", "", 200, 403, 200, 200, 401},
		{"orphans", "GET", "/v1/reports/orphans", "", 403, 403, 200, 200, 401},
		{"rejected facts", "GET", "/v1/facts/rejected", "", 403, 403, 200, 200, 401},
		{"audit log of keys", "GET", "/v1/keys/audit", "", 403, 403, 200, 200, 401},
		{"sources", "GET", "/v1/sources", "", 403, 403, 200, 200, 401},
		{"contracts", "GET", "/v1/contracts", "", 403, 403, 200, 200, 401},
		{"contract", "GET", "/v1/contracts/refund_workflow", "", 403, 403, 200, 200, 401},
		{"dead letters", "GET", "/v1/webhooks/dead-letters", "", 403, 403, 200, 200, 401},
		{"replay", "POST", "/v1/webhooks/deliveries/msg_1/replay", "", 403, 403, 404, 403, 401},
		{"definition", "GET", "/v1/public/definitions/refund_workflow", "", 200, 200, 200, 200, 200},
		{"verdict", "GET", "/v1/public/verdicts/" + strings.Repeat("0", 64), "", 404, 404, 404, 404, 404},
		{"health", "GET", "/healthz", "", 200, 200, 200, 200, 200},
		{"readiness", "GET", "/readyz", "", 200, 200, 200, 200, 200},
		{"metrics", "GET", "/metrics", "", 200, 200, 200, 200, 200},
		{"description", "GET", "/openapi.json", "", 200, 200, 200, 200, 200},
	}
	tried := map[string]bool{}
	for _, r := range rows {
		tried[r.method+" "+strings.SplitN(r.path, "?", 2)[0]] = true
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
			cells := map[string]int{
				ledger.RoleRecorder: r.recorder, ledger.RoleEvidence: r.evidence, ledger.RoleAnalyst: r.analyst, ledger.RoleViewer: r.viewer, "": r.nobody,
			}
			try := func(refused bool) {
				for role, want := range cells {
					if (want == http.StatusForbidden || want == http.StatusUnauthorized) != refused {
						continue
					}
					got := f.do(t, role, r.method, r.path, strings.ReplaceAll(r.body, "{role}", role))
					if got.status != want {
						t.Errorf("%s %s as %q: %d %s, want %d", r.method, r.path, role, got.status, got.body, want)
					}
				}
			}
			try(true)
			requireNothingStored(t, f)
			try(false)
		})
	}
	// Every endpoint of the description stands in the table.
	f := newFixture(t)
	var description struct {
		Paths map[string]map[string]any
	}
	f.must(t, http.StatusOK, "", "GET", "/openapi.json", "").decode(t, &description)
	for path, methods := range description.Paths {
		for method := range methods {
			example := strings.NewReplacer("{ref}", "act_1", "{id}", "refund_workflow", "{hash}", strings.Repeat("0", 64), "deliveries/{id}", "deliveries/msg_1").Replace(path)
			if !tried[strings.ToUpper(method)+" "+example] {
				t.Errorf("%s %s is not in the table", strings.ToUpper(method), path)
			}
		}
	}
}

// requireNothingStored: a refused request leaves one unverified action and no source.
func requireNothingStored(t *testing.T, f *fixture) {
	t.Helper()
	var counts Counts
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/summary", "").decode(t, &counts)
	if diff := cmp.Diff(Counts{Total: 1, Unverified: 1}, counts); diff != "" {
		t.Errorf("stored: %s", diff)
	}
	var sources SourceList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/sources", "").decode(t, &sources)
	if len(sources.Sources) != 0 {
		t.Errorf("stored: %+v", sources.Sources)
	}
}

// TestNoKeyRecordsAndPushes: only a person may do both.
func TestNoKeyRecordsAndPushes(t *testing.T) {
	t.Parallel()
	for _, role := range keys.Roles() {
		if keys.May(role, keys.Record) && keys.May(role, keys.Push) && role != ledger.RoleAnalyst {
			t.Errorf("a %s key records actions and supplies the facts that verify them", role)
		}
	}
}

func TestKeysThatAreNotGood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := f.secrets[tenantA][ledger.RoleViewer]
	expired := f.key(t, keys.Request{Role: ledger.RoleViewer, Tenant: tenantA, ExpiresAt: later(f, 60)})
	revoked := f.key(t, keys.Request{Role: ledger.RoleViewer, Tenant: tenantA})
	f.revokeLast(t)
	f.clock.Add(60)
	for _, row := range []struct{ name, secret, detail string }{
		{"none", "", "a key is needed; send it as X-API-Key or as a bearer token"},
		{"no key at all", "hunter2", "the key is unknown"},
		{"one letter changed", good[:len(good)-2] + flip(good[len(good)-2:]), "the key is unknown"},
		{"another role", strings.Replace(good, "viewer", "analyst", 1), "the key is unknown"},
		{"very long", strings.Repeat("k", 8000), "the key is unknown"},
		{"expired", expired, "the key has expired; ask for a new one"},
		{"revoked", revoked, "the key was revoked; ask for a new one"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := f.as(t, row.secret, "GET", "/v1/actions", "")
			want := `{"type":"about:blank","title":"Unauthorized","status":401,"code":"unauthorized","detail":"` + row.detail + `","request_id":"test"}`
			if got.body != want {
				t.Error(cmp.Diff(want, got.body))
			}
			if got.header.Get("WWW-Authenticate") != `Bearer realm="countersign"` || got.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("headers: %v", got.header)
			}
		})
	}
}

// flip changes a letter so that the text stays base64url.
func flip(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}

func later(f *fixture, seconds int64) *engine.Instant {
	at := engine.Instant(f.clock.Load() + seconds)
	return &at
}

func TestBearerTokenIsAKeyToo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.secrets[tenantA][ledger.RoleViewer]
	for _, row := range []struct {
		name, own, authorization string
		want                     int
	}{
		{"bearer", "", "Bearer " + secret, 200},
		{"lowercase", "", "bearer " + secret, 200},
		{"both the same", secret, "Bearer " + secret, 200},
		{"both and different", secret, "Bearer " + f.secrets[tenantB][ledger.RoleViewer], 401},
		{"basic", "", "Basic " + secret, 401},
	} {
		request, err := http.NewRequest("GET", f.server.URL+"/v1/actions", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", row.authorization)
		if row.own != "" {
			request.Header.Set("X-API-Key", row.own)
		}
		if got := send(t, request); got.status != row.want {
			t.Errorf("%s: %d %s, want %d", row.name, got.status, got.body, row.want)
		}
	}
}

// TestEvidenceKeyIsBoundToItsSources: also in watermarks, inline and by name.
func TestEvidenceKeyIsBoundToItsSources(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := f.key(t, keys.Request{Role: ledger.RoleEvidence, Tenant: tenantA, Sources: []string{"CRM", "messaging"}})
	body := `{"facts": [` + noted + `,` + refunded + `], "watermarks": {"crm": "2026-09-28T10:45:00Z", "stripe": "2026-09-28T10:45:00Z"}}`
	got := f.as(t, secret, "POST", "/v1/facts", body)
	want := `{"ingested":1,"duplicates":0,"conflicting":0,"rejected":[` +
		`{"index":1,"pointer":"/facts/1/source","error":"source \"stripe\" is none of this key's sources: crm, messaging"},` +
		`{"index":null,"pointer":"/watermarks/stripe","error":"source \"stripe\" is none of this key's sources: crm, messaging"}]}`
	if got.body != want {
		t.Error(cmp.Diff(want, got.body))
	}
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	got = f.as(t, secret, "POST", "/v1/actions/verify", `{"action_id": "act_1", "unavailable_sources": ["stripe"]}`)
	want = `{"type":"about:blank","title":"Unprocessable Entity","status":422,"code":"invalid","detail":"the action cannot be verified","request_id":"test",` +
		`"errors":[{"pointer":"/unavailable_sources/0","detail":"source \"stripe\" is none of this key's sources: crm, messaging"}]}`
	if got.body != want {
		t.Error(cmp.Diff(want, got.body))
	}
}

// TestLiveSourceCannotBePushed: by nobody, while its connection is live.
func TestLiveSourceCannotBePushed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.connection(t, ledger.ConnectionSetting{Source: "stripe", Name: "webhooks", Health: health(engine.Healthy)})
	for _, role := range []string{ledger.RoleEvidence, ledger.RoleAnalyst} {
		got := f.must(t, http.StatusOK, role, "POST", "/v1/facts", facts(refunded, noted))
		var pushed Pushed
		got.decode(t, &pushed)
		want := []Rejected{{index(0), "/facts/0/source", `source "stripe" is served by the connection "webhooks" and cannot be pushed`}}
		if diff := cmp.Diff(want, pushed.Rejected); diff != "" {
			t.Errorf("%s: %s", role, diff)
		}
	}
	f.connection(t, ledger.ConnectionSetting{Source: "stripe", Name: "webhooks", Health: health(engine.Failing)})
	var pushed Pushed
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(refunded)).decode(t, &pushed)
	if pushed.Ingested != 1 {
		t.Errorf("a source whose connection fails was not taken: %+v", pushed)
	}
}

// TestTenantsDoNotSeeEachOther: two tenants use the same ids for everything.
func TestTenantsDoNotSeeEachOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a, b := f.secrets[tenantA], f.secrets[tenantB]
	ok := func(secret, method, path, body string) answer {
		t.Helper()
		got := f.as(t, secret, method, path, body)
		if got.status > 299 {
			t.Fatalf("%s %s: %d %s", method, path, got.status, got.body)
		}
		return got
	}
	// Tenant b has everything that makes a pass; tenant a has the action alone.
	ok(b[ledger.RoleEvidence], "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	ok(b[ledger.RoleRecorder], "POST", "/v1/actions", strings.Replace(refundAction, "support-agent", "agent-of-b", 1))
	before := ok(b[ledger.RoleRecorder], "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).body
	ok(a[ledger.RoleRecorder], "POST", "/v1/actions", refundAction)
	var ofA, ofB Verified
	ok(a[ledger.RoleRecorder], "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &ofA)
	if ofA.Policy.Verdict != "UNKNOWN" {
		t.Errorf("facts of another tenant decided: %+v", ofA.Verification)
	}
	ok(b[ledger.RoleViewer], "GET", "/v1/actions/act_1", "").decode(t, &ofB)
	if ofB.Policy.Verdict != "PASS" || *ofB.Action.AgentID != "agent-of-b" || !strings.Contains(before, ofB.Policy.Hash) {
		t.Errorf("another tenant's action changed it: %+v", ofB.Verification)
	}
	if got := f.as(t, a[ledger.RoleViewer], "GET", "/v1/actions/"+claimID(tenantB, "act_1"), ""); got.status != http.StatusNotFound {
		t.Errorf("the internal id of another tenant's action: %d %s", got.status, got.body)
	}
	for _, path := range []string{
		"/v1/actions", "/v1/actions/act_1", "/v1/actions/act_1/runs", "/v1/actions/act_1/wait?timeout=0",
		"/v1/actions/summary", "/v1/sources", "/v1/reports/orphans", "/v1/facts/rejected",
	} {
		got := ok(a[ledger.RoleViewer], "GET", path, "")
		for _, foreign := range []string{"agent-of-b", claimID(tenantB, "act_1"), ofB.Policy.Hash, ofB.Outcome.Hash, "shopify\",\"trust\":\"shared", "PASS"} {
			if strings.Contains(got.body, foreign) {
				t.Errorf("%s shows %q of another tenant: %s", path, foreign, got.body)
			}
		}
	}
	// The same key hashes nowhere else, and revoking one tenant's key needs that tenant.
	if got := f.as(t, a[ledger.RoleViewer], "GET", "/v1/public/verdicts/"+ofB.Policy.Hash, ""); strings.Contains(got.body, tenantB) || strings.Contains(got.body, "order_") {
		t.Errorf("a public verdict shows a tenant's data: %s", got.body)
	}
}
