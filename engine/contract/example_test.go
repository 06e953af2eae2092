package contract_test

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine/contract"
)

func ExampleParse() {
	_, diagnostics := contract.Parse("refund.yaml", []byte(`id: refund
version: 1
kind: action
vendor: internal
source_citation: {url: "internal://policies/refunds"}
action:
  window: 15 minutes
  limits:
    - param_maxx: {param: amount, max: 250}
  expected_effects:
    - effect_observed: refund_created
`))
	for _, d := range diagnostics {
		fmt.Println(d)
	}
	// Output:
	// refund.yaml:7:11: action.window: invalid duration: "15 minutes"; write <n>m, <n>h, <n>d or <n>w with n from 1 to 9999, like "15m"
	// refund.yaml:9:7: 'param_maxx' is not allowed here; allowed are param_max, param_exceeds, param_in, param_not_in; did you mean "param_max"?
}

func ExampleExplain() {
	c, _ := contract.Parse("refund.yaml", []byte(`id: refund
version: 1
kind: action
vendor: internal
subject_kind: order
source_citation: {url: "internal://policies/refunds"}
action:
  window: 15m
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created, where: {status: succeeded}}
`))
	_, rules, _ := strings.Cut(contract.Explain(c), "MUST HAPPEN")
	rules, _, _ = strings.Cut(rules, "\n\n")
	fmt.Println("MUST HAPPEN" + rules)
	// Output:
	// MUST HAPPEN, ALL OF IT
	// 1. In stripe, a record "refund_created" whose status is succeeded appears within 15 minutes of the request.
}

func ExampleLint() {
	c, _ := contract.Parse("refund.yaml", []byte(`id: refund
version: 1
kind: action
vendor: internal
source_citation: {url: "internal://policies/refunds", title: Refunds, retrieved: "2026-09-28"}
action:
  window: 15m
  expected_effects:
    - effect_observed: {source: stripe, type: refund_created, within: 1h}
  unverifiable_if: {missing_fact_source: stripe}
`))
	for _, d := range contract.Lint("refund.yaml", c, nil) {
		fmt.Println(d)
	}
	// Output:
	// refund.yaml:9:7: it counts for 1h, but the verdict settles when the window closes after 15m
}
