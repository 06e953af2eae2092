package refunds

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// settleTimeout bounds how long one step may take; it takes a fraction of a second.
const settleTimeout = 45 * time.Second

// Play tells one step to a running stack and returns the verification that
// comes of it. Steps are to be played in order.
func Play(ctx context.Context, s *stack.Stack, step Step) (stack.Verification, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	v, err := play(ctx, s, step)
	if err != nil {
		return v, fmt.Errorf("step %d: %w", step.Number, err)
	}
	return v, nil
}

func play(ctx context.Context, s *stack.Stack, step Step) (stack.Verification, error) {
	if step.Facts != nil {
		if err := s.PushFacts(ctx, step.Facts); err != nil {
			return stack.Verification{}, err
		}
	}
	if !step.Again() {
		if err := s.SendTraces(ctx, step.Spans); err != nil {
			return stack.Verification{}, err
		}
	}
	action, err := Recorded(ctx, s, step.TraceID)
	if err != nil {
		return action, err
	}
	if step.Again() {
		return s.Verify(ctx, action.Action.ActionID)
	}
	return s.Wait(ctx, action.Action.ActionID, step.patience())
}

// patience is how long to wait for the verdict: the last one does not come before its window closes.
func (s Step) patience() time.Duration {
	if s.Want.Status == "pending" {
		return time.Second
	}
	return 30 * time.Second
}

// Recorded waits until the action of a trace stands in the ledger.
func Recorded(ctx context.Context, s *stack.Stack, traceID string) (stack.Verification, error) {
	return stack.Await(ctx, "the action of trace "+traceID, func(ctx context.Context) (stack.Verification, bool, error) {
		actions, err := s.Actions(ctx, url.Values{"trace_id": {traceID}})
		if err != nil || len(actions) == 0 {
			return stack.Verification{}, false, err
		}
		if len(actions) > 1 {
			return actions[0], false, fmt.Errorf("trace %s made %d actions, not one", traceID, len(actions))
		}
		return actions[0], true, nil
	})
}

// Differences lists where a verification is not what the step wants.
func (s Step) Differences(v stack.Verification) []string {
	var found []string
	note := func(what, want, got string) {
		if want != got {
			found = append(found, fmt.Sprintf("%s is %q, has to be %q", what, got, want))
		}
	}
	note("status", s.Want.Status, v.Status)
	note("headline", s.Want.Headline, v.Summary.Headline)
	lens := func(name, want string, reasons []string, got *stack.Lens) {
		if got == nil {
			note(name, want, "")
			return
		}
		note(name, want, got.Verdict)
		if !slices.Equal(reasons, got.Reasons) {
			note(name+" reasons", strings.Join(reasons, ", "), strings.Join(got.Reasons, ", "))
		}
	}
	lens("outcome", s.Want.Outcome, s.Want.OutcomeReasons, v.Outcome)
	lens("policy", s.Want.Policy, s.Want.PolicyReasons, v.Policy)
	return found
}
