package main

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/examples/stack"
)

func showStory(rows []row) {
	lines := [][]string{{"ACTION", "TOOL", "OUTCOME", "POLICY", "HEADLINE"}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.got.Action.SubjectID, r.got.Action.Tool, verdict(r.got.Status, r.got.Outcome), verdict(r.got.Status, r.got.Policy), r.got.Summary.Headline,
		})
	}
	fmt.Println()
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		for i, cell := range line[:len(line)-1] {
			fmt.Print(cell, strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		fmt.Println(line[len(line)-1])
	}
}

// verdict is provisional while a verification is pending, and not shown.
func verdict(status string, lens *stack.Lens) string {
	if status == "pending" || lens == nil {
		return "—"
	}
	return lens.Verdict
}

// evaluationEvent is the name under which OpenTelemetry knows a verdict.
const evaluationEvent = "gen_ai.evaluation.result"

// awaitReturned waits until every verdict of the story came back as OTLP: of a
// settled one a span and two evaluation events, of the pending one its event.
func awaitReturned(ctx context.Context, s *stack.Stack, rows []row) (stack.Returned, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
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

func isBack(returned stack.Returned, r row) bool {
	spans, evaluations, pending := 0, 0, 0
	for _, span := range returned.Spans {
		if span.About(r.got.Action.TraceID, r.got.Action.SpanID) {
			spans++
		}
	}
	for _, event := range returned.Events {
		if event.TraceID != r.got.Action.TraceID || event.SpanID != r.got.Action.SpanID {
			continue
		}
		switch event.EventName {
		case evaluationEvent:
			evaluations++
		case "action.pending":
			pending++
		}
	}
	if r.step.Want.Status == "pending" {
		return pending > 0
	}
	if r.step.Again() {
		return spans >= 2 && evaluations >= 4 // and those of the verdict before
	}
	return spans >= 1 && evaluations >= 2
}

func showReturned(s *stack.Stack, returned stack.Returned) {
	evaluations := 0
	for _, event := range returned.Events {
		if event.EventName == evaluationEvent {
			evaluations++
		}
	}
	fmt.Printf("\nBack as OTLP in the collector: %d verdict spans (like %q) and %d %s events\n",
		len(returned.Spans), returned.Spans[0].Name, evaluations, evaluationEvent)
	fmt.Println("  written by its file exporter to", s.ReturnedFile())
}
