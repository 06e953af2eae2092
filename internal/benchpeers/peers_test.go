package benchpeers

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"cel.dev/cel-go/cel"
	"github.com/cedar-policy/cedar-go"
	"github.com/open-policy-agent/opa/v1/rego"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
)

// The case: an eligible order, a refund of 180 under a limit of 250, one
// refund fact, four effects within the window. Every engine must allow it, and
// must refuse the same case with a refund of 400.

const requested = 1_790_592_120 // 2026-09-28T10:42:00Z

type event struct {
	Source     string         `json:"source"`
	Type       string         `json:"type"`
	OccurredAt int64          `json:"occurred_at"`
	Attributes map[string]any `json:"attributes"`
}

func events(amount int64) []event {
	return []event{
		{"shopify", "order_status", requested - 30, map[string]any{"status": "eligible"}},
		{"shopify", "order_viewed", requested - 20, map[string]any{}},
		{"stripe", "refund_created", requested + 7, map[string]any{"amount": amount}},
		{"shopify", "order_cancelled", requested + 20, map[string]any{}},
		{"crm", "note_added", requested + 40, map[string]any{}},
		{"messaging", "customer_notified", requested + 60, map[string]any{}},
	}
}

// check runs a decision for the allowed and the refused case, then measures the allowed one.
func check(b *testing.B, decide func(amount int64) func() bool) {
	b.Helper()
	if decide(400)() {
		b.Fatal("a refund of 400 was allowed")
	}
	allowed := decide(180)
	if !allowed() {
		b.Fatal("a refund of 180 was refused")
	}
	b.ReportAllocs()
	for b.Loop() {
		if !allowed() {
			b.Fatal("the answer changed")
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

// BenchmarkRefund decides the policy part of the refund workflow. Countersign
// decides both lenses with evidence; cedar cannot look through a list, so the
// latest state, the number of refunds and the largest one are worked out
// beforehand for it and not measured.
func BenchmarkRefund(b *testing.B) {
	b.Run("engine=countersign", func(b *testing.B) { check(b, countersign(b)) })
	b.Run("engine=cel-go", func(b *testing.B) { check(b, celGo(b)) })
	b.Run("engine=cedar-go", func(b *testing.B) { check(b, cedarGo(b)) })
	b.Run("engine=opa", func(b *testing.B) { check(b, opa(b)) })
}

func countersign(b *testing.B) func(int64) func() bool {
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		b.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", text)
	if len(diagnostics) > 0 {
		b.Fatal(diagnostics)
	}
	return func(amount int64) func() bool {
		one := snapshot(b, amount).Cases()[0]
		return func() bool { return goeval.Judge(c, &one).Policy.Raw == engine.Verified }
	}
}

func snapshot(b *testing.B, amount int64) *engine.Snapshot {
	s := &engine.Snapshot{Tenant: engine.DefaultTenant, Facts: map[string][]engine.Fact{}, Sources: map[string]engine.Source{}}
	for _, e := range events(amount) {
		f, err := engine.Fact{Source: e.Source, Type: e.Type, SubjectID: "order", OccurredAt: engine.Instant(e.OccurredAt), Attributes: object(b, e.Attributes)}.Normalize()
		if err != nil {
			b.Fatal(err)
		}
		s.Facts["order"] = append(s.Facts["order"], f)
		s.Sources[e.Source] = engine.Source{Name: e.Source, Present: true}
	}
	s.Actions = []engine.Action{{ActionID: "act", SubjectID: "order", RequestedAt: requested, Params: object(b, map[string]any{"amount": amount})}}
	return s
}

func object(b *testing.B, members map[string]any) engine.Object {
	text, err := json.Marshal(members)
	if err != nil {
		b.Fatal(err)
	}
	o, err := engine.ParseObject(text)
	if err != nil {
		b.Fatal(err)
	}
	return o
}

// input is the case as a document of plain maps.
func input(b *testing.B, amount int64) map[string]any {
	text, err := json.Marshal(map[string]any{
		"requested_at": requested, "window": 900, "params": map[string]any{"amount": amount}, "facts": events(amount),
	})
	if err != nil {
		b.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		b.Fatal(err)
	}
	return document
}

const regoPolicy = `package refund

default allow := false

before contains f if {
	some f in input.facts
	f.source == "shopify"
	f.type == "order_status"
	f.occurred_at <= input.requested_at
}

latest := max([f.occurred_at | some f in before])

eligible if {
	some f in before
	f.occurred_at == latest
	f.attributes.status == "eligible"
}

effect(source, type) if count(effects(source, type)) > 0

effects(source, type) := [f |
	some f in input.facts
	f.source == source
	f.type == type
	f.occurred_at >= input.requested_at
	f.occurred_at <= input.requested_at + input.window
]

allow if {
	eligible
	input.params.amount <= 250
	count(effects("stripe", "refund_created")) == 1
	every f in effects("stripe", "refund_created") { f.attributes.amount <= 250 }
	effect("shopify", "order_cancelled")
	effect("crm", "note_added")
	effect("messaging", "customer_notified")
}
`

func opa(b *testing.B) func(int64) func() bool {
	ctx := context.Background()
	query, err := rego.New(rego.Query("data.refund.allow"), rego.Module("refund.rego", regoPolicy)).PrepareForEval(ctx)
	if err != nil {
		b.Fatal(err)
	}
	return func(amount int64) func() bool {
		document := input(b, amount)
		return func() bool {
			result, err := query.Eval(ctx, rego.EvalInput(document))
			if err != nil {
				b.Fatal(err)
			}
			return result.Allowed()
		}
	}
}

const celPolicy = `params.amount <= 250.0
&& facts.exists(f, f.type == "order_status" && f.source == "shopify" && f.occurred_at <= requested_at && f.attributes.status == "eligible"
   && !facts.exists(g, g.type == "order_status" && g.source == "shopify" && g.occurred_at <= requested_at && g.occurred_at > f.occurred_at))
&& facts.filter(f, f.type == "refund_created" && f.source == "stripe" && f.occurred_at >= requested_at && f.occurred_at <= requested_at + window).size() == 1
&& facts.all(f, f.type != "refund_created" || f.attributes.amount <= 250.0)
&& facts.exists(f, f.type == "order_cancelled" && f.source == "shopify" && f.occurred_at >= requested_at && f.occurred_at <= requested_at + window)
&& facts.exists(f, f.type == "note_added" && f.source == "crm" && f.occurred_at >= requested_at && f.occurred_at <= requested_at + window)
&& facts.exists(f, f.type == "customer_notified" && f.source == "messaging" && f.occurred_at >= requested_at && f.occurred_at <= requested_at + window)`

func celGo(b *testing.B) func(int64) func() bool {
	env, err := cel.NewEnv(
		cel.Variable("params", cel.DynType), cel.Variable("facts", cel.ListType(cel.DynType)),
		cel.Variable("requested_at", cel.DynType), cel.Variable("window", cel.DynType),
	)
	if err != nil {
		b.Fatal(err)
	}
	ast, issues := env.Compile(celPolicy)
	if issues.Err() != nil {
		b.Fatal(issues.Err())
	}
	program, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize))
	if err != nil {
		b.Fatal(err)
	}
	return func(amount int64) func() bool {
		document := input(b, amount)
		return func() bool {
			value, _, err := program.Eval(document)
			if err != nil {
				b.Fatal(err)
			}
			return value.Value() == true
		}
	}
}

const cedarPolicy = `permit (principal, action, resource) when {
  context.status == "eligible" && context.amount <= 250 && context.refunds == 1 && context.largest <= 250 &&
  context.effects.containsAll(["stripe.refund_created", "shopify.order_cancelled", "crm.note_added", "messaging.customer_notified"])
};`

func cedarGo(b *testing.B) func(int64) func() bool {
	policies, err := cedar.NewPolicySetFromBytes("refund.cedar", []byte(cedarPolicy))
	if err != nil {
		b.Fatal(err)
	}
	return func(amount int64) func() bool {
		var effects []cedar.Value
		for _, e := range events(amount)[2:] {
			effects = append(effects, cedar.String(e.Source+"."+e.Type))
		}
		request := cedar.Request{
			Principal: cedar.NewEntityUID("Agent", "bot"), Action: cedar.NewEntityUID("Action", "refund"), Resource: cedar.NewEntityUID("Order", "order"),
			Context: cedar.NewRecord(cedar.RecordMap{
				"status": cedar.String("eligible"), "amount": cedar.Long(amount), "refunds": cedar.Long(1), "largest": cedar.Long(amount),
				"effects": cedar.NewSet(effects...),
			}),
		}
		return func() bool {
			decision, _ := cedar.Authorize(policies, cedar.EntityMap{}, request)
			return decision == cedar.Allow
		}
	}
}
