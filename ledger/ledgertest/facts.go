package ledgertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// factsOf are the facts that a snapshot of an action has for a subject.
func (b *bundle) factsOf(action, subject string) []engine.Fact {
	b.t.Helper()
	return b.snapshot(action).FactsOf(subject)
}

func rawRefs(facts []engine.Fact) []string {
	var found []string
	for _, f := range facts {
		found = append(found, f.RawRef)
	}
	return found
}

func exerciseFacts(t *testing.T, open opener) {
	t.Run("D08_OneKnownAmongManyNew", func(t *testing.T) {
		b := setup(t, open)
		var batch []engine.Fact
		for i := range 100 {
			batch = append(batch, b.fact(fmt.Sprintf("re_%d", i), "crm", "note_added", "order_1", noon))
		}
		b.record(act("a", "order_1"))
		b.ingest(noon, batch[30])
		changed := batch[60]
		changed.OccurredAt++
		for _, want := range []ledger.Ingested{
			{Ingested: 99, Duplicates: 2, Conflicting: 1, ConflictingRefs: []string{"re_60"}, Woken: 1},
			{Duplicates: 101, Conflicting: 1, ConflictingRefs: []string{"re_60"}},
		} {
			wantSame(t, "counts", b.ingest(noon, append(batch[:100:100], batch[2], changed)...), want)
		}
		wantSame(t, "stored", len(b.factsOf("a", "order_1")), 100)
	})

	t.Run("D08_LargeBatchesCountExactly", func(t *testing.T) {
		b := setup(t, open)
		var batch []engine.Fact
		for i := range 203 { // no multiple of what a store may write at once
			batch = append(batch, b.fact(fmt.Sprintf("re_%d", i), "crm", "note_added", "order_1", noon+engine.Instant(i)))
		}
		known, other := batch[:100:100], batch[150]
		other.OccurredAt--
		b.ingest(noon, known...)
		changed := batch[70]
		changed.OccurredAt--
		again := append(append(append([]engine.Fact{}, batch[:70]...), changed), batch[71:]...)
		again = append(again, batch[160], other)
		wantSame(t, "counts", b.ingest(noon, again...), ledger.Ingested{
			Ingested: 103, Duplicates: 100, Conflicting: 2, ConflictingRefs: []string{"re_70", "re_150"},
		})
	})

	t.Run("D08_FirstStands", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		first := fact(t, "re_1", "stripe", "refund_created", "order_1", noon, `{"amount": 180.0}`)
		same := fact(t, "re_1", "stripe", "refund_created", "order_1", noon, `{ "amount" : 180.00 }`)
		conflict := fact(t, "re_1", "stripe", "refund_created", "order_1", noon, `{"amount": 181}`)
		kind := first
		kind.SubjectKind = "ticket"
		wantSame(t, "new", b.ingest(noon, first), ledger.Ingested{Ingested: 1, Woken: 1})
		wantSame(t, "again", b.ingest(noon, same), ledger.Ingested{Duplicates: 1})
		wantSame(t, "conflict", b.ingest(noon, conflict, kind, b.fact("re_2", "stripe", "refund_created", "order_1", noon)),
			ledger.Ingested{Ingested: 1, Conflicting: 2, ConflictingRefs: []string{"re_1", "re_1"}, Woken: 1})
		wantSame(t, "what stands", b.factsOf("a", "order_1")[0], first)
	})

	t.Run("D08_WithinOneBatch", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		first := b.fact("re_1", "stripe", "refund_created", "order_1", noon)
		conflict := fact(t, "re_1", "stripe", "refund_created", "order_1", noon, `{"amount": 1}`)
		wantSame(t, "counts", b.ingest(noon, first, first, conflict),
			ledger.Ingested{Ingested: 1, Duplicates: 1, Conflicting: 1, ConflictingRefs: []string{"re_1"}, Woken: 1})
		wantSame(t, "what stands", b.factsOf("a", "order_1"), []engine.Fact{first})
	})

	t.Run("D08_NamesAtMostHundred", func(t *testing.T) {
		b := setup(t, open)
		var first, second []engine.Fact
		for i := range 150 {
			ref := fmt.Sprintf("re_%d", i)
			first = append(first, b.fact(ref, "stripe", "refund_created", "order_1", noon))
			second = append(second, b.fact(ref, "stripe", "refund_created", "order_1", noon+1))
		}
		b.ingest(noon, first...)
		counts := b.ingest(noon, second...)
		wantSame(t, "conflicting", [2]int{counts.Conflicting, len(counts.ConflictingRefs)}, [2]int{150, 100})
	})

	t.Run("D05_OrderIsByTimeThenBytes", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		b.ingest(noon, b.fact("b", "crm", "note_added", "order_1", noon), b.fact("a", "crm", "note_added", "order_1", noon+1))
		b.ingest(noon, b.fact("B", "crm", "note_added", "order_1", noon), b.fact("é", "crm", "note_added", "order_1", noon), b.fact("z", "crm", "note_added", "order_1", noon-1))
		wantSame(t, "order", rawRefs(b.factsOf("a", "order_1")), []string{"z", "B", "b", "é", "a"})
	})

	t.Run("D06_IdsAreBytes", func(t *testing.T) {
		b := setup(t, open)
		subjects := []string{"order_1", "Order_1", "order_1 ", "Straße", "STRASSE", "e\u0301", "\u00e9", `q"'\%_;`, strings.Repeat("x", 512), "😀"}
		for i, subject := range subjects {
			b.record(act(fmt.Sprintf("a%d", i), subject))
			b.ingest(noon, b.fact("ref of "+subject[:min(len(subject), 500)], "crm", "note_added", subject, noon))
		}
		for i, subject := range subjects {
			wantSame(t, subject, len(b.factsOf(fmt.Sprintf("a%d", i), subject)), 1)
		}
	})

	t.Run("D35_AttributesKeepTheirText", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"))
		text := `{"big":123456789012345678901234567890.10,"exp":1E+2,"text":"\"\\\n\u0001 é 😀  ","deep":{"list":[1.0,null,true,{}]},"minus":-0.0}`
		b.ingest(noon, fact(t, "re_1", "stripe", "refund_created", "order_1", noon, text))
		want, err := engine.ParseObject([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "attributes", b.factsOf("a", "order_1")[0].Attributes.Text(), want.Text())
	})

	t.Run("D07_LinksAreOneHopInBothDirections", func(t *testing.T) {
		b := setup(t, open)
		b.record(act("a", "order_1"), act("z", "case_7"))
		b.link(noon, "ticket_9", "order_1")
		b.link(noon, "ticket_9", "case_7")
		b.link(noon, "order_1", "order_1")
		b.link(noon, "order_1", "ticket_9") // the same one
		b.ingest(noon, b.fact("n1", "crm", "note_added", "ticket_9", noon), b.fact("n2", "crm", "note_added", "case_7", noon), b.fact("n3", "crm", "note_added", "order_1", noon))
		wantSame(t, "of order_1", rawRefs(b.factsOf("a", "order_1")), []string{"n1", "n3"})
		wantSame(t, "of case_7", rawRefs(b.factsOf("z", "case_7")), []string{"n1", "n2"})
	})

	t.Run("TenantsNeverMeet", func(t *testing.T) {
		b := setup(t, open)
		b.recordFor(acme, noon, true, act("a", "order_1"))
		b.recordFor(other, noon, true, act("a", "order_1"))
		mine := b.fact("re_1", "stripe", "refund_created", "order_1", noon)
		theirs := fact(t, "re_1", "stripe", "refund_created", "order_1", noon, `{"amount": 1}`)
		wantSame(t, "mine", b.ingest(noon, mine), ledger.Ingested{Ingested: 1, Woken: 1})
		wantSame(t, "theirs", b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{theirs}}), ledger.Ingested{Ingested: 1, Woken: 1})
		wantSame(t, "mine again", b.ingest(noon, mine), ledger.Ingested{Duplicates: 1})
		wantSame(t, "facts", b.factsOf("a", "order_1"), []engine.Fact{mine})
	})

	t.Run("IngestTakesTheGoodOnes", func(t *testing.T) {
		b := setup(t, open)
		var result ledger.IngestResult
		b.update(func(tx ledger.Tx) (err error) {
			result, err = ledger.Ingest(t.Context(), tx, acme, ledger.FactBatch{
				Facts: []engine.Fact{
					{Source: "Stripe", Type: "refund_created", SubjectID: "order_1", OccurredAt: noon},
					{Source: "7eleven", Type: "refund_created", SubjectID: "order_1", OccurredAt: noon},
					{Source: "stripe", Type: "refund_created", SubjectID: "", OccurredAt: noon},
					{Source: "stripe", Type: "refund_created", SubjectID: "order_1", OccurredAt: noon},
				},
				Links:      []engine.Link{{SubjectID: "a", LinkedSubjectID: ""}, {SubjectID: "a", LinkedSubjectID: "b"}},
				Watermarks: map[string]engine.Instant{"CRM": noon, "no way": noon, "crm": noon - 5},
				Trust:      engine.Shared,
			}, noon)
			return err
		})
		wantSame(t, "counts", result.Ingested, ledger.Ingested{Ingested: 1, Duplicates: 1})
		wantSame(t, "bad facts", indexes(result.RejectedFacts), []int{1, 2})
		wantText(t, result.RejectedFacts[0].Err, `invalid fact: source: invalid identifier "7eleven": write a letter, then letters, digits or _ . : -, at most 64 in all`)
		wantSame(t, "bad links", indexes(result.RejectedLinks), []int{0})
		wantText(t, result.RejectedWatermarks["no way"], `watermark: invalid identifier "no way": write a letter, then letters, digits or _ . : -, at most 64 in all`)
		watermark := noon
		wantSame(t, "connections", b.connections(), []engine.Connection{
			{Source: "crm", Trust: engine.Shared, Watermark: &watermark},
			{Source: "stripe", Trust: engine.Shared, Delivered: true},
		})
	})
}

func indexes(rejected []ledger.Rejected) []int {
	var found []int
	for _, r := range rejected {
		found = append(found, r.Index)
	}
	return found
}
