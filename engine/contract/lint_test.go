package contract_test

import (
	"os"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/google/go-cmp/cmp"
)

const lintFile = "testdata/lint.txt"

// lintable is small, with nothing suspicious but the missing unverifiable_if.
var lintable = strings.NewReplacer(
	`{url: "internal://p"}`, `{url: "internal://p", title: Policy, retrieved: "2026-09-28"}`,
	`{effect_observed: seen}`, `{effect_observed: {source: shop, type: seen}}`,
).Replace(small)

func TestLint(t *testing.T) {
	t.Parallel()
	preamble, cases := readCases(t, lintFile)
	var b strings.Builder
	b.WriteString(preamble)
	for _, c := range cases {
		text := c.text
		if !strings.Contains(text, "kind") {
			text = lintable + text
		}
		parsed, diagnostics := contract.Parse("contract.yaml", []byte(text))
		if parsed == nil {
			t.Fatalf("%s: %s", c.name, texts(diagnostics))
		}
		got := texts(contract.Lint("contract.yaml", parsed, nil))
		if diff := cmp.Diff(c.want, got); diff != "" && !*update {
			t.Errorf("%s: lint says otherwise (-want +got):\n%s", c.name, diff)
		}
		b.WriteString("=== " + c.name + "\n" + c.text + "---\n" + got)
	}
	if *update {
		if err := os.WriteFile(lintFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLintLibrary(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"refund_workflow.yaml": `refund_workflow.yaml:44:7: unverifiable_if does not name crm as a missing source: when it never reported, the verdict is FAIL, not UNKNOWN
refund_workflow.yaml:48:7: unverifiable_if does not name messaging as a missing source: when it never reported, the verdict is FAIL, not UNKNOWN
`,
		"payout.yaml": "",
		"close_ticket.yaml": `close_ticket.yaml:36:7: unverifiable_if does not name otel as a missing source: when it never reported, the verdict is FAIL, not UNKNOWN
`,
	}
	for name, diagnostics := range want {
		if diff := cmp.Diff(diagnostics, texts(contract.Lint(name, read(t, name), nil))); diff != "" {
			t.Errorf("%s: lint says otherwise (-want +got):\n%s", name, diff)
		}
	}
}

func TestLintProviders(t *testing.T) {
	t.Parallel()
	c := read(t, "payout.yaml")
	providers := contract.Providers{"payments": 2 * engine.Hour}
	want := `payout.yaml:57:7: payments usually reports 2h late, longer than the 1h in which this effect counts
payout.yaml:63:7: nobody provides the source ledger, so this effect can never be observed
`
	if diff := cmp.Diff(want, texts(contract.Lint("payout.yaml", c, providers))); diff != "" {
		t.Error(diff)
	}
}
