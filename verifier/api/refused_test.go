package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/ledger"
)

// rejectedLines are what the store kept, a line each.
func rejectedLines(t *testing.T, f *fixture, role string) (lines []string, list RejectedList) {
	t.Helper()
	f.must(t, http.StatusOK, role, "GET", "/v1/facts/rejected?limit=1000", "").decode(t, &list)
	for _, r := range list.Rejected {
		text, by, _ := strings.Cut(r.Error, "; pushed with the key ")
		if !strings.HasPrefix(by, "cs_") {
			t.Errorf("it does not say who pushed: %s", r.Error)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s %d: %s", r.Kind, r.Source, r.Reason, r.RawRef, r.SubjectID, r.Times, text))
	}
	slices.Sort(lines)
	return lines, list
}

// TestPushedEvidenceThatIsNotTakenIsKept: its sender is told; who misses it later finds it with the reason.
func TestPushedEvidenceThatIsNotTakenIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(refunded))
	push := `{"facts": [` + noted + `,
		{"source": "CRM", "subject_id": "order_9", "fact_type": "note_added", "raw_ref": "n_9"},
		{"source": "erp", "subject_id": "order_9", "fact_type": "note_added", "occurred_at": "2026-09-28T10:42:00Z"},
		` + strings.Replace(refunded, "180.0", "999.0", 1) + `, 7],
		"links": [{"subject_id": "order_10231"}],
		"watermarks": {"erp": "2026-09-28T10:42:00Z", "crm": "9999-01-01T00:00:00Z"}}`
	for range 2 {
		f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", push)
	}
	lines, list := rejectedLines(t, f, ledger.RoleViewer)
	want := []string{
		"fact  invalid   2: /facts/4 is a number; send an object {...}",
		"fact crm invalid n_9 order_9 2: /facts/1/occurred_at is missing",
		"fact erp source  order_9 2: /facts/2/source source \"erp\" is none of this key's sources: crm, messaging, shopify, stripe",
		"fact stripe conflicting re_1 order_10231 2: a fact with this raw_ref and other content is known already; the first one stands",
		"link  invalid  order_10231 2: /links/0/linked_subject_id is missing",
		"watermark crm invalid   2: /watermarks/crm lies ahead of now, and could never be taken back; send the time up to which everything has been sent",
		"watermark erp source   2: /watermarks/erp source \"erp\" is none of this key's sources: crm, messaging, shopify, stripe",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, r := range list.Rejected {
		if r.Kind == "watermark" && r.Source == "crm" && r.Item != `{"source":"crm","watermark":"9999-01-01T00:00:00Z"}` ||
			r.Reason == "conflicting" && !strings.Contains(r.Item, `"attributes":{"amount":999.0`) {
			t.Errorf("item %s", r.Item)
		}
	}
}

// TestInlineEvidenceThatIsNotTakenIsKept, unless nothing is to be stored. A dry run uses up no room either.
func TestInlineEvidenceThatIsNotTakenIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusCreated, ledger.RoleRecorder, "POST", "/v1/actions", refundAction)
	body := `{"action_id": "act_1", "facts": [{"source": "crm"}%s], "dry_run": %t}`
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/actions/verify", fmt.Sprintf(body, strings.Repeat(`,{"source": "crm"}`, 1000), true))
	if lines, _ := rejectedLines(t, f, ledger.RoleViewer); lines != nil {
		t.Errorf("a dry run kept %v", lines)
	}
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/actions/verify", fmt.Sprintf(body, "", false))
	lines, _ := rejectedLines(t, f, ledger.RoleViewer)
	if diff := cmp.Diff([]string{"fact crm invalid   1: /facts/0/fact_type is missing"}, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFloodOfRejectedPushesIsBounded: an evidence key cannot fill the store with what is no evidence.
func TestFloodOfRejectedPushesIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	push := func(fact func(int) string, times int) {
		for n := range times {
			var all []string
			for i := range 1000 {
				all = append(all, fact(n*1000+i))
			}
			f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", facts(all...))
		}
	}
	push(func(i int) string { return fmt.Sprintf(`{"source": "crm", "raw_ref": "n_%d"}`, i) }, 3)
	push(func(i int) string {
		return fmt.Sprintf(`{"source":"invented%d","fact_type":"refund_created","subject_id":"o","occurred_at":"2026-09-28T10:42:07Z"}`, i)
	}, 2)
	same := func(amount int) func(int) string {
		return func(i int) string {
			return fmt.Sprintf(`{"source":"stripe","fact_type":"refund_created","subject_id":"o","occurred_at":"2026-09-28T10:42:07Z","raw_ref":"re_%d","attributes":{"amount":%d}}`, i, amount)
		}
	}
	push(same(1), 1)
	push(same(2), 1)
	_, list := rejectedLines(t, f, ledger.RoleViewer)
	items, times := map[string]int{}, map[string]int{}
	for _, c := range list.Sources {
		name := strings.TrimRight(c.Source, "0123456789")
		items[name] += c.Items
		times[name] += c.Times
	}
	if items["crm"] != 1001 || times["crm"] != 3000 {
		t.Errorf("crm: %d lines for %d", items["crm"], times["crm"])
	}
	if times["invented"]+times[""] != 2000 || items["invented"]+items[""] != 1001 {
		t.Errorf("invented: %d lines for %d", items["invented"]+items[""], times["invented"]+times[""])
	}
	if items["stripe"] != 101 || times["stripe"] != 1000 {
		t.Errorf("conflicting: %d lines for %d", items["stripe"], times["stripe"])
	}
}
