package contracttest_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/contract/contracttest"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the code says into testdata")

const refusalsFile = "testdata/refusals.txt"

// around is one test into which a case of refusals.txt is put.
const around = `start: 2026-09-28T10:42:00Z
subject_id: x
tests:
  - name: a
    at: +1m
`

func TestRefusals(t *testing.T) {
	t.Parallel()
	parts := strings.Split(string(readFile(t, refusalsFile)), "\n=== ")
	var b strings.Builder
	b.WriteString(parts[0] + "\n")
	for _, part := range parts[1:] {
		name, rest, _ := strings.Cut(strings.TrimSuffix(part, "\n")+"\n", "\n")
		text, want, ok := strings.Cut(rest, "\n---\n")
		if !ok {
			t.Fatalf("case %q has no --- line", name)
		}
		document := text + "\n"
		if !strings.Contains(text, "tests") {
			document = around + document
		}
		parsed, diagnostics := contracttest.Parse("x_test.yaml", []byte(document))
		if parsed != nil || len(diagnostics) == 0 {
			t.Errorf("%s: accepted", name)
		}
		var got strings.Builder
		for _, d := range diagnostics {
			got.WriteString(d.Error() + "\n")
		}
		if diff := cmp.Diff(want, got.String()); diff != "" && !*update {
			t.Errorf("%s: other diagnostics (-want +got):\n%s", name, diff)
		}
		b.WriteString("=== " + name + "\n" + text + "\n---\n" + got.String())
	}
	if *update {
		if err := os.WriteFile(refusalsFile, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	f, diagnostics := contracttest.Parse("dir/refund_test.yaml", []byte(around+`    facts:
      - {source: Stripe, fact_type: Refund, occurred_at: -2s, attributes: {Amount: 1.50, ok: true, none: null, day: 2026-09-28, list: [1, "1"]}}
    links: [{linked_subject_id: ticket}]
    sources: [{source: crm, health: error, clock_skew: 5s}, {source: stripe, override: independent}]
    watermarks: {Stripe: +1m}
    unavailable_sources: [erp]
    actions:
      - {params: {n: "1"}, expect: {status: pending, outcome: UNKNOWN}}
      - {subject_id: y, requested_at: 2026-09-28T12:42:00+02:00}
`))
	fatal(t, diagnostics)
	test := f.Tests[0]
	start := test.At.Sub(engine.Minute)
	if f.Contract != "refund.yaml" || start.String() != "2026-09-28T10:42:00Z" || test.Line != 4 {
		t.Errorf("contract %s, start %s, line %d", f.Contract, start, test.Line)
	}
	fact := test.Facts[0]
	want := `{"amount":1.50,"day":"2026-09-28","list":[1,"1"],"none":null,"ok":true}`
	if fact.Source != "stripe" || fact.Type != "refund" || fact.SubjectID != "x" || fact.OccurredAt != start.Sub(2) || fact.Attributes.Text() != want {
		t.Errorf("fact %+v with %s", fact, fact.Attributes.Text())
	}
	if !strings.HasPrefix(fact.RawRef, "agent_api:fact:") {
		t.Errorf("raw_ref %s", fact.RawRef)
	}
	connections := []engine.Connection{
		{Source: "crm", Name: "connector", Health: engine.Failing, Trust: engine.Independent, ClockSkew: 5},
		{Source: "stripe", Trust: engine.Shared, Override: engine.Independent},
	}
	if diff := cmp.Diff(connections, test.Connections); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]engine.Link{{SubjectID: "x", LinkedSubjectID: "ticket"}}, test.Links); diff != "" {
		t.Error(diff)
	}
	if test.Watermarks["stripe"] != test.At || test.Unavailable[0] != "erp" {
		t.Errorf("watermarks %v, unavailable %v", test.Watermarks, test.Unavailable)
	}
	actions := test.Bind("refund", 3, "refund_order", "order")
	if a := actions[0]; a.ActionID != "act_1" || a.RequestedAt != start || a.ContractVersion != 3 || a.ActionType != "refund_order" || a.SubjectKind != "order" || !a.Params.Captured() {
		t.Errorf("action %+v", a)
	}
	if a := actions[1]; a.ActionID != "act_2" || a.SubjectID != "y" || a.RequestedAt != start || a.Params.Captured() {
		t.Errorf("action %+v", a)
	}
}

// TestCompare shows every difference of one failing test, whole.
func TestCompare(t *testing.T) {
	t.Parallel()
	c, diagnostics := contract.Parse("c.yaml", readFile(t, library+"/payout.yaml"))
	fatal(t, diagnostics)
	f, diagnostics := contracttest.Parse("c_test.yaml", []byte(around+`    facts:
      - {raw_ref: po_1, source: payments, fact_type: payout_created, occurred_at: +1s, attributes: {amount: 5, status: paid}}
      - {raw_ref: b, source: ledger, fact_type: account_balance, occurred_at: +1s, attributes: {balance: 7}}
    actions:
      - params: {amount: 4}
        expect:
          status: settled
          outcome: FAIL
          policy: PASS
          reasons: ["precondition_unmet:ledger.account_status", "limit_exceeded:amount"]
          outcome_reasons: []
          headline: "PASS — fine"
          waiting_on: [ledger]
          checks:
            - {code: "limit_exceeded:amount", ok: false, value: "5", evidence: "agent_api:action:act_1"}
            - {code: "effect_attr_mismatch:payments.payout_created.amount", value: "5", expected: "5", evidence: po_2}
            - {code: "reversed:payments.returned"}
`))
	fatal(t, diagnostics)
	verdicts := f.Tests[0].Evaluate(c, report.DefaultSettings())
	want := `status
  - expected  settled
  + got       pending
outcome
  - expected  FAIL
  + got       PASS
policy
  - expected  PASS
  + got       FAIL
reasons
    expected  precondition_unmet:ledger.account_status
  - expected  limit_exceeded:amount
    got       precondition_unmet:ledger.account_status
  + got       precondition_unmet:ledger.account_balance
  + got       effect_attr_mismatch:payments.payout_created.amount
outcome_reasons
  + got       effect_observed:payments.payout_created
  + got       effect_observed:ledger.account_balance
headline
  - expected  PASS — fine
  + got       FAIL — The account was not open and verified when the payout was requested
waiting_on
  - expected  ledger
checks: limit_exceeded:amount: ok
  - expected  false
  + got       true
checks: limit_exceeded:amount: value
  - expected  5
  + got       4
checks: effect_attr_mismatch:payments.payout_created.amount: expected
  - expected  5
  + got       4
checks: effect_attr_mismatch:payments.payout_created.amount: evidence
  - expected  po_2
  + got       po_1
checks: no check has the code reversed:payments.returned
  + got       precondition_unmet:ledger.account_status, precondition_unmet:ledger.account_balance, limit_exceeded:amount, param_not_allowed:currency, aggregate_exceeded:payments.payout_created.amount, aggregate_exceeded:payments.payout_created, duplicate_effect:payments.payout_created, effect_attr_mismatch:payments.payout_created.amount, effect_attr_mismatch:ledger.account_balance.balance, reversed:payments.payout_returned, effect_observed:payments.payout_created, effect_observed:ledger.account_balance`
	if diff := cmp.Diff(want, strings.Join(f.Tests[0].Actions[0].Expect.Compare(verdicts[0]), "\n")); diff != "" {
		t.Error(diff)
	}
}
