package refunds

import (
	"context"
	"time"

	"github.com/countersign-otel/countersign/examples/stack"
)

// Played is a step with the verification that came of it.
type Played struct {
	Step Step
	Got  stack.Verification
}

// EvaluationEvent is the name under which OpenTelemetry knows a verdict.
const EvaluationEvent = "gen_ai.evaluation.result"

// AwaitReturned waits until every verdict of the story came back as OTLP: of a
// settled one a span and two evaluation events, of the pending one its event.
func AwaitReturned(ctx context.Context, s *stack.Stack, rows []Played) (stack.Returned, error) {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	return stack.Await(ctx, "the verdicts to come back as OTLP", func(context.Context) (stack.Returned, bool, error) {
		returned, err := s.Returned()
		for _, r := range rows {
			if err == nil && !isBack(returned, r) {
				return returned, false, nil
			}
		}
		return returned, true, err
	})
}

func isBack(returned stack.Returned, r Played) bool {
	spans, evaluations, pending := 0, 0, 0
	for _, span := range returned.Spans {
		if span.About(r.Got.Action.TraceID, r.Got.Action.SpanID) {
			spans++
		}
	}
	for _, event := range returned.Events {
		if event.TraceID != r.Got.Action.TraceID || event.SpanID != r.Got.Action.SpanID {
			continue
		}
		switch event.EventName {
		case EvaluationEvent:
			evaluations++
		case "action.pending":
			pending++
		}
	}
	if r.Step.Want.Status == "pending" {
		return pending > 0
	}
	if r.Step.Again() {
		return spans >= 2 && evaluations >= 4 // and those of the verdict before
	}
	return spans >= 1 && evaluations >= 2
}
