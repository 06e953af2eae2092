package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// FuzzVerifyBody: whatever a body holds, it is refused with a place or read
// into what a store takes, and what a recorder sends brings no evidence.
func FuzzVerifyBody(f *testing.F) {
	f.Add([]byte(`{"action_id": "act_1"}`))
	f.Add([]byte(`{"action_id": "act_1", "unavailable_sources": ["stripe"], "dry_run": true}`))
	f.Add([]byte(refundAction))
	f.Add([]byte(`{"contract_id": "refund_workflow", "subject_id": "order_1", "params": {"amount": 1e99, "note": "\u0000"},
		"facts": [` + eligible + `, {"source": "stripe"}, 7], "links": [{"subject_id": "a", "linked_subject_id": "b"}],
		"watermarks": {"crm": "2026-09-28T10:42:00+02:00", "CRM": null}}`))
	f.Add([]byte(`{"action_id": "a", "action_id": "b", "requested_at": "yesterday", "trace_id": "00"}`))
	f.Add([]byte(`[]`))
	f.Add([]byte("{\"action_id\": \"\xff\"}"))

	const now = engine.Instant(1_790_592_600)
	live := map[string]string{"bank": "connector"}
	f.Fuzz(func(t *testing.T, body []byte) {
		analyst, err := parseVerify(body, Analyst(tenantA), live, now)
		if err != nil {
			wantRefusal(t, err)
			return
		}
		wantTaken(t, analyst)
		recorder, err := parseVerify(body, Caller{ledger.Key{Tenant: tenantA, Role: ledger.RoleRecorder}}, live, now)
		if err == nil && (recorder.brings || len(recorder.evidence.facts)+len(recorder.evidence.links)+len(recorder.evidence.watermarks)+len(recorder.unavailable) > 0) {
			t.Errorf("a recorder brings evidence: %+v", recorder)
		}
	})
}

func wantRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *Problem
	if !errors.As(err, &refused) || refused.Status < http.StatusBadRequest || refused.Status >= http.StatusInternalServerError {
		t.Errorf("refused with %v, which does not tell the caller what to mend", err)
	}
	if _, err := json.Marshal(refused); err != nil {
		t.Errorf("the refusal cannot be told: %v", err)
	}
}

// wantTaken: what was read is normal already, so that no store rejects it behind the answer.
func wantTaken(t *testing.T, r verifyRequest) {
	t.Helper()
	if r.inline == nil && engine.CheckOpaque("action_id", r.ref) != nil {
		t.Errorf("reference %q is no id", r.ref)
	}
	if r.inline != nil {
		if _, err := r.inline.Action.Normalize(); err != nil {
			t.Errorf("an action was taken that cannot be recorded: %v", err)
		}
	}
	for _, fact := range r.evidence.facts {
		normal, err := fact.Normalize()
		if err != nil || normal.RawRef != fact.RawRef {
			t.Errorf("a fact was taken that cannot be stored: %v", err)
		}
		if fact.Source == "bank" {
			t.Error("a fact was taken for a source that a live connection serves")
		}
	}
	for _, link := range r.evidence.links {
		if err := link.Check(); err != nil {
			t.Errorf("a link was taken that cannot be stored: %v", err)
		}
	}
}

// FuzzRecordBody: a body is refused with a place, or is an action that can be recorded.
func FuzzRecordBody(f *testing.F) {
	f.Add([]byte(refundAction))
	f.Add([]byte(`{"contract_id": "REFUND_WORKFLOW", "contract_version": 2, "subject_id": "order_1", "verify": "auto", "params": null}`))
	f.Add([]byte(`{"action_id": "a", "compensates": "a", "contract_version": -1, "verify": true}`))
	f.Add([]byte(`{"params": {"a": 1, "A": 2}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		request, err := parseRecord(body, 1_790_592_600)
		if err != nil {
			wantRefusal(t, err)
			return
		}
		if _, err := request.Action.Normalize(); err != nil {
			t.Errorf("an action was taken that cannot be recorded: %v", err)
		}
	})
}
