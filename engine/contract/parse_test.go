package contract_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/google/go-cmp/cmp"
)

const library = "../../contracts"

// read parses a contract of the library.
func read(t *testing.T, name string) *contract.Contract {
	t.Helper()
	document, err := os.ReadFile(filepath.Join(library, name))
	if err != nil {
		t.Fatal(err)
	}
	c, diagnostics := contract.Parse(name, document)
	if len(diagnostics) > 0 {
		t.Fatalf("%s does not parse:\n%s", name, texts(diagnostics))
	}
	return c
}

func texts(diagnostics []diagnostic.Diagnostic) string {
	var b strings.Builder
	for _, d := range diagnostics {
		b.WriteString(d.Error() + "\n")
	}
	return b.String()
}

func TestParseRefundWorkflow(t *testing.T) {
	t.Parallel()
	c := read(t, "refund_workflow.yaml")
	type entry struct{ Section, Code, Message string }
	var checks []entry
	for _, check := range c.Checks {
		checks = append(checks, entry{string(check.Section), check.Call.Code(true), check.Message})
	}
	want := []entry{
		{"preconditions", "precondition_unmet:shopify.order_status", "Order was not eligible for a refund at the time of the action"},
		{"limits", "limit_exceeded:amount", ""},
		{"forbidden_effects", "duplicate_effect:stripe.refund_created", ""},
		{"forbidden_effects", "forbidden_effect_observed:stripe.refund_created", ""},
		{"expected_effects", "effect_observed:stripe.refund_created", "Payment refund was not created"},
		{"expected_effects", "effect_observed:shopify.order_cancelled", "Shopify order remained active despite a successful payment refund"},
		{"expected_effects", "effect_observed:crm.note_added", "No note was added to the customer record"},
		{"expected_effects", "effect_observed:messaging.customer_notified", "Customer was not notified"},
	}
	if diff := cmp.Diff(want, checks); diff != "" {
		t.Error(diff)
	}
	if c.Window != 15*engine.Minute || c.WindowText != "15m" {
		t.Errorf("window is %v, printed %q", c.Window, c.WindowText)
	}
	wantTree := &contract.Tree{Operator: contract.Any, Children: []*contract.Tree{{Operator: contract.Leaf, Call: 8}}}
	if diff := cmp.Diff(wantTree, c.UnverifiableIf); diff != "" {
		t.Error(diff)
	}
	if got := c.Calls[8].Code(true); len(c.Calls) != 9 || got != "missing_fact_source" {
		t.Errorf("%d calls, the last is %s", len(c.Calls), got)
	}
	envelope := []string{c.ID, c.Vendor, c.VendorDisplay, c.ActionType, c.OutcomeType, c.ClaimSource, c.SubjectKind, c.Billing.UnitPrice, c.Billing.Currency}
	wantEnvelope := []string{"refund_workflow", "internal", "Refund workflow (internal agent)", "refund_order", "refund_processed", "agent.actions", "order", "0", "USD"}
	if diff := cmp.Diff(wantEnvelope, envelope); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"shopify", "stripe", "crm", "messaging"}, c.NamedSources()); diff != "" {
		t.Error(diff)
	}
}

// TestHeldFields: what updates: until_settled holds is what the action is about,
// and what the contract compares it by.
func TestHeldFields(t *testing.T) {
	t.Parallel()
	const always = "subject_id requested_at params agent_id channel"
	for name, row := range map[string]struct{ block, want string }{
		"off without the key":  {"  forbidden_effects: [{effect_observed: {type: a, where_action: {b: session_id}}}]\n", ""},
		"off where it says so": {"  updates: always\n", ""},
		"on":                   {"  updates: until_settled\n", always},
		"what where_action reads": {`  updates: until_settled
  forbidden_effects: [{effect_observed: {type: a, where_action: {b: session_id, c: "param:d", e: agent_id, f: action_id}}}]
  aggregate_limits: [{aggregate_exceeds: {type: a, max: 1, over: 1h, where_action: {b: reference_id}}}]
  unverifiable_if: {not: {reversal_observed: {type: a, where_action: {b: workflow_id, c: session_id}}}}
`, always + " reference_id session_id workflow_id"},
	} {
		c, diagnostics := contract.Parse("contract.yaml", []byte(small+row.block))
		if c == nil {
			t.Fatalf("%s: %s", name, texts(diagnostics))
		}
		if got := strings.Join(c.HeldFields(), " "); got != row.want {
			t.Errorf("%s: held are %q, want %q", name, got, row.want)
		}
		told := strings.Contains(contract.Explain(c), "cannot be changed by recording the action again")
		if told != (row.want != "") {
			t.Errorf("%s: explained is %t", name, told)
		}
	}
}
