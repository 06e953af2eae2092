package web

import (
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
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

// TestPicturesAreShown: the README shows a picture of each view that the
// browser tests make, and names none that is missing.
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Glob("../../docs/img/*.png")
	if err != nil || len(pictures) == 0 {
		t.Fatalf("no pictures: %v", err)
	}
	for _, picture := range pictures {
		name := filepath.Base(picture)
		variant := strings.HasSuffix(name, "-dark.png") || strings.HasSuffix(name, "-narrow.png")
		if !variant && !strings.Contains(string(readme), "docs/img/"+name) {
			t.Errorf("the README does not show docs/img/%s", name)
		}
	}
	for _, named := range regexp.MustCompile(`docs/img/[a-z-]+\.png`).FindAllString(string(readme), -1) {
		if _, err := os.Stat("../../" + named); err != nil {
			t.Errorf("the README shows %s: %v", named, err)
		}
	}
	if bare := regexp.MustCompile(`!\[\]|<img [^>]*alt=""|<img src="[^"]*" width="[0-9]*">`).FindString(string(readme)); bare != "" {
		t.Errorf("a picture says nothing to those who do not see it: %s", bare)
	}
}
