package agentactionprocessor

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
)

// TestD13_ReceiptOfASpan: what the verified_actions receiver made of a receipt
// has the receipt's reference id as its action id, and all its arguments.
func TestD13_ReceiptOfASpan(t *testing.T) {
	t.Parallel()
	const byCall = testTrace + "-call_1"
	for _, test := range []struct{ name, sent, id, reference string }{
		{"a receipt", "rcpt-1", "rcpt-1", "rcpt-1"},
		{"none", "", byCall, ""},
		{"too long", strings.Repeat("x", 513), byCall, ""},
		{"control character", "a\x00b", byCall, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			td := oneSpan(func(span ptrace.Span) {
				refundSpan(span, "call_1")
				span.Attributes().PutStr(verifiedactions.ReferenceKey, test.sent)
			})
			actions := recordedActions(process(t, td, refundRule()))
			if len(actions) != 1 {
				t.Fatalf("%d actions were recorded", len(actions))
			}
			a := actions[0]
			if a.ActionID != test.id || a.ReferenceID != test.reference {
				t.Errorf("action id %q, reference id %q", a.ActionID, a.ReferenceID)
			}
			if amount, _ := a.Params.Lookup("amount").Scalar(); amount != "180.50" {
				t.Errorf("the amount is %q", amount)
			}
		})
	}
}
