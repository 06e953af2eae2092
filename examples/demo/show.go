package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/examples/refunds"
	"github.com/countersign-otel/countersign/examples/stack"
)

func showStory(rows []refunds.Played) {
	lines := [][]string{{"ACTION", "TOOL", "OUTCOME", "POLICY", "HEADLINE"}}
	for _, r := range rows {
		lines = append(lines, []string{
			r.Got.Action.SubjectID, r.Got.Action.Tool, verdict(r.Got.Status, r.Got.Outcome), verdict(r.Got.Status, r.Got.Policy), r.Got.Summary.Headline,
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

func showReturned(s *stack.Stack, returned stack.Returned) {
	evaluations := 0
	for _, event := range returned.Events {
		if event.EventName == refunds.EvaluationEvent {
			evaluations++
		}
	}
	fmt.Printf("\nBack as OTLP in the collector: %d verdict spans (like %q) and %d %s events\n",
		len(returned.Spans), returned.Spans[0].Name, evaluations, refunds.EvaluationEvent)
	fmt.Println("  written by its file exporter to", s.ReturnedFile())
}
