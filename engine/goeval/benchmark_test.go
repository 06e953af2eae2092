package goeval_test

import (
	"os"
	"testing"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/goeval"
)

// BenchmarkJudgeRefund judges one refund with six facts in memory, both lenses.
func BenchmarkJudgeRefund(b *testing.B) {
	c := refundWorkflow(b)
	one := refundCase(b)
	b.ReportAllocs()
	for b.Loop() {
		if e := goeval.Judge(c, &one); e.Policy.Raw != engine.Verified {
			b.Fatalf("judged %+v", e.Policy)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "actions/s")
}

func refundWorkflow(tb testing.TB) *contract.Contract {
	tb.Helper()
	text, err := os.ReadFile("../../contracts/refund_workflow.yaml")
	if err != nil {
		tb.Fatal(err)
	}
	c, diagnostics := contract.Parse("refund_workflow.yaml", text)
	if len(diagnostics) > 0 {
		tb.Fatalf("contract is refused: %v", diagnostics)
	}
	return c
}

const requested = engine.Instant(1_790_592_120) // 2026-09-28T10:42:00Z

func refundCase(tb testing.TB) engine.Case {
	tb.Helper()
	facts := []engine.Fact{
		refundFact(tb, "shopify", "order_status", -30, `{"status":"eligible","total":180.0}`),
		refundFact(tb, "shopify", "order_viewed", -20, `{"by":"customer"}`),
		refundFact(tb, "stripe", "refund_created", 7, `{"amount":180.0,"currency":"USD","refund_id":"re_1"}`),
		refundFact(tb, "shopify", "order_cancelled", 20, `{}`),
		refundFact(tb, "crm", "note_added", 40, `{"author":"agent"}`),
		refundFact(tb, "messaging", "customer_notified", 60, `{"channel":"whatsapp"}`),
	}
	snapshot := &engine.Snapshot{
		Tenant: engine.DefaultTenant,
		Actions: []engine.Action{{
			ActionID: "act_1", ContractID: "refund_workflow", ContractVersion: 1, SubjectID: "order_10231",
			RequestedAt: requested, Params: parseObject(tb, `{"amount":180.0,"currency":"USD","reason":"customer_cancelled"}`),
		}},
		Facts: map[string][]engine.Fact{"order_10231": facts},
		Sources: map[string]engine.Source{
			"shopify": {Name: "shopify", Present: true}, "stripe": {Name: "stripe", Present: true},
			"crm": {Name: "crm", Present: true}, "messaging": {Name: "messaging", Present: true},
		},
	}
	return snapshot.Cases()[0]
}

func refundFact(tb testing.TB, source, factType string, offset engine.Duration, attributes string) engine.Fact {
	tb.Helper()
	f, err := engine.Fact{
		Source: source, Type: factType, SubjectID: "order_10231", SubjectKind: "order",
		OccurredAt: requested + engine.Instant(offset), Attributes: parseObject(tb, attributes),
	}.Normalize()
	if err != nil {
		tb.Fatal(err)
	}
	return f
}

func parseObject(tb testing.TB, text string) engine.Object {
	tb.Helper()
	o, err := engine.ParseObject([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}
