package view

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

func action(id string) ledger.StoredAction {
	return ledger.StoredAction{
		ClaimID: "clm_" + id, RecordedAt: 50,
		Action: engine.Action{ActionID: id, ContractID: "c", ContractVersion: 1, ActionType: "t", SubjectID: "s", SubjectKind: "record", Params: engine.EmptyObject()},
	}
}

func run(status string, policy engine.RawVerdict) *ledger.Run {
	return &ledger.Run{
		ID: "run_2", Seq: 2, ComputedAt: 100, TriggeredBy: "action", Status: status, Headline: "FAIL — something",
		Outcome: ledger.StoredVerdict{Verdict: engine.Verdict{Raw: engine.NotVerified}},
		Policy:  ledger.StoredVerdict{Verdict: engine.Verdict{Raw: policy}},
		Report:  json.RawMessage(`{"checks": null, "summary": {"headline": "x", "evidence_trust": null}, "settlement": {"settles_at": "1970-01-01T00:01:30Z", "next_check_at": null, "waiting_on": null, "stale_sources": null}, "sources": null, "reversal": null}`),
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	out, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestNothingIsLeftOut: every key is there before the first verification and after it; lists are never null.
func TestNothingIsLeftOut(t *testing.T) {
	t.Parallel()
	settlesAt := engine.Instant(90)
	before, err := Make(Parts{Stored: action("a"), SettlesAt: &settlesAt})
	if err != nil {
		t.Fatal(err)
	}
	const shownAction = `{
  "action_id": "a",
  "id": "clm_a",
  "contract_id": "c",
  "contract_version": 1,
  "workflow_id": null,
  "agent_id": null,
  "action_type": "t",
  "subject_id": "s",
  "subject_kind": "record",
  "requested_at": "1970-01-01T00:00:00Z",
  "params": {},
  "channel": null,
  "compensates": null,
  "trace_id": null,
  "span_id": null,
  "session_id": null,
  "reference_id": null
 }`
	want := `{
 "action": ` + shownAction + `,
 "status": "unverified",
 "outcome": null,
 "policy": null,
 "checks": [],
 "summary": {
  "headline": "UNVERIFIED — recorded, not verified yet",
  "evidence_trust": null
 },
 "settlement": {
  "settles_at": "1970-01-01T00:01:30Z",
  "next_check_at": null,
  "waiting_on": [],
  "stale_sources": []
 },
 "sources": [],
 "reversal": null,
 "previous": null,
 "changed": false,
 "resolution": null,
 "run": null,
 "dry_run": false
}`
	if diff := cmp.Diff(want, text(t, before)); diff != "" {
		t.Error(diff)
	}
	stored := action("a")
	stored.Latest = run(ledger.Settled, engine.NotVerified)
	after, err := Make(Parts{Stored: stored, Previous: run(ledger.Pending, engine.Unverifiable)})
	if err != nil {
		t.Fatal(err)
	}
	lens := func(verdict, raw string) string {
		return `{"verdict":"` + verdict + `","raw_verdict":"` + raw + `","reasons":[],"hash":"0000000000000000000000000000000000000000000000000000000000000000"}`
	}
	wantAfter := `{"status":"pending","outcome":` + lens("FAIL", "NOT_VERIFIED") + `,"policy":` + lens("UNKNOWN", "UNVERIFIABLE") +
		`,"run":{"id":"run_2","seq":2,"computed_at":"1970-01-01T00:01:40Z","triggered_by":"action"}}`
	previous, err := json.Marshal(after.Previous)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantAfter, string(previous)); diff != "" {
		t.Error(diff)
	}
}

// TestD18_ResolutionFollowsTheCorrection: under the policy lens, once it is settled.
func TestD18_ResolutionFollowsTheCorrection(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name    string
		latest  *ledger.Run
		settled engine.RawVerdict
		state   string
		at      engine.Instant
		suffix  string
	}{
		{"not verified", nil, "", Compensating, 50, ""},
		{"provisional pass", run(ledger.Pending, engine.Verified), "", Compensating, 50, ""},
		{"settled pass", run(ledger.Settled, engine.Verified), engine.Verified, Compensated, 100, " · COMPENSATED by b"},
		{"settled fail", run(ledger.Settled, engine.NotVerified), engine.NotVerified, CompensationFailed, 100, ""},
		{"settled unknown", run(ledger.Settled, engine.Unverifiable), engine.Unverifiable, CompensationFailed, 100, ""},
		{"settled pass, provisional again", run(ledger.Pending, engine.NotVerified), engine.Verified, Compensated, 100, " · COMPENSATED by b"},
		{"settled fail, provisional again", run(ledger.Pending, engine.Verified), engine.NotVerified, CompensationFailed, 100, ""},
	} {
		failed, by := action("a"), action("b")
		failed.Latest, by.Latest = run(ledger.Settled, engine.NotVerified), row.latest
		v, err := Make(Parts{Stored: failed, Compensation: &ledger.Compensation{By: by, Settled: row.settled}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&Resolution{row.state, "b", "clm_b", row.at}, v.Resolution); diff != "" {
			t.Errorf("%s: %s", row.name, diff)
		}
		if want := "FAIL — something" + row.suffix; v.Summary.Headline != want {
			t.Errorf("%s: headline %q, want %q", row.name, v.Summary.Headline, want)
		}
		if v.Policy.Verdict != "FAIL" {
			t.Errorf("%s: the verdict changed to %s", row.name, v.Policy.Verdict)
		}
	}
}

// TestViewReadsBack: the command line reads over HTTP what the sidecar wrote.
func TestViewReadsBack(t *testing.T) {
	t.Parallel()
	stored := action("a")
	stored.Action.Params = engine.Object{}
	stored.Latest = run(ledger.Settled, engine.NotVerified)
	v, err := Make(Parts{Stored: stored})
	if err != nil {
		t.Fatal(err)
	}
	var read Verification
	if err := json.Unmarshal([]byte(text(t, v)), &read); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(text(t, v), text(t, read)); diff != "" {
		t.Error(diff)
	}
	if read.Action.ParamsCaptured == nil || *read.Action.ParamsCaptured || read.Action.Params.Captured() {
		t.Error("params that were not captured read back as captured")
	}
}

func TestUnreadableReportIsAnError(t *testing.T) {
	t.Parallel()
	stored := action("a")
	stored.Latest = run(ledger.Settled, engine.NotVerified)
	stored.Latest.Report = json.RawMessage(`{`)
	if _, err := Make(Parts{Stored: stored}); err == nil || err.Error() != `report of run "run_2": unexpected end of JSON input` {
		t.Errorf("got %v", err)
	}
}
