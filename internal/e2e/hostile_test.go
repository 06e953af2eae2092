package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

// TestHugeArgumentsBesideGoodOnes: five megabytes of arguments are recorded as
// not captured, and nothing of it keeps the call beside it from its verdict.
func TestHugeArgumentsBesideGoodOnes(t *testing.T) {
	ctx, s := start(t)
	if err := s.PushFacts(ctx, refundFacts(t, 0, 2)); err != nil {
		t.Fatal(err)
	}
	spans := string(refundSpans(t, 0, 2))
	huge, err := json.Marshal(fmt.Sprintf(`{"order_id":%q,"amount":20,"note":%q}`, orderOf(0), strings.Repeat("x", 5<<20)))
	if err != nil {
		t.Fatal(err)
	}
	small, err := json.Marshal(fmt.Sprintf(`{"order_id":%q,"amount":20}`, orderOf(0)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(spans, string(small)) {
		t.Fatalf("no arguments %s in %s", small, spans)
	}
	if err := s.SendTraces(ctx, []byte(strings.Replace(spans, string(small), string(huge), 1))); err != nil {
		t.Fatal(err)
	}
	v, err := stack.Await(ctx, "the verdict on the good call", func(ctx context.Context) (stack.Verification, bool, error) {
		v, err := refunds.Recorded(ctx, s, traceOf(1))
		return v, v.Status == "settled", err
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.Policy.Verdict != "PASS" {
		t.Errorf("policy %s, want PASS: %s", v.Policy.Verdict, v.Summary.Headline)
	}
}
