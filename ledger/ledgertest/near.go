package ledgertest

import (
	"fmt"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// nearRefs are the raw_refs of what is near, those of subjects alike with a ~.
func (b *bundle) nearRefs(filter ledger.NearFilter) (refs []string) {
	b.t.Helper()
	b.view(func(tx ledger.Tx) error {
		near, err := tx.NearFacts(b.t.Context(), acme, filter)
		for _, f := range near {
			if f.Alike {
				f.RawRef = "~" + f.RawRef
			}
			refs = append(refs, f.RawRef)
		}
		return err
	})
	return refs
}

func exerciseNear(t *testing.T, open opener) {
	around := ledger.NearFilter{Subject: "order_1", Types: []string{"refund_created", "note_added"}, At: noon, Since: noon - 10, Until: noon + 10, Limit: 5}

	t.Run("OwnLinkedAndAlike", func(t *testing.T) {
		b := setup(t, open)
		b.link(noon, "order_1", "ticket_9")
		b.link(noon, "ticket_9", "case_7")
		b.ingest(noon,
			b.fact("own", "stripe", "refund_created", "order_1", noon), b.fact("linked", "crm", "note_added", "ticket_9", noon+1),
			b.fact("two hops", "crm", "note_added", "case_7", noon), b.fact("of another type", "crm", "ticket_closed", "order_1", noon),
			b.fact("upper", "stripe", "refund_created", "ORDER_1", noon+2), b.fact("unlike", "stripe", "refund_created", "order_2", noon))
		b.ingestBatch(other, noon, ledger.FactBatch{Facts: []engine.Fact{
			b.fact("foreign", "stripe", "refund_created", "order_1", noon), b.fact("foreign, alike", "stripe", "refund_created", "ORDER_1", noon),
		}, Links: []engine.Link{{SubjectID: "order_1", LinkedSubjectID: "order_2"}}})
		filter := around
		wantSame(t, "of the case", b.nearRefs(filter), []string{"own", "linked"})
		filter.Alike = []string{"ORDER_1", "Order_1", "ticket_9"}
		wantSame(t, "with those alike", b.nearRefs(filter), []string{"own", "linked", "~upper"})
		b.link(noon, "order_1", "ORDER_1")
		wantSame(t, "what is linked is of the case", b.nearRefs(filter), []string{"own", "linked", "upper"})
		filter.Types = nil
		wantSame(t, "of no type", b.nearRefs(filter), []string(nil))
		b.view(func(tx ledger.Tx) error {
			near, err := tx.NearFacts(t.Context(), acme, around)
			if err == nil {
				wantSame(t, "whole", near[0], ledger.NearFact{Fact: b.fact("own", "stripe", "refund_created", "order_1", noon)})
			}
			return err
		})
	})

	t.Run("NearestOnEachSide", func(t *testing.T) {
		b := setup(t, open)
		var facts []engine.Fact
		for _, off := range []int{-11, -10, -3, -2, -1, 0, 1, 2, 3, 10, 11} {
			facts = append(facts, b.fact(fmt.Sprintf("%+d", off), "stripe", "refund_created", "order_1", noon+engine.Instant(off)))
		}
		b.ingest(noon, append(facts, b.fact("note", "crm", "note_added", "order_1", noon+9),
			b.fact("alike", "stripe", "refund_created", "ORDER_1", noon-9))...)
		filter := around
		filter.Alike = []string{"ORDER_1"}
		wantSame(t, "in the order of time, both ends included", b.nearRefs(filter), []string{"-10", "~alike", "-3", "-2", "-1", "+0", "+1", "+2", "+3", "note", "+10"})
		filter.Limit = 2
		wantSame(t, "two of each", b.nearRefs(filter), []string{"~alike", "-2", "-1", "+0", "+1", "note"})
	})
}
