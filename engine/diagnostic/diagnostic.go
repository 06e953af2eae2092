// Package diagnostic reports what is wrong in a YAML document, by place, all
// errors at once, with what is allowed and the nearest known word (decision D20).
package diagnostic

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// Diagnostic is one error in a document.
type Diagnostic struct {
	File string `json:"file"`
	// Line and Column count from 1; 0 when the place is the whole file.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is where in the document, like action.limits[0].
	Path string `json:"path"`
	// Message says what is wrong, Allowed what is allowed, DidYouMean the nearest known word; the latter two may be empty.
	Message    string `json:"message"`
	Allowed    string `json:"allowed,omitempty"`
	DidYouMean string `json:"did_you_mean,omitempty"`
}

// Error prints file:line:col: what is wrong; what is allowed; did you mean.
// Line and column are left out when the place is the whole file.
func (d Diagnostic) Error() string {
	var b strings.Builder
	b.WriteString(d.File)
	if d.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", d.Line, d.Column)
	}
	b.WriteString(": " + d.Message)
	if d.Allowed != "" {
		b.WriteString("; " + d.Allowed)
	}
	if d.DidYouMean != "" {
		fmt.Fprintf(&b, "; did you mean %q?", d.DidYouMean)
	}
	return b.String()
}

// MaxDiagnostics is how many diagnostics of one file are kept; a hostile
// document could cause any number.
const MaxDiagnostics = 500

// maxText bounds, in bytes, what a diagnostic repeats of the document.
const maxText = 1000

// Reporter collects the diagnostics of one file. The zero Reporter has no file name.
type Reporter struct {
	File string
	list []Diagnostic
	more int // reported beyond MaxDiagnostics
}

// Report adds a diagnostic at a node; node may be nil for the whole file.
func (r *Reporter) Report(node *yaml.Node, path string, d Diagnostic) {
	if len(r.list) == MaxDiagnostics {
		r.more++
		return
	}
	d.File, d.Path, d.Message = r.File, clip(path), clip(d.Message)
	if node != nil {
		d.Line, d.Column = node.Line, node.Column
	}
	r.list = append(r.list, d)
}

// clip shortens text at a character.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// Errorf adds a diagnostic with a message only.
func (r *Reporter) Errorf(node *yaml.Node, path, format string, args ...any) {
	r.Report(node, path, Diagnostic{Message: fmt.Sprintf(format, args...)})
}

// Count is how many diagnostics were reported so far.
func (r *Reporter) Count() int { return len(r.list) + r.more }

// Diagnostics are the reports in the order of the file. Beyond MaxDiagnostics
// the last one says how many were left out.
func (r *Reporter) Diagnostics() []Diagnostic {
	sorted := slices.Clone(r.list)
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if r.more > 0 {
		sorted = append(sorted, Diagnostic{File: r.File, Message: fmt.Sprintf("%d more errors were left out", r.more)})
	}
	return sorted
}

// Err joins all diagnostics, in the order of the file; nil when there are none.
func (r *Reporter) Err() error {
	var all []error
	for _, d := range r.Diagnostics() {
		all = append(all, d)
	}
	return errors.Join(all...)
}

// maxNearest is the longest word for which a known one is looked for, in bytes.
const maxNearest = 80

// minBeginning is how much of a word counts as the beginning of a longer one, in bytes.
const minBeginning = 5

// Nearest is the known word within a third of its length in edits, else the
// only one that begins with it or has it as its last part (type, fact_type),
// or "". Capitals are no edits.
func Nearest(word string, known []string) string {
	if len(word) > maxNearest {
		return ""
	}
	best, bestDistance := "", 1+len(word)/3
	for _, candidate := range known {
		if d := distance(engine.Fold(word), engine.Fold(candidate)); d <= bestDistance && (best == "" || d < bestDistance) {
			best, bestDistance = candidate, d
		}
	}
	if best == "" {
		best = onlyLonger(word, known)
	}
	if best == "" {
		best = lastPart(word, known)
	}
	return best
}

// lastPart is the one known word that the given one ends with: fact_type is type here.
func lastPart(word string, known []string) string {
	for _, candidate := range known {
		if strings.HasSuffix(engine.Fold(word), "_"+engine.Fold(candidate)) {
			return candidate
		}
	}
	return ""
}

// onlyLonger is the one known word that begins with the given one or has it as its last part, or "".
func onlyLonger(word string, known []string) string {
	found := ""
	for _, candidate := range known {
		longer, short := engine.Fold(candidate), engine.Fold(word)
		begins := len(word) >= minBeginning && strings.HasPrefix(longer, short)
		if !begins && (word == "" || !strings.HasSuffix(longer, "_"+short)) {
			continue
		}
		if found != "" {
			return ""
		}
		found = candidate
	}
	return found
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := range len(a) {
		current := make([]int, len(b)+1)
		current[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			current[j+1] = min(previous[j+1]+1, current[j]+1, previous[j]+cost)
		}
		previous = current
	}
	return previous[len(b)]
}
