package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/examples/stack"
)

const (
	killedActions = 320
	killedBatch   = 20
)

// TestKilledSidecar kills the sidecar while it verifies and starts it again:
// every action gets the verdict that it has to get, once, and the chain holds.
func TestKilledSidecar(t *testing.T) {
	// A killed process's leases run out after this; the default is a minute.
	ctx, s := start(t, "COUNTERSIGN_SETTLEMENT_LEASE_FOR=2s")
	if err := s.PushFacts(ctx, refundFacts(t, 0, killedActions)); err != nil {
		t.Fatal(err)
	}
	sendSpans(t, ctx, s, 0, killedActions/2)
	awaitSome(t, ctx, s)
	s.KillSidecar()
	// The rest arrives while nobody verifies: the collector needs no sidecar.
	sendSpans(t, ctx, s, killedActions/2, killedActions)
	if err := s.StartSidecar(ctx); err != nil {
		t.Fatal(err)
	}
	checkSettledOnce(t, ctx, s)
}

// sendSpans sends the tool calls of orders in several requests.
func sendSpans(t *testing.T, ctx context.Context, s *stack.Stack, from, to int) {
	t.Helper()
	for at := from; at < to; at += killedBatch {
		if err := s.SendTraces(ctx, refundSpans(t, at, killedBatch)); err != nil {
			t.Fatal(err)
		}
	}
}

// awaitSome waits until some verdicts are there.
func awaitSome(t *testing.T, ctx context.Context, s *stack.Stack) {
	t.Helper()
	_, err := stack.Await(ctx, "some verdicts", func(ctx context.Context) (int, bool, error) {
		actions, err := s.Actions(ctx, url.Values{"limit": {"500"}})
		return len(actions), len(settled(actions)) > 0, err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func settled(actions []stack.Verification) map[string]string {
	verdicts := map[string]string{}
	for _, v := range actions {
		if v.Status == "settled" {
			verdicts[v.Action.SubjectID] = v.Policy.Verdict
		}
	}
	return verdicts
}

func checkSettledOnce(t *testing.T, ctx context.Context, s *stack.Stack) {
	t.Helper()
	want := map[string]string{}
	for i := range killedActions {
		want[orderOf(i)] = "PASS"
	}
	actions, err := stack.Await(ctx, "all verdicts", func(ctx context.Context) ([]stack.Verification, bool, error) {
		actions, err := s.Actions(ctx, url.Values{"limit": {"500"}})
		return actions, cmp.Equal(want, settled(actions)), err
	})
	if err != nil {
		t.Fatalf("%v; verdicts (-want +got):\n%s", err, cmp.Diff(want, settled(actions)))
	}
	if len(actions) != killedActions {
		t.Errorf("%d actions, want %d", len(actions), killedActions)
	}
	for _, v := range actions {
		checkOneRun(t, ctx, s, v)
	}
	if out, err := s.Tool(ctx, "log", "verify", "--store", s.Store()); err != nil {
		t.Errorf("log verify: %v: %s", err, out)
	}
}

// checkOneRun: all facts were there before the action, so that one run is enough.
func checkOneRun(t *testing.T, ctx context.Context, s *stack.Stack, v stack.Verification) {
	t.Helper()
	runs, err := s.Runs(ctx, v.Action.ActionID)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) != 1 {
		t.Errorf("action %s has %d runs, want one", v.Action.ActionID, len(runs))
	}
}

func orderOf(i int) string { return fmt.Sprintf("order_k%04d", i) }

// refundFacts are all facts of n orders from the given one on.
func refundFacts(t *testing.T, from, n int) []byte {
	t.Helper()
	var facts []map[string]any
	add := func(order, source, kind, at string, attributes map[string]any) {
		facts = append(facts, map[string]any{
			"source": source, "subject_id": order, "subject_kind": "order", "fact_type": kind,
			"occurred_at": at, "attributes": attributes, "raw_ref": order + ":" + kind,
		})
	}
	for i := from; i < from+n; i++ {
		order := orderOf(i)
		add(order, "shopify", "order_status", "2026-09-28T09:59:00Z", map[string]any{"status": "eligible"})
		add(order, "stripe", "refund_created", "2026-09-28T10:00:05Z", map[string]any{"amount": 20})
		add(order, "shopify", "order_cancelled", "2026-09-28T10:00:10Z", map[string]any{})
		add(order, "crm", "note_added", "2026-09-28T10:00:15Z", map[string]any{})
		add(order, "messaging", "customer_notified", "2026-09-28T10:00:20Z", map[string]any{})
	}
	return marshal(t, map[string]any{"facts": facts})
}

// refundSpans are the tool calls of n refunds, requested at 2026-09-28T10:00:00Z.
func refundSpans(t *testing.T, from, n int) []byte {
	t.Helper()
	spans := make([]json.RawMessage, 0, n)
	for i := from; i < from+n; i++ {
		spans = append(spans, json.RawMessage(strings.NewReplacer("ORDER", orderOf(i), "NUMBER", fmt.Sprintf("%08x", i+1)).Replace(`{
			"traceId": "5e1f0c5de2a94d3c8e6f1a2bNUMBER", "spanId": "a1b2c3d4NUMBER", "name": "execute_tool refund_order", "kind": 1,
			"startTimeUnixNano": "1790589600000000000", "endTimeUnixNano": "1790589601000000000", "attributes": [
			{"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
			{"key": "gen_ai.tool.name", "value": {"stringValue": "refund_order"}},
			{"key": "gen_ai.tool.call.id", "value": {"stringValue": "call_NUMBER"}},
			{"key": "gen_ai.agent.name", "value": {"stringValue": "support-agent"}},
			{"key": "gen_ai.tool.call.arguments", "value": {"stringValue": "{\"order_id\":\"ORDER\",\"amount\":20}"}}]}`)))
	}
	return marshal(t, map[string]any{"resourceSpans": []any{map[string]any{"scopeSpans": []any{map[string]any{"spans": spans}}}}})
}

// traceOf is the trace of an order's tool call in refundSpans.
func traceOf(i int) string { return fmt.Sprintf("5e1f0c5de2a94d3c8e6f1a2b%08x", i+1) }
