package main

import (
	"fmt"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

func showStory(rows []refunds.Played) {
	fmt.Println()
	for _, line := range refunds.Table(rows) {
		fmt.Println(line)
	}
}

func showReturned(s *stack.Stack, returned stack.Returned) {
	if len(returned.Spans) == 0 {
		return
	}
	var evaluations []stack.ReturnedEvent
	for _, event := range returned.Events {
		if event.EventName == refunds.EvaluationEvent {
			evaluations = append(evaluations, event)
		}
	}
	fmt.Printf("\nBack as OTLP in the collector: %d verdict spans (like %q) and %d %s events\n",
		len(returned.Spans), returned.Spans[0].Name, len(evaluations), refunds.EvaluationEvent)
	fmt.Println("  on the traces of the actions; written by its file exporter", where(s))
	for _, event := range evaluations[:min(1, len(evaluations))] {
		fmt.Printf("  one of them: %s = %s on span %s of trace %s\n",
			event.Text("gen_ai.evaluation.name"), event.Text("gen_ai.evaluation.score.label"), event.SpanID, event.TraceID)
	}
}

// where names a file only if it is still there when somebody reads this.
func where(s *stack.Stack) string {
	if s.Detached {
		return "to " + s.ReturnedFile()
	}
	return "(make up keeps its file)"
}
