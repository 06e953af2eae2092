package api

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/ledger"
)

// TestErrorsSayWhereAndWhat compares every error whole.
func TestErrorsSayWhereAndWhat(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const (
		action = "/v1/actions"
		verify = "/v1/actions/verify"
		push   = "/v1/facts"
	)
	members := "action_id, contract_id, contract_version, workflow_id, agent_id, action_type, subject_id, subject_kind, requested_at, params, channel, compensates, trace_id, span_id, session_id, reference_id, tool, reported_outcome"
	with := func(members string) string {
		return `{"contract_id": "refund_workflow", "subject_id": "order_1", ` + members + `}`
	}
	for _, row := range []struct {
		name, method, path, body string
		status                   int
		code, detail, errors     string
	}{
		{"empty body", "POST", action, "", 400, "malformed", "the body is empty; send a JSON object", ""},
		{"cut off", "POST", action, `{"action_id": "a`, 400, "malformed", "the body is not JSON: it ends too early", ""},
		{"NaN", "POST", action, with(`"params": {"amount": NaN}`), 400, "malformed", "the body is not JSON at byte 81: invalid character 'N' looking for beginning of value", ""},
		{"a list", "POST", action, `[]`, 400, "malformed", "the body is a list; send an object {...}", ""},
		{"two objects", "POST", action, `{} {}`, 400, "malformed", "the body is followed by more text; send one object", ""},
		{"broken UTF-8", "POST", action, "{\"action_id\": \"\xff\"}", 400, "malformed", "the body is not valid UTF-8 at byte 15", ""},
		{"nothing in it", "POST", action, `{}`, 422, "invalid", "the action cannot be recorded", `{"pointer":"/contract_id","detail":"is missing"},{"pointer":"/subject_id","detail":"is missing"}`},
		{"several at once", "POST", action, with(`"agent_id": 7, "requested_at": "yesterday", "contract_version": 1.5, "dryrun": true`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/dryrun","detail":"is not known; the members are verify, ` + members + `"},` +
				`{"pointer":"/contract_version","detail":"is not a whole number from 1 to 2147483647"},` +
				`{"pointer":"/agent_id","detail":"is a number; send a text"},` +
				`{"pointer":"/requested_at","detail":"is an invalid time: \"yesterday\" is not an RFC 3339 time like 2026-09-28T10:42:00Z"}`},
		{"a typing mistake", "POST", action, with(`"subjet_kind": "order"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/subjet_kind","detail":"is not known (did you mean \"subject_kind\"?); the members are verify, ` + members + `"}`},
		{"twice the same member", "POST", action, with(`"subject_id": "order_2"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/subject_id","detail":"stands twice in one object; keep one"}`},
		{"twice the same parameter", "POST", action, with(`"params": {"amount": 1, "Amount": 2}`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/params","detail":"is an invalid JSON object: /amount stands twice in one object; keep one"}`},
		{"params that are no object", "POST", action, with(`"params": [1]`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/params","detail":"is an invalid JSON object: the document is not an object; send {...}"}`},
		{"control character", "POST", action, with(`"action_id": "a\u0007"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/action_id","detail":"has the control character U+0007"}`},
		{"id too long", "POST", action, with(`"action_id": "` + strings.Repeat("a", 513) + `"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/action_id","detail":"has 513 bytes; at most 512 are allowed"}`},
		{"trace id", "POST", action, with(`"trace_id": "xyz", "span_id": "0000000000000000"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/trace_id","detail":"is not an id of 32 hex digits, not all zero"},{"pointer":"/span_id","detail":"is not an id of 16 hex digits, not all zero"}`},
		{"year 1969", "POST", action, with(`"requested_at": "1969-12-31T23:59:59Z"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/requested_at","detail":"is an invalid time: 1969-12-31T23:59:59Z is outside the years 1970 to 9999"}`},
		{"milliseconds as seconds", "POST", action, with(`"requested_at": "+058711-08-10T20:00:00.000Z"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/requested_at","detail":"is an invalid time: \"+058711-08-10T20:00:00.000Z\" is outside the years 1970 to 9999; were milliseconds taken for seconds?"}`},
		{"compensates itself", "POST", action, with(`"action_id": "a", "compensates": "a"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/compensates","detail":"names the action itself"}`},
		{"verify that is no text", "POST", action, with(`"verify": true`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/verify","detail":"is not known; send \"auto\" or leave it out"}`},
		{"unknown verify", "POST", action, with(`"verify": "always"`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/verify","detail":"is not known; send \"auto\" or leave it out"}`},
		{"unknown contract", "POST", action, `{"contract_id": "refund_workflo", "subject_id": "s"}`, 422, "unknown_contract", "the action cannot be recorded",
			`{"pointer":"/contract_id","detail":"unknown contract \"refund_workflo\": it was not published to this store; run countersign contracts publish with its file"}`},
		{"unknown contract version", "POST", action, with(`"contract_version": 9`), 422, "unknown_contract", "the action cannot be recorded",
			`{"pointer":"/contract_version","detail":"unknown contract \"refund_workflow\" version 9: it was not published to this store; run countersign contracts publish with its file"}`},
		{"params of 100 KB", "POST", action, with(`"params": {"note": "` + strings.Repeat("x", 100_000) + `"}`), 422, "invalid", "the action cannot be recorded",
			`{"pointer":"/params","detail":"is an invalid JSON object: the document has 100012 bytes; at most 65536 are allowed"}`},
		{"params of 5 MB", "POST", action, with(`"params": {"note": "` + strings.Repeat("x", 5<<20) + `"}`), 413, "too_large", "the body has more than 1048576 bytes",
			`{"pointer":"/params","detail":"is too large; at most 65536 bytes are allowed"}`},
		{"facts of 17 MB", "POST", push, `{"facts": [` + strings.Repeat(refunded+",", 80_000) + `{}]}`, 413, "too_large", "the body has more than 16777216 bytes",
			`{"pointer":"/facts","detail":"is too large; send several requests of at most 10000 facts and 16777216 bytes"}`},
		{"too many facts", "POST", push, `{"facts": [` + strings.Repeat("{},", 10_000) + `{}]}`, 422, "invalid", "the facts cannot be taken",
			`{"pointer":"/facts","detail":"has more than 10000 items; send several requests"}`},
		{"too many watermarks", "POST", push, `{"facts": [` + refunded + `], "watermarks": {` + strings.Repeat(`"crm":0,`, 10_000) + `"crm":0}}`, 422, "invalid", "the facts cannot be taken",
			`{"pointer":"/watermarks","detail":"has more than 10000 members; send several requests"}`},
		{"facts that are no list", "POST", push, `{"facts": {}}`, 422, "invalid", "the facts cannot be taken", `{"pointer":"/facts","detail":"is an object; send a list [...]"}`},
		{"one fact without the list", "POST", push, refunded, 422, "invalid", "the facts cannot be taken",
			`{"pointer":"/source","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/subject_id","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/subject_kind","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/fact_type","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/occurred_at","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/attributes","detail":"is not known; the members are facts, links, watermarks"},` +
				`{"pointer":"/raw_ref","detail":"is not known; the members are facts, links, watermarks"}`},
		{"verify what is not there", "POST", verify, `{"action_id": "nobody"}`, 404, "not_found", `no action \"nobody\" is recorded`, ""},
		{"verify without a reference", "POST", verify, `{}`, 422, "invalid", "the action cannot be verified", `{"pointer":"/action_id","detail":"is missing"}`},
		{"get what is not there", "GET", action + "/nobody", "", 404, "not_found", `no action \"nobody\" is recorded`, ""},
		{"wait for what is not there", "GET", action + "/nobody/wait", "", 404, "not_found", `no action \"nobody\" is recorded`, ""},
		{"wait below zero", "GET", action + "/nobody/wait?timeout=-1", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"timeout","detail":"expected number >= 0"}`},
		{"no such endpoint", "GET", "/v2/actions", "", 404, "not_found", "nothing is served at /v2/actions; the endpoints stand in /openapi.json", ""},
		{"no such method", "DELETE", action, "", 405, "method", "DELETE is not served at /v1/actions; use GET, POST", ""},
		{"limit too high", "GET", action + "?limit=501", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"limit","detail":"expected number <= 500"}`},
		{"unknown parameter", "GET", action + "?contract=x", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"contract","detail":"is not known; /openapi.json names the parameters of each endpoint"}`},
		{"wait with a unit", "GET", action + "/nobody/wait?timeout=5s", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"timeout","detail":"is no number; write one without a unit, like 30"}`},
		{"unknown verdict", "GET", action + "?verdict=MAYBE", "", 422, "invalid", "a parameter of the request is wrong",
			`{"parameter":"verdict","detail":"is not known; write one of PASS, FAIL, UNKNOWN, PENDING, COMPENSATED"}`},
		{"time with a space", "GET", action + "?since=2026-09-28T10:42:00+02:00", "", 422, "invalid", "a parameter of the request is wrong",
			`{"parameter":"since","detail":"is an invalid time: \"2026-09-28T10:42:00 02:00\" is not an RFC 3339 time like 2026-09-28T10:42:00Z (a + of an offset must be written as %2B)"}`},
		{"forged cursor", "GET", action + "?cursor=forged", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"cursor","detail":"is not one that a page gave as next_cursor"}`},
		{"no hash", "GET", "/v1/public/verdicts/abc", "", 422, "invalid", "a parameter of the request is wrong", `{"parameter":"hash","detail":"is not a hash of 64 hex digits"}`},
		{"no such verdict", "GET", "/v1/public/verdicts/" + strings.Repeat("0", 64), "", 404, "not_found", "no verdict with this hash was stored", ""},
		{"no such definition", "GET", "/v1/public/definitions/nobody", "", 404, "not_found", `no contract \"nobody\" is published`, ""},
		{"no such contract", "GET", "/v1/contracts/nobody", "", 404, "not_found", `no contract \"nobody\" is published; contracts list, or GET /v1/contracts, names those that are`, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			got := f.do(t, ledger.RoleAnalyst, row.method, row.path, row.body)
			errors := ""
			if row.errors != "" {
				errors = `,"errors":[` + row.errors + `]`
			}
			want := fmt.Sprintf(`{"type":"about:blank","title":%q,"status":%d,"code":%q,"detail":"%s","request_id":"test"%s}`,
				http.StatusText(row.status), row.status, row.code, row.detail, errors)
			if got.body != want {
				t.Error(cmp.Diff(want, got.body))
			}
			if got.status != row.status || got.header.Get("Content-Type") != "application/problem+json" {
				t.Errorf("%d %s", got.status, got.header.Get("Content-Type"))
			}
		})
	}
}

func TestForbiddenNamesTheRolesThatMay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct{ role, method, path, body, detail string }{
		{ledger.RoleRecorder, "POST", "/v1/facts", facts(refunded), "a key with the role recorder may not push facts; roles that may: evidence, analyst"},
		{ledger.RoleEvidence, "POST", "/v1/actions", refundAction, "a key with the role evidence may not record actions; roles that may: recorder, analyst"},
		{ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "a", ` + strings.TrimPrefix(facts(refunded), "{"), "a key with the role recorder may not bring facts, links or watermarks; roles that may: evidence, analyst"},
		{ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "a", "unavailable_sources": ["crm"]}`, "a key with the role recorder may not name sources unavailable; roles that may: evidence, analyst"},
		{ledger.RoleEvidence, "POST", "/v1/actions/verify", refundAction, "a key with the role evidence may not record actions; roles that may: recorder, analyst"},
		{ledger.RoleEvidence, "GET", "/v1/actions", "", "a key with the role evidence may not read actions; roles that may: recorder, analyst, viewer"},
		{ledger.RoleRecorder, "GET", "/v1/sources", "", "a key with the role recorder may not inspect sources, contracts and reports; roles that may: analyst, viewer"},
		{ledger.RoleViewer, "POST", "/v1/actions/verify", `{"action_id": "a"}`, "a key with the role viewer may not verify actions; roles that may: recorder, evidence, analyst"},
	} {
		got := f.do(t, row.role, row.method, row.path, row.body)
		want := `{"type":"about:blank","title":"Forbidden","status":403,"code":"forbidden","detail":"` + row.detail + `","request_id":"test"}`
		if got.body != want {
			t.Error(cmp.Diff(want, got.body))
		}
	}
}

// TestBadFactsNeverSinkTheGood: each is rejected with its place.
func TestBadFactsNeverSinkTheGood(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	fact := func(members string) string {
		return `{"source": "crm", "subject_id": "s", "fact_type": "note_added", ` + members + `}`
	}
	deep := strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20)
	body := `{"facts": [` + strings.Join([]string{
		refunded,
		`{}`,
		`7`,
		fact(`"occurred_at": 7`),
		fact(`"occurred_at": "2026-13-01T00:00:00Z"`),
		fact(`"occurred_at": "2026-09-28T10:42:00Z", "attributes": {"a": ` + deep + `}`),
		fact(`"occurred_at": "2026-09-28T10:42:00Z", "attributes": {"a": 1, "a": 2}`),
		fact(`"occurred_at": "2026-09-28T10:42:00Z", "attributes": {"a": "\u0000"}`),
		fact(`"occurred_at": "2026-09-28T10:42:00Z", "amount": 7`),
		strings.Replace(fact(`"occurred_at": "2026-09-28T10:42:00Z"`), "crm", "CRM system", 1),
		strings.Replace(refunded, "180.0", "999", 1),
		refunded,
		fact(`"occurred_at": "2026-09-28T12:42:00.9+02:00", "attributes": {"pair": "\ud800"}`),
	}, ",") + `], "links": [{"subject_id": "a"}, {"subject_id": "a", "linked_subject_id": "b"}, "c"],
	"watermarks": {"crm": "soon", "messaging": null, "stripe": "2026-09-28T10:45:00Z", "": "2026-09-28T10:45:00Z"}}`
	got := f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", body)
	var pushed Pushed
	got.decode(t, &pushed)
	want := Pushed{Ingested: 2, Duplicates: 1, Conflicting: 1, Rejected: []Rejected{
		{index(1), "/facts/1/source", "is missing"},
		{index(2), "/facts/2", "is a number; send an object {...}"},
		{index(3), "/facts/3/occurred_at", "is a number, and its unit cannot be known; send RFC 3339 text like 2026-09-28T10:42:00Z"},
		{index(4), "/facts/4/occurred_at", `is an invalid time: "2026-13-01T00:00:00Z" is not an RFC 3339 time like 2026-09-28T10:42:00Z`},
		{index(5), "/facts/5/attributes", "is an invalid JSON object: /a" + strings.Repeat("/a", 15) + " is nested deeper than 16 levels"},
		{index(6), "/facts/6/attributes", "is an invalid JSON object: /a stands twice in one object; keep one"},
		{index(7), "/facts/7/attributes", "is an invalid JSON object: /a holds U+0000; remove it"},
		{index(8), "/facts/8/amount", "is not known; the members are source, subject_id, subject_kind, fact_type, occurred_at, attributes, raw_ref"},
		{index(9), "/facts/9/source", `is an invalid identifier "CRM system": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		{nil, "/links/0/linked_subject_id", "is missing"},
		{nil, "/links/2", "is a text; send an object {...}"},
		{nil, "/watermarks/", `invalid identifier "": write a letter, then letters, digits or _ . : -, at most 64 in all`},
		{nil, "/watermarks/crm", `is an invalid time: "soon" is not an RFC 3339 time like 2026-09-28T10:42:00Z`},
		{nil, "/watermarks/messaging", "is null; send an RFC 3339 time"},
	}}
	if diff := cmp.Diff(want, pushed); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyPlainJSONIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct {
		name, media, encoding string
		status                int
	}{
		{"json", "application/json; charset=utf-8", "", 201},
		{"says nothing", "", "", 201},
		{"a kind of json", "application/vnd.agent+json", "", 201},
		{"a form", "application/x-www-form-urlencoded", "", 415},
		{"compressed", "application/json", "gzip", 415},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			request, err := http.NewRequest("POST", f.server.URL+"/v1/actions", bytes.NewReader([]byte(strings.Replace(refundAction, "act_1", row.name, 1))))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-API-Key", f.secrets[tenantA][ledger.RoleRecorder])
			request.Header.Set("Content-Type", row.media)
			request.Header.Set("Content-Encoding", row.encoding)
			if got := send(t, request); got.status != row.status {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}

// TestNumbersKeepTheirText: binary floating point never touches money.
func TestNumbersKeepTheirText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	params := `{"a":0.1,"b":180.00,"c":12345678901234567890.123456789,"d":1e2,"e":-0}`
	body := `{"action_id": "numbers", "contract_id": "refund_workflow", "subject_id": "s", "params": ` + params + `}`
	got := f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", body)
	if !strings.Contains(got.body, `"params":`+params) {
		t.Error(got.body)
	}
	got = f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/numbers", "")
	if !strings.Contains(got.body, `"params":`+params) {
		t.Error(got.body)
	}
}

func TestD33_NotCapturedIsNotEmpty(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct{ id, params, want string }{
		{"absent", ``, `"params":{},"channel"`},
		{"empty", `, "params": {}`, `"params":{},"channel"`},
		{"null", `, "params": null`, `"params":null,"params_captured":false,"channel"`},
	} {
		body := `{"action_id": "` + row.id + `", "contract_id": "refund_workflow", "subject_id": "s"` + row.params + `}`
		got := f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", body)
		if !strings.Contains(got.body, row.want) {
			t.Errorf("%s: %s", row.id, got.body)
		}
	}
}

func TestRequestIDIsTheCallersWhenItIsPlain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, row := range []struct {
		sent string
		kept bool
	}{{"abc-1.2_3", true}, {"", false}, {strings.Repeat("a", 65), false}, {"a b", false}, {`"><script>`, false}} {
		request, err := http.NewRequest("GET", f.server.URL+"/v1/actions", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Request-Id", row.sent)
		got := send(t, request)
		id := got.header.Get("X-Request-Id")
		if (id == row.sent) != row.kept || id == "" || !strings.Contains(got.body, `"request_id":"`+id+`"`) {
			t.Errorf("sent %q: %q in %s", row.sent, id, got.body)
		}
	}
}
