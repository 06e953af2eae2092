package e2e

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

// TestSameTelemetryTwiceAndShuffled: the same telemetry and facts, sent twice
// to one stack, and span by span in random order to another one, make the same
// actions and the same verdict hashes.
func TestSameTelemetryTwiceAndShuffled(t *testing.T) {
	steps := refunds.Story(time.Now())
	ctx, first := start(t)
	for _, step := range steps {
		if _, err := refunds.Play(ctx, first, step); err != nil {
			t.Fatal(err)
		}
	}
	want := hashes(t, ctx, first)

	deliver(t, ctx, first, steps)
	awaitHashes(t, ctx, first, want)

	ctx, second := start(t)
	deliver(t, ctx, second, steps)
	// What was verified before its facts had come is verified again, as an operator would.
	for id := range awaitActions(t, ctx, second, len(want)) {
		if _, err := second.Verify(ctx, id); err != nil {
			t.Fatal(err)
		}
	}
	awaitHashes(t, ctx, second, want)
}

// deliver sends everything once more, one fact and one span at a time, in random order.
func deliver(t *testing.T, ctx context.Context, s *stack.Stack, steps []refunds.Step) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("order of delivery: seed %d", seed)
	var sends []func() error
	for _, step := range steps {
		for _, fact := range singleFacts(t, step.Facts) {
			sends = append(sends, func() error { return s.PushFacts(ctx, fact) })
		}
		for _, span := range singleSpans(t, step.Spans) {
			sends = append(sends, func() error { return s.SendTraces(ctx, span) })
		}
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(sends), func(i, j int) { sends[i], sends[j] = sends[j], sends[i] })
	for _, send := range sends {
		if err := send(); err != nil {
			t.Fatal(err)
		}
	}
}

// singleFacts splits a body of POST /v1/facts.
func singleFacts(t *testing.T, body []byte) [][]byte {
	t.Helper()
	if body == nil {
		return nil
	}
	var all struct {
		Facts []json.RawMessage `json:"facts"`
	}
	unmarshal(t, body, &all)
	var single [][]byte
	for _, fact := range all.Facts {
		single = append(single, marshal(t, map[string]any{"facts": []json.RawMessage{fact}}))
	}
	return single
}

// singleSpans splits an OTLP request of one resource and scope.
func singleSpans(t *testing.T, request []byte) [][]byte {
	t.Helper()
	if request == nil {
		return nil
	}
	type object = map[string]json.RawMessage
	var all struct {
		ResourceSpans []struct {
			Resource   json.RawMessage `json:"resource"`
			ScopeSpans []struct {
				Scope json.RawMessage   `json:"scope"`
				Spans []json.RawMessage `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	unmarshal(t, request, &all)
	var single [][]byte
	for _, resource := range all.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				scopes := marshal(t, []object{{"scope": scope.Scope, "spans": marshal(t, []json.RawMessage{span})}})
				resources := marshal(t, []object{{"resource": resource.Resource, "scopeSpans": scopes}})
				single = append(single, marshal(t, object{"resourceSpans": resources}))
			}
		}
	}
	return single
}

// pair is the hashes of an action's latest verdicts.
type pair struct{ Outcome, Policy string }

func hashes(t *testing.T, ctx context.Context, s *stack.Stack) map[string]pair {
	t.Helper()
	actions, err := s.Actions(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return hashesOf(actions)
}

func hashesOf(actions []stack.Verification) map[string]pair {
	all := map[string]pair{}
	for _, v := range actions {
		all[v.Action.ActionID] = pair{}
		if v.Outcome != nil && v.Policy != nil {
			all[v.Action.ActionID] = pair{v.Outcome.Hash, v.Policy.Hash}
		}
	}
	return all
}

func awaitActions(t *testing.T, ctx context.Context, s *stack.Stack, n int) map[string]pair {
	t.Helper()
	found, err := stack.Await(ctx, "all actions", func(ctx context.Context) (map[string]pair, bool, error) {
		actions, err := s.Actions(ctx, nil)
		return hashesOf(actions), len(actions) >= n, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// awaitHashes waits until the actions and their verdicts are those wanted.
func awaitHashes(t *testing.T, ctx context.Context, s *stack.Stack, want map[string]pair) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	got, err := stack.Await(ctx, "the same verdicts", func(ctx context.Context) (map[string]pair, bool, error) {
		actions, err := s.Actions(ctx, nil)
		got := hashesOf(actions)
		return got, cmp.Equal(want, got), err
	})
	if err != nil {
		t.Fatalf("%v\nverdict hashes (-want +got):\n%s", err, cmp.Diff(want, got))
	}
}

func unmarshal(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
