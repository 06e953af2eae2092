package web

import "strings"

// diffLine is one line of a comparison: kept, removed or added; a jump stands
// for lines that are the same and left out.
type diffLine struct {
	Kind string
	Text string
}

const (
	// diffContext is how many equal lines stand around a change.
	diffContext = 3
	// maxDiffLines bounds the comparison, whose cost is the product of both; contracts have 256 KiB at most.
	maxDiffLines = 2000
)

// difference compares two documents line by line; empty when they are the same.
func difference(before, after string) []diffLine {
	if before == after {
		return nil
	}
	a, b := linesOf(before), linesOf(after)
	return folded(compared(a, b))
}

func linesOf(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[:min(len(lines), maxDiffLines)]
}

// compared keeps a longest common subsequence.
func compared(a, b []string) []diffLine {
	longest := make([][]uint16, len(a)+1)
	for i := range longest {
		longest[i] = make([]uint16, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var lines []diffLine
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, diffLine{"kept", a[i]})
			i++
			j++
		case i < len(a) && (j == len(b) || longest[i+1][j] >= longest[i][j+1]):
			lines = append(lines, diffLine{"removed", a[i]})
			i++
		default:
			lines = append(lines, diffLine{"added", b[j]})
			j++
		}
	}
	return lines
}

// folded leaves out what is the same and far from any change.
func folded(lines []diffLine) []diffLine {
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.Kind == "kept" {
			continue
		}
		for j := max(0, i-diffContext); j <= min(len(lines)-1, i+diffContext); j++ {
			near[j] = true
		}
	}
	var kept []diffLine
	for i, l := range lines {
		switch {
		case near[i]:
			kept = append(kept, l)
		case len(kept) == 0 || kept[len(kept)-1].Kind != "jump":
			kept = append(kept, diffLine{"jump", ""})
		}
	}
	return kept
}
