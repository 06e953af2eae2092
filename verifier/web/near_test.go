package web

import (
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

// TestNearMissStandsBesideTheCheck: at the latest verification, and only there.
func TestNearMissStandsBesideTheCheck(t *testing.T) {
	t.Parallel()
	f := newFixture(t).library()
	f.record(acme, refund("a", "order_1", start, "180"))
	facts := without("refund_created", refundFacts("order_1", start, "180"))
	f.ingest(acme, ledger.FactBatch{Facts: append(facts, fact("stripe", "refund_created", "order_1", start-15, `{"amount": 180}`))})
	f.ingest(acme, ledger.FactBatch{Facts: []engine.Fact{fact(engine.AgentSource, "refund_created", "order_1", start+1, `{"amount": 180}`)}})
	f.verify(start+60, "a")
	f.verify(start+5000, "a")
	b := f.reader()
	page := b.page(actionOf("a"))
	wantIn(t, "action", page, "<b>Near miss:</b> stripe refund_created (shared) at ", "occurred 15s before the action was requested", "It is no evidence, and no verdict rests on it.")
	if n := strings.Count(page, "Near miss:"); n != 1 {
		t.Errorf("%d near misses are shown, want that of the one effect that is missing", n)
	}
	wantNotIn(t, "an earlier verification", b.page(actionOf("a")+"?run=2"), "Near miss:")

	f.ingest(acme, ledger.FactBatch{Facts: []engine.Fact{fact("stripe", "refund_created", "order_1", start+7, `{"amount": 180}`)}})
	wantIn(t, "since", b.page(actionOf("a")), "came since this verification; verify the action again")
	f.verify(start+5001, "a")
	wantNotIn(t, "passed", b.page(actionOf("a")), "Near miss:", "It is no evidence")
}
