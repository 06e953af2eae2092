//go:build node

package e2e

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// TestNode: agents on Node.js, written with SDKs as they come from their
// registry, are verified by naming an address and nothing else. make e2e-node
// installs what they need.
func TestNode(t *testing.T) {
	if _, err := os.Stat(filepath.Join("node", "node_modules")); err != nil {
		t.Fatal("the agents' packages are not installed; run: make e2e-node")
	}
	for _, row := range []struct {
		name, agent, order, amount string
		agentID, headline          string
	}{
		{"AI SDK", "agent.mjs", "order_node_1", "20", "support-agent", "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected"},
		{"AI SDK, over its limit", "agent.mjs", "order_node_2", "300.5", "support-agent", "FAIL — limit exceeded: amount at most 250 (was 300.5)"},
		{"OpenTelemetry JS", "tool.mjs", "order_node_3", "20", "desk", "PASS — all 4 expected effects observed within 15m; preconditions, limits and prohibitions respected"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx, s := start(t)
			if err := s.PushFacts(ctx, effectsNow(t, row.order, row.amount)); err != nil {
				t.Fatal(err)
			}
			runAgent(t, ctx, s, row.agent, row.order, row.amount)
			v := settledOn(t, ctx, s, row.order)
			if v.Summary.Headline != row.headline {
				t.Errorf("headline %q, want %q", v.Summary.Headline, row.headline)
			}
			if v.Action.AgentID != row.agentID || v.Action.Tool != "refund_order" {
				t.Errorf("tool %q of agent %q, want refund_order of %q", v.Action.Tool, v.Action.AgentID, row.agentID)
			}
			comesBack(t, ctx, s, v)
		})
	}
}

// runAgent runs an agent. The address is all that it is told of us.
func runAgent(t *testing.T, ctx context.Context, s *stack.Stack, agent, order, amount string) {
	t.Helper()
	node := exec.CommandContext(ctx, "node", agent, order, amount)
	node.Dir = "node"
	node.Env = append(os.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+s.Addresses.OTLPHTTP)
	out, err := node.CombinedOutput()
	if want := "I have refunded " + order + ".\n"; err != nil || string(out) != want {
		t.Fatalf("the agent says %q, %v; want %q", out, err, want)
	}
}

func settledOn(t *testing.T, ctx context.Context, s *stack.Stack, order string) stack.Verification {
	t.Helper()
	v, err := stack.Await(ctx, "the verdict on "+order, func(ctx context.Context) (stack.Verification, bool, error) {
		actions, err := s.Actions(ctx, url.Values{"subject_id": {order}})
		if err != nil || len(actions) == 0 {
			return stack.Verification{}, false, err
		}
		return actions[0], actions[0].Status == "settled", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// effectsNow is what the systems of record know of a refund that goes well now.
func effectsNow(t *testing.T, order, amount string) []byte {
	t.Helper()
	// Whole seconds (decision D1): a moment ahead, so that no effect stands before the call that is to come.
	before, after := time.Now().Add(-time.Minute).UTC().Format(time.RFC3339), time.Now().Add(time.Minute).UTC().Format(time.RFC3339)
	fact := func(source, kind, at string, attributes map[string]any) map[string]any {
		return map[string]any{"source": source, "subject_id": order, "subject_kind": "order", "fact_type": kind, "occurred_at": at, "attributes": attributes}
	}
	return marshal(t, map[string]any{"facts": []any{
		fact("shopify", "order_status", before, map[string]any{"status": "eligible"}),
		fact("stripe", "refund_created", after, map[string]any{"amount": amount}),
		fact("shopify", "order_cancelled", after, nil),
		fact("crm", "note_added", after, nil),
		fact("messaging", "customer_notified", after, nil),
	}})
}

// comesBack waits for the verdict on the agent's own span.
func comesBack(t *testing.T, ctx context.Context, s *stack.Stack, v stack.Verification) {
	t.Helper()
	_, err := stack.Await(ctx, "evaluation events on the agent's span", func(context.Context) (stack.Returned, bool, error) {
		returned, err := s.Returned()
		on := 0
		for _, event := range returned.Events {
			if event.EventName == "gen_ai.evaluation.result" && event.TraceID == v.Action.TraceID && event.SpanID == v.Action.SpanID {
				on++
			}
		}
		return returned, on == 2, err
	})
	if err != nil {
		t.Fatal(err)
	}
}
