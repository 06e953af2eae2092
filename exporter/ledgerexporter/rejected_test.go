package ledgerexporter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/ledger"
)

func evidenceOf(sources ...string) func(*Config) {
	return func(c *Config) { c.Role, c.Sources, c.Connection = Evidence, sources, "hook" }
}

// rejectedLines are what a store kept of a tenant, a line each: kind, source, reason, reference, times.
func rejectedLines(t *testing.T, store ledger.Ledger, tenant string) (lines []string, found []ledger.RejectedFact) {
	t.Helper()
	if err := store.View(t.Context(), func(tx ledger.Tx) (err error) {
		found, err = tx.RejectedFacts(t.Context(), tenant, ledger.RejectedFilter{Limit: 100})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for _, r := range found {
		lines = append(lines, strings.Join([]string{r.Kind, r.Source, r.Connection, r.Reason, r.RawRef, strings.Repeat("x", r.Times)}, " "))
	}
	slices.Sort(lines)
	return lines, found
}

func refund1(ref, attributes string) func(ptrace.Span) {
	return func(span ptrace.Span) {
		object, err := engine.ParseObject([]byte(attributes))
		if err != nil {
			panic(err)
		}
		record.AppendFact(span.Attributes(), record.Fact{Fact: engine.Fact{
			RawRef: ref, Source: "stripe", Type: "refund_created", SubjectID: "order_001", OccurredAt: 1790592125, Attributes: object,
		}})
	}
}

// TestRejectedEvidenceIsKept with the reason, once however often it comes, and the good rows beside it are stored.
func TestRejectedEvidenceIsKept(t *testing.T) {
	t.Parallel()
	b := setup(t, evidenceOf("stripe"))
	foreign := factOf(t, "stripe", "order_001")
	foreign.Tenant = "victim"
	batch := spans(
		refund1("re_1", `{"amount": 20}`), refund1("re_1", `{"amount": 21}`), refund1("re_2", `{}`),
		withFact(factOf(t, "crm", "order_001")), withFact(factOf(t, engine.AgentSource, "order_001")), withFact(foreign),
		func(s ptrace.Span) {
			m := s.Attributes().PutEmptySlice(record.FactsKey).AppendEmpty().SetEmptyMap()
			m.PutStr("source", "stripe")
			m.PutStr("raw_ref", "re_3")
			m.PutStr("occurred_at", "yesterday\x00")
		},
		func(s ptrace.Span) {
			record.AppendLink(s.Attributes(), record.Link{Source: "crm", Link: engine.Link{SubjectID: "order_001", LinkedSubjectID: "ticket_1"}})
		},
		withAction(refund(1)), // no evidence, and only counted
	)
	b.write(t, batch)
	b.write(t, batch)
	got, found := rejectedLines(t, b.store, engine.DefaultTenant)
	agents, crm := factOf(t, engine.AgentSource, "order_001").Fact.RawRef, factOf(t, "crm", "order_001").Fact.RawRef
	want := []string{
		"fact crm hook source " + crm + " xx",
		"fact otel hook role " + agents + " xx",
		"fact stripe hook conflicting re_1 xx",
		"fact stripe hook tenant " + foreign.Fact.RawRef + " xx",
		"fact stripe hook unreadable re_3 xx",
		"link crm hook source  xx",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rejected (-want +got):\n%s", diff)
	}
	for _, r := range found {
		if r.Error == "" || !strings.HasPrefix(r.Item, "{") || r.ReceivedAt != 1790592300 {
			t.Errorf("%+v", r)
		}
		if r.Reason == reasonConflicting && !strings.Contains(r.Item, `"attributes":{"amount":21}`) {
			t.Errorf("conflicting: %s", r.Item)
		}
	}
	if theirs, _ := rejectedLines(t, b.store, "victim"); theirs != nil {
		t.Errorf("kept for another tenant: %v", theirs)
	}
	if refs := factRefs(t, b.store, "re_1", "re_2", "re_3"); !slices.Equal(refs, []string{"re_1", "re_2"}) {
		t.Errorf("facts %v", refs)
	}
}

// TestEveryConflictCounts: the store names a hundred of a batch.
func TestEveryConflictCounts(t *testing.T) {
	t.Parallel()
	b := setup(t, evidenceOf("stripe"))
	all := func(attributes string) (list []func(ptrace.Span)) {
		for i := range 150 {
			list = append(list, refund1(fmt.Sprintf("re_%d", i), attributes))
		}
		return list
	}
	b.write(t, spans(all(`{"amount": 20}`)...))
	b.write(t, spans(all(`{"amount": 21}`)...))
	if items, times := rejectedCount(t, b.store, "stripe"); items != 101 || times != 150 {
		t.Errorf("%d lines for %d conflicts", items, times)
	}
}

func factRefs(t *testing.T, store ledger.Ledger, refs ...string) (found []string) {
	t.Helper()
	if err := store.View(t.Context(), func(tx ledger.Tx) error {
		facts, err := tx.FactsByRef(t.Context(), engine.DefaultTenant, refs)
		for _, f := range facts {
			found = append(found, f.RawRef)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// TestRecorderKeepsNothingAside: agents must not fill a table with what they may not write.
func TestRecorderKeepsNothingAside(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	b.write(t, spans(withFact(factOf(t, "stripe", "order_001")), withAction(refund(1))))
	if got, _ := rejectedLines(t, b.store, engine.DefaultTenant); got != nil {
		t.Errorf("kept %v", got)
	}
}

// TestPoisonousEvidenceIsKept: a fact that the database refuses lies beside the others, with the database's words.
func TestPoisonousEvidenceIsKept(t *testing.T) {
	t.Parallel()
	w, r := setupRefusing(t)
	evidence := NewDefaultConfig()
	evidenceOf("stripe")(evidence)
	w.sorter = newSorter(evidence)
	r.ref = "re_2"
	batch := spans(refund1("re_1", `{}`), refund1("re_2", `{}`), refund1("re_3", `{}`))
	if err := w.traces(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	got, found := rejectedLines(t, r.Ledger, engine.DefaultTenant)
	if diff := cmp.Diff([]string{"fact stripe hook store re_2 x"}, got); diff != "" || !strings.Contains(found[0].Error, errConstraint.Error()) {
		t.Errorf("%v (-want +got):\n%s", found, diff)
	}
	if refs := factRefs(t, r.Ledger, "re_1", "re_2", "re_3"); !slices.Equal(refs, []string{"re_1", "re_3"}) {
		t.Errorf("facts %v", refs)
	}
}

// TestRejectedEvidenceWaitsForTheStore: nothing is acknowledged before it is kept.
func TestRejectedEvidenceWaitsForTheStore(t *testing.T) {
	t.Parallel()
	w, r := setupRefusing(t)
	evidence := NewDefaultConfig()
	evidenceOf("stripe")(evidence)
	w.sorter = newSorter(evidence)
	batch := spans(withFact(factOf(t, "crm", "order_001")))
	r.whole = []error{ledger.ErrUnavailable}
	if err := w.traces(t.Context(), batch); !errors.Is(err, ledger.ErrUnavailable) {
		t.Errorf("error %v", err)
	}
	if err := w.traces(t.Context(), batch); err != nil {
		t.Error(err)
	}
	if got, _ := rejectedLines(t, r.Ledger, engine.DefaultTenant); len(got) != 1 {
		t.Errorf("kept %v", got)
	}
}
