package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/view"
)

func TestRecordingDoesNotVerify(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	want := `{"action":{"action_id":"act_1","id":"` + claimID(tenantA, "act_1") + `","contract_id":"refund_workflow","contract_version":1,` +
		`"workflow_id":"wf_1","agent_id":"support-agent","action_type":"refund_order","subject_id":"order_10231","subject_kind":"order",` +
		`"requested_at":"2026-09-28T10:42:00Z","params":{"amount":180.0,"currency":"USD"},"channel":"whatsapp","compensates":null,` +
		`"trace_id":null,"span_id":null,"session_id":null,"reference_id":null,"latest":null}}`
	if diff := cmp.Diff(want, first.body); diff != "" {
		t.Error(diff)
	}
	again := f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "180.0", "190.50", 1))
	if want := strings.Replace(want, "180.0", "190.50", 1); again.body != want {
		t.Error(cmp.Diff(want, again.body))
	}
	got := f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1", "")
	var shown view.Verification
	got.decode(t, &shown)
	if shown.Status != view.Unverified || shown.Run != nil || shown.Outcome != nil {
		t.Errorf("recording verified: %s", got.body)
	}
}

func TestD15_VerifyAutoIsDue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.settling(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, cancelled, noted, notified))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "{", `{"verify": "auto", `, 1))
	var waited Waited
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1/wait?timeout=20", "").decode(t, &waited)
	if waited.TimedOut || waited.Policy == nil || waited.Policy.Verdict != "PASS" {
		t.Errorf("got %+v", waited)
	}
}

// TestViewIsTheInterface pins every byte of a verification, hashes aside.
func TestViewIsTheInterface(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	got := f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`)
	var shown Verified
	got.decode(t, &shown)
	text := strings.NewReplacer(shown.Outcome.Hash, "<outcome>", shown.Policy.Hash, "<policy>").Replace(got.body)
	want := compactJSON(t, `{
		"action": {"action_id": "act_1", "id": "`+claimID(tenantA, "act_1")+`", "contract_id": "refund_workflow", "contract_version": 1,
			"workflow_id": "wf_1", "agent_id": "support-agent", "action_type": "refund_order", "subject_id": "order_10231",
			"subject_kind": "order", "requested_at": "2026-09-28T10:42:00Z", "params": {"amount": 180.0, "currency": "USD"},
			"channel": "whatsapp", "compensates": null, "trace_id": null, "span_id": null, "session_id": null, "reference_id": null},
		"status": "pending",
		"outcome": {"verdict": "FAIL", "raw_verdict": "NOT_VERIFIED", "reasons": ["verified_condition_not_met",
			"expected_effect_missing:shopify.order_cancelled", "expected_effect_missing:crm.note_added",
			"expected_effect_missing:messaging.customer_notified"], "hash": "<outcome>"},
		"policy": {"verdict": "FAIL", "raw_verdict": "NOT_VERIFIED", "reasons": ["verified_condition_not_met",
			"expected_effect_missing:shopify.order_cancelled", "expected_effect_missing:crm.note_added",
			"expected_effect_missing:messaging.customer_notified"], "hash": "<policy>"},
		"checks": [
			{"section": "preconditions", "code": "precondition_unmet:shopify.order_status", "ok": true,
				"message": "`+message(t, f, 0)+`", "description": "`+description(t, f, 0)+`", "value": null,
				"evidence": {"kind": "fact", "raw_ref": "sh_1", "source": "shopify", "fact_type": "order_status", "occurred_at": "2026-09-28T10:41:30Z"}},
			{"section": "limits", "code": "limit_exceeded:amount", "ok": true, "message": null, "description": "`+description(t, f, 1)+`",
				"value": "180", "evidence": {"kind": "claim", "raw_ref": "agent_api:action:act_1"}},
			{"section": "forbidden_effects", "code": "duplicate_effect:stripe.refund_created", "ok": true, "message": null,
				"description": "`+description(t, f, 2)+`", "value": "1", "evidence": null},
			{"section": "forbidden_effects", "code": "forbidden_effect_observed:stripe.refund_created", "ok": true, "message": null,
				"description": "`+description(t, f, 3)+`", "value": null, "evidence": null},
			{"section": "expected_effects", "code": "effect_observed:stripe.refund_created", "ok": true, "message": "`+message(t, f, 4)+`",
				"description": "`+description(t, f, 4)+`", "value": null,
				"evidence": {"kind": "fact", "raw_ref": "re_1", "source": "stripe", "fact_type": "refund_created", "occurred_at": "2026-09-28T10:42:07Z"}},
			{"section": "expected_effects", "code": "expected_effect_missing:shopify.order_cancelled", "ok": false, "message": "`+message(t, f, 5)+`",
				"description": "`+description(t, f, 5)+`", "value": null, "evidence": null},
			{"section": "expected_effects", "code": "expected_effect_missing:crm.note_added", "ok": false, "message": "`+message(t, f, 6)+`",
				"description": "`+description(t, f, 6)+`", "value": null, "evidence": null},
			{"section": "expected_effects", "code": "expected_effect_missing:messaging.customer_notified", "ok": false, "message": "`+message(t, f, 7)+`",
				"description": "`+description(t, f, 7)+`", "value": null, "evidence": null}],
		"summary": {"headline": "PENDING — 1 of 4 expected effects observed so far; window closes 2026-09-28T10:57:00Z", "evidence_trust": "shared"},
		"settlement": {"settles_at": "2026-09-28T10:57:00Z", "next_check_at": "2026-09-28T10:57:00Z", "waiting_on": [], "stale_sources": []},
		"sources": [{"source": "shopify", "trust": "shared", "watermark": null}, {"source": "stripe", "trust": "shared", "watermark": null},
			{"source": "crm", "trust": null, "watermark": null}, {"source": "messaging", "trust": null, "watermark": null}],
		"reversal": null, "previous": null, "changed": false, "resolution": null,
		"run": {"id": "run_2", "seq": 2, "computed_at": "2026-09-28T10:50:00Z", "triggered_by": "action"},
		"dry_run": false}`)
	if diff := cmp.Diff(indentedJSON(t, want), indentedJSON(t, text)); diff != "" {
		t.Error(diff)
	}
}

// message and description are the contract's own words of a check.
func message(t *testing.T, f *fixture, check int) string {
	t.Helper()
	return refundContract(t, f).Checks[check].Message
}

func description(t *testing.T, f *fixture, check int) string {
	t.Helper()
	return refundContract(t, f).Checks[check].Call.Describe()
}

// TestWorkedTable is the worked table of the specification's full example, over HTTP.
func TestWorkedTable(t *testing.T) {
	t.Parallel()
	second := strings.NewReplacer("re_1", "re_2", "10:42:07", "10:43:07").Replace(refunded)
	large := func(fact string) string { return strings.Replace(fact, "180.0", "400", 1) }
	for _, row := range []struct {
		name, action, facts string
		now                 string
		status              string
		outcome, policy     string
		reasons             []string
		headline            string
	}{
		{
			name: "no cancellation", action: refundAction, facts: facts(eligible, refunded, noted, notified), now: "2026-09-28T10:57:00Z",
			status: "settled", outcome: "FAIL", policy: "FAIL",
			reasons:  []string{"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled"},
			headline: "FAIL — {5}",
		},
		{
			name: "with the cancellation", action: refundAction, facts: facts(eligible, refunded, cancelled, noted, notified), now: "2026-09-28T10:50:00Z",
			status: "settled", outcome: "PASS", policy: "PASS",
			reasons: []string{
				"effect_observed:stripe.refund_created", "effect_observed:shopify.order_cancelled",
				"effect_observed:crm.note_added", "effect_observed:messaging.customer_notified",
			},
			headline: "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected",
		},
		{
			name: "not eligible, twice, too much", action: large(refundAction),
			facts: facts(strings.Replace(eligible, `"eligible"`, `"fulfilled"`, 1), large(refunded), large(second), cancelled, noted, notified),
			now:   "2026-09-28T10:50:00Z", status: "settled", outcome: "PASS", policy: "FAIL",
			reasons: []string{
				"precondition_unmet:shopify.order_status", "limit_exceeded:amount",
				"duplicate_effect:stripe.refund_created", "forbidden_effect_observed:stripe.refund_created",
			},
			headline: "FAIL — {0}",
		},
		{
			name: "nothing known of the subject", action: refundAction, facts: `{}`, now: "2026-09-28T10:57:00Z",
			status: "settled", outcome: "UNKNOWN", policy: "UNKNOWN", reasons: []string{"identity_unmatched"},
			headline: "UNKNOWN — Subject not found in fact sources",
		},
		{
			name: "just now", action: refundAction, facts: facts(eligible, refunded), now: "2026-09-28T10:43:00Z",
			status: "pending", outcome: "FAIL", policy: "FAIL",
			reasons: []string{
				"verified_condition_not_met", "expected_effect_missing:shopify.order_cancelled",
				"expected_effect_missing:crm.note_added", "expected_effect_missing:messaging.customer_notified",
			},
			headline: "PENDING — 1 of 4 expected effects observed so far; window closes 2026-09-28T10:57:00Z",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.clock.Store(int64(instant(t, row.now)))
			f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", row.facts)
			f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", row.action)
			var got Verified
			f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &got)
			headline := row.headline
			for i, check := range refundContract(t, f).Checks {
				headline = strings.ReplaceAll(headline, fmt.Sprintf("{%d}", i), check.Message)
			}
			type result struct {
				Status, Outcome, Policy string
				Reasons                 []string
				Headline                string
			}
			want := result{row.status, row.outcome, row.policy, row.reasons, headline}
			if diff := cmp.Diff(want, result{got.Status, got.Outcome.Verdict, got.Policy.Verdict, got.Policy.Reasons, got.Summary.Headline}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestVerifyInlineRecordsAndTakesFacts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	body := strings.TrimSuffix(refundAction, "}") + `, ` + strings.TrimPrefix(facts(eligible, refunded, cancelled, noted, notified, `{"source": 7}`), "{")
	var got Verified
	f.must(t, http.StatusOK, ledger.RoleAnalyst, "POST", "/v1/actions/verify", body).decode(t, &got)
	want := &Pushed{Ingested: 5, Rejected: []Rejected{{Index: index(5), Pointer: "/facts/5/source", Error: "is a number; send a text"}}}
	if diff := cmp.Diff(want, got.Facts); diff != "" {
		t.Error(diff)
	}
	if got.Policy.Verdict != "PASS" || got.DryRun || got.Run.Seq == 0 {
		t.Errorf("got %+v", got.Verification)
	}
}

func TestManualVerificationNamesWhatItReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var first, second Verified
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &first)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(cancelled, noted, notified))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &second)
	want := &view.Previous{Status: "pending", Outcome: first.Outcome, Policy: first.Policy, Run: first.Run}
	if diff := cmp.Diff(want, second.Previous); diff != "" {
		t.Error(diff)
	}
	if !second.Changed || second.Run.TriggeredBy != "manual" {
		t.Errorf("changed %t, triggered by %s", second.Changed, second.Run.TriggeredBy)
	}
	var read view.Verification
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/"+claimID(tenantA, "act_1"), "").decode(t, &read)
	if diff := cmp.Diff(second.Verification, read, objects); diff != "" {
		t.Errorf("read after verification: %s", diff)
	}
	var history History
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/act_1/runs", "").decode(t, &history)
	if len(history.Runs) != 2 || history.Runs[0].ID != first.Run.ID || history.Runs[1].PreviousSeq == nil || *history.Runs[1].PreviousSeq != first.Run.Seq {
		t.Errorf("history: %+v", history.Runs)
	}
}

func TestDryRunLeavesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	body := strings.TrimSuffix(refundAction, "}") + `, "dry_run": true, "links": [{"subject_id": "order_10231", "linked_subject_id": "ticket_9"}],
		"watermarks": {"crm": "2026-09-28T10:45:00Z"}, ` + strings.TrimPrefix(facts(eligible, refunded, cancelled, noted, notified), "{")
	for _, role := range []string{ledger.RoleAnalyst, ledger.RoleEvidence} {
		var got Verified
		f.must(t, http.StatusOK, role, "POST", "/v1/actions/verify", body).decode(t, &got)
		if got.Policy.Verdict != "PASS" || !got.DryRun || got.Run.Seq != 0 || got.Facts.Ingested != 5 {
			t.Errorf("%s: %+v", role, got)
		}
	}
	if got := f.do(t, ledger.RoleViewer, "GET", "/v1/actions/act_1", ""); got.status != http.StatusNotFound {
		t.Errorf("the action was recorded: %s", got.body)
	}
	var pushed Pushed
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible)).decode(t, &pushed)
	if pushed.Ingested != 1 {
		t.Errorf("the fact was known: %+v", pushed)
	}
	var sources SourceList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/sources", "").decode(t, &sources)
	if len(sources.Sources) != 1 {
		t.Errorf("sources: %+v", sources)
	}
	err := f.store.View(context.Background(), func(tx ledger.Tx) error {
		head, err := tx.ChainHead(context.Background(), tenantA)
		if head.Seq != 0 {
			t.Errorf("the chain has %d verdicts", head.Seq)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestCompensationShowsBesideTheVerdict(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.clock.Store(int64(instant(t, "2026-09-28T10:57:00Z")))
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(eligible, refunded, noted, notified))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var failed, now Verified
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &failed)

	other := strings.NewReplacer("order_10231", "order_2", `"sh_`, `"x_sh_`, `"re_1"`, `"x_re_1"`, "crm_1", "x_crm_1", "msg_1", "x_msg_1")
	correction := other.Replace(strings.NewReplacer("act_1", "act_2", `"channel"`, `"compensates": "act_1", "channel"`).Replace(refundAction))
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", correction)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1", "").decode(t, &now)
	if now.Resolution == nil || now.Resolution.State != view.Compensating || now.Resolution.By != "act_2" {
		t.Errorf("resolution: %+v", now.Resolution)
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", other.Replace(facts(eligible, refunded, cancelled, noted, notified)))
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_2"}`)
	f.must(t, http.StatusOK, ledger.RoleRecorder, "GET", "/v1/actions/act_1", "").decode(t, &now)
	want := &view.Resolution{State: view.Compensated, By: "act_2", ByClaimID: claimID(tenantA, "act_2"), At: instant(t, "2026-09-28T10:57:00Z")}
	if diff := cmp.Diff(want, now.Resolution); diff != "" {
		t.Error(diff)
	}
	if want := failed.Summary.Headline + " · COMPENSATED by act_2"; now.Summary.Headline != want {
		t.Errorf("headline %q, want %q", now.Summary.Headline, want)
	}
	if now.Policy.Hash != failed.Policy.Hash {
		t.Error("the compensation changed the verdict's hash")
	}
	for _, word := range []string{"COMPENSATED", "compensated", "Compensated"} {
		var page Page
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions?verdict="+word, "").decode(t, &page)
		if len(page.Actions) != 1 || page.Actions[0].Action.ActionID != "act_1" || page.Actions[0].Summary.Headline != now.Summary.Headline {
			t.Errorf("list of %s: %+v", word, page.Actions)
		}
	}
	var counts Counts
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/summary?verdict=fail", "").decode(t, &counts)
	if counts.Total != 1 {
		t.Errorf("verdict=fail counts %+v", counts)
	}
	counts = Counts{}
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/actions/summary", "").decode(t, &counts)
	if diff := cmp.Diff(Counts{Total: 2, Pass: 1, Fail: 1, Compensated: 1}, counts); diff != "" {
		t.Error(diff)
	}
}

// TestRequestedAtIsTheTimeOfRecordingOnlyWhereNoneIsSent: the first moment that there is, is one that was sent.
func TestRequestedAtIsTheTimeOfRecordingOnlyWhereNoneIsSent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const sent = `"requested_at": "2026-09-28T10:42:00Z",`
	if strings.Count(refundAction, sent) != 1 {
		t.Fatal("the example says nothing of the time")
	}
	for instead, want := range map[string]string{
		`"requested_at": "1970-01-01T00:00:00Z",`: "1970-01-01T00:00:00Z",
		`"requested_at": null,`:                   engine.Instant(f.clock.Load()).String(),
		"":                                        engine.Instant(f.clock.Load()).String(),
	} {
		for path, status := range map[string]int{"/v1/actions": http.StatusCreated, "/v1/actions/verify": http.StatusOK} {
			var got struct {
				Action struct {
					RequestedAt string `json:"requested_at"`
				}
			}
			f.must(t, status, ledger.RoleAnalyst, "POST", path, strings.NewReplacer(sent, instead, "act_1", uuid.NewString()).Replace(refundAction)).decode(t, &got)
			if got.Action.RequestedAt != want {
				t.Errorf("%s with %q was requested at %s, want %s", path, instead, got.Action.RequestedAt, want)
			}
		}
	}
}

func TestListPagesThroughEverythingOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const total = 23
	for i := range total {
		f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", strings.Replace(refundAction, "act_1", fmt.Sprintf("act_%02d", i), 1))
	}
	seen := map[string]int{}
	path := "/v1/actions?limit=10"
	for pages := 0; path != ""; pages++ {
		var page Page
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", path, "").decode(t, &page)
		for _, row := range page.Actions {
			seen[row.Action.ActionID]++
			if row.Settlement.SettlesAt == nil {
				t.Errorf("%s has no settles_at", row.Action.ActionID)
			}
		}
		path = ""
		if page.Next != nil {
			path = "/v1/actions?limit=10&cursor=" + *page.Next
		}
		if pages > 3 {
			t.Fatal("the list does not end")
		}
	}
	if len(seen) != total {
		t.Errorf("%d of %d actions seen", len(seen), total)
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s seen %d times", id, n)
		}
	}
}

// TestPublicVerdictTellsWhatItsHashCovers: who puts a row under a known hash cannot
// have it say something else, not even in another tenant, whose chain nobody looks at.
func TestPublicVerdictTellsWhatItsHashCovers(t *testing.T) {
	t.Parallel()
	for _, forged := range []struct {
		name, document, want string
		status               int
	}{
		{"another verdict beside the document", "", `"raw_verdict":"UNVERIFIABLE"`, http.StatusOK},
		{"another document", `{"lens":"policy","raw_verdict":"VERIFIED"}`, `"code":"internal"`, http.StatusInternalServerError},
	} {
		t.Run(forged.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
			var verified Verified
			f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &verified)
			err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
				stored, err := find(t.Context(), tx, tenantA, "act_1")
				if err != nil {
					return err
				}
				_, err = tx.RecordActions(t.Context(), tenantB, []ledger.NewAction{{Action: stored.Action}}, 0)
				if err != nil {
					return err
				}
				run := *stored.Latest
				run.ClaimID, run.ComputedAt = engine.ClaimID(tenantB, "act_1"), run.ComputedAt-1
				run.Outcome.Raw, run.Policy.Raw = engine.Verified, engine.Verified
				if forged.document != "" {
					run.Policy.Document = forged.document
				}
				_, err = tx.StoreRuns(t.Context(), tenantB, []ledger.Run{run})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got := f.must(t, forged.status, "", "GET", "/v1/public/verdicts/"+verified.Policy.Hash, "")
			if !strings.Contains(got.body, forged.want) {
				t.Errorf("got %s, want %s", got.body, forged.want)
			}
		})
	}
}

func TestPublicEndpointsNeedNoKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var verified Verified
	f.must(t, http.StatusOK, ledger.RoleRecorder, "POST", "/v1/actions/verify", `{"action_id": "act_1"}`).decode(t, &verified)
	got := f.must(t, http.StatusOK, "", "GET", "/v1/public/verdicts/"+verified.Policy.Hash, "")
	want := `{"hash":"` + verified.Policy.Hash + `","raw_verdict":"UNVERIFIABLE","lens":"policy","contract_id":"refund_workflow","contract_version":1,"computed_at":"2026-09-28T10:50:00Z"}`
	if got.body != want {
		t.Error(cmp.Diff(want, got.body))
	}
	var definition Definition
	f.must(t, http.StatusOK, "", "GET", "/v1/public/definitions/refund_workflow", "").decode(t, &definition)
	if definition.Kind != "action" || definition.Window != "15m" || len(definition.Rules.ExpectedEffects) != 4 ||
		definition.LensLabels["vendor"] != "outcome" || definition.LensLabels["strict"] != "policy" || definition.UnverifiableIf == nil {
		t.Errorf("definition: %+v", definition)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/v1/healthz"} {
		f.must(t, http.StatusOK, "", "GET", path, "")
	}
}

func TestOrphansAreEffectsWithoutAnAction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stray := strings.NewReplacer("order_10231", "order_9", "re_1", "re_9").Replace(refunded)
	linked := strings.NewReplacer("order_10231", "ticket_9", "msg_1", "msg_9").Replace(notified)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts",
		`{"facts": [`+eligible+`,`+refunded+`,`+stray+`,`+linked+`], "links": [{"subject_id": "ticket_9", "linked_subject_id": "order_10231"}]}`)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	var list OrphanList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/reports/orphans", "").decode(t, &list)
	if len(list.Orphans) != 1 || list.Orphans[0].RawRef != "re_9" || len(list.Effects) != 4 {
		t.Errorf("orphans: %+v", list)
	}
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/reports/orphans?source=crm", "").decode(t, &list)
	if len(list.Orphans) != 0 || len(list.Effects) != 1 {
		t.Errorf("orphans of crm: %+v", list)
	}
}
