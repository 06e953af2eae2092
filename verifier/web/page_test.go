package web

import (
	"net/http"
	"testing"
)

func TestEveryPageIsServed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.showcase(20)
	b := f.reader()
	for path, texts := range map[string][]string{
		"/":                          {"Verified completion", "Newest failures", "By contract", "refund_workflow", "support-agent"},
		"/?range=7d":                 {"Verified completion"},
		"/actions":                   {"act_demo_refund_006", "PENDING"},
		"/contracts":                 {"refund_workflow", "payout", "close_ticket"},
		"/contracts/refund_workflow": {"Must happen, all of it", "In plain language", "What decides"},
		"/sources":                   {"stripe", "shopify", "independent"},
		"/orphans":                   {"order_99001", "order_99002"},
		"/parked":                    {"Nothing is parked"},
		actionOf("act_demo_refund_001"): {
			"Shopify order remained active despite a successful payment refund", "The agent reported", "expected, not seen", "Check it yourself",
		},
		actionOf("act_payout_7"):        {"The bank returned the payout"},
		actionOf("act_demo_refund_004"): {"Compensated by"},
		actionOf("act_demo_refund_005"): {"This action corrects"},
	} {
		wantIn(t, path, b.page(path), texts...)
	}
	if got := b.get("/v1/sources"); got.status != http.StatusTeapot || got.body != "next: /v1/sources" {
		t.Errorf("what is no page: %d %s", got.status, got.body)
	}
}
