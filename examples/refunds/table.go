package refunds

import (
	"strings"
	"unicode/utf8"

	"github.com/countersign-otel/countersign/examples/stack"
)

// Table shows played steps in lines of equal columns. The hash is the
// beginning of the policy verdict's.
func Table(played []Played) []string {
	cells := [][]string{{"ACTION", "SUBJECT", "TOOL", "OUTCOME", "POLICY", "HASH", "HEADLINE"}}
	for _, p := range played {
		a := p.Got.Action
		cells = append(cells, []string{
			shortID(a.ActionID), a.SubjectID, a.Tool, verdict(p.Got, p.Got.Outcome), verdict(p.Got, p.Got.Policy),
			hash(p.Got), p.Got.Summary.Headline,
		})
	}
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(cells))
	for n, row := range cells {
		for i, cell := range row[:len(row)-1] {
			lines[n] += cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2)
		}
		lines[n] += row[len(row)-1]
	}
	return lines
}

// shortID cuts the trace id, with which the id of a call begins.
func shortID(actionID string) string {
	trace, call, ok := strings.Cut(actionID, "-")
	if !ok || len(trace) != 32 {
		return actionID
	}
	return trace[:4] + ".." + trace[30:] + "-" + call
}

// verdict is provisional while a verification is pending, and not shown.
func verdict(v stack.Verification, lens *stack.Lens) string {
	if v.Status != "settled" || lens == nil {
		return "—"
	}
	return lens.Verdict
}

func hash(v stack.Verification) string {
	if v.Status != "settled" || v.Policy == nil {
		return "—"
	}
	return v.Policy.Hash[:min(8, len(v.Policy.Hash))]
}
