package api

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// TestRejectedFactsAreListed: of the caller's tenant, narrowed by source and time.
func TestRejectedFactsAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	early, late := instant(t, "2026-09-28T10:00:00Z"), instant(t, "2026-09-28T10:30:00Z")
	reject := func(tenant, source string, at engine.Instant) {
		r := ledger.RejectedFact{
			Kind: "fact", Source: source, Connection: "hook", Reason: "source", Error: "none of this exporter's",
			RawRef: "re_1", SubjectID: "order_1", Item: `{"source":"` + source + `"}`,
		}
		if err := f.store.Update(t.Context(), func(tx ledger.Tx) error {
			return tx.RejectFacts(t.Context(), tenant, []ledger.RejectedFact{r}, at)
		}); err != nil {
			t.Fatal(err)
		}
	}
	reject(tenantA, "stripe", early)
	reject(tenantA, "stripe", late)
	reject(tenantA, "crm", early)
	reject(tenantB, "shopify", late)
	get := func(query string) (list RejectedList) {
		t.Helper()
		f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/facts/rejected"+query, "").decode(t, &list)
		return list
	}
	one := func(source string, first, last engine.Instant, times int) RejectedFact {
		return RejectedFact{
			Kind: "fact", Source: source, Connection: "hook", Reason: "source", Error: "none of this exporter's",
			RawRef: "re_1", SubjectID: "order_1", Item: `{"source":"` + source + `"}`, ReceivedAt: first, LastAt: last, Times: times,
		}
	}
	want := RejectedList{
		Rejected: []RejectedFact{one("stripe", early, late, 2), one("crm", early, early, 1)},
		Sources:  []RejectedCount{{"crm", 1, 1, early}, {"stripe", 1, 2, late}},
	}
	if diff := cmp.Diff(want, get("")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	want = RejectedList{Rejected: want.Rejected[:1], Sources: want.Sources[1:]}
	if diff := cmp.Diff(want, get("?source=Stripe&since=2026-09-28T10:15:00Z")); diff != "" {
		t.Errorf("narrowed (-want +got):\n%s", diff)
	}
	f.must(t, http.StatusUnprocessableEntity, ledger.RoleViewer, "GET", "/v1/facts/rejected?since=yesterday", "")
}

// TestSourcesShowTheirLag: silence is no watermark, and has no lag.
func TestSourcesShowTheirLag(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.must(t, http.StatusOK, ledger.RoleEvidence, "POST", "/v1/facts", `{"facts": [`+refunded+`], "watermarks": {"crm": "2026-09-28T08:39:30Z"}}`)
	var list SourceList
	f.must(t, http.StatusOK, ledger.RoleViewer, "GET", "/v1/sources", "").decode(t, &list)
	lags := map[string]any{}
	for _, s := range list.Sources {
		lags[s.Source] = nil
		if s.Lag != nil {
			lags[s.Source] = []any{*s.Lag, *s.BehindSeconds}
		}
	}
	if diff := cmp.Diff(map[string]any{"crm": []any{"2h 10m", int64(7830)}, "stripe": nil}, lags); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
