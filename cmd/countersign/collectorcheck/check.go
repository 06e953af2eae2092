// Package collectorcheck reads a collector configuration and finds the known
// ways to lose what was acknowledged, and to let somebody forge evidence.
//
// It reads one file as it is written: references like ${env:NAME} are not
// resolved, their default counts where one is given, and what has none is not
// judged. It knows the settings of this project's components, and of those
// that stand around them most often.
package collectorcheck

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine/diagnostic"
)

// MaxDocument is the largest configuration, in bytes.
const MaxDocument = 1 << 20

// Finding is one way to lose or to forge.
type Finding struct {
	File string `json:"file"`
	// Line and Column count from 1.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path is where in the document, like exporters::ledger::retry_on_failure.
	Path string `json:"path"`
	// Rule is the name of the Rule that was broken.
	Rule string `json:"rule"`
	// Problem says what is wrong, Why what comes of it, Remedy what helps.
	Problem string `json:"problem"`
	Why     string `json:"why"`
	Remedy  string `json:"remedy"`
}

// String is file:line:col: rule: what is wrong; what comes of it; what helps.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s; %s; %s", f.File, f.Line, f.Column, f.Rule, f.Problem, f.Why, f.Remedy)
}

// Rule is one known way.
type Rule struct {
	Name string
	// Why says what comes of breaking it.
	Why   string
	check func(*document, reporter)
}

// reporter adds a finding at a setting.
type reporter func(at setting, remedy, problem string, args ...any)

// Rules are all there are.
func Rules() []Rule { return slices.Concat(forging, losing, listening) }

// Check returns what is wrong, in the order of the file. The diagnostics say
// why a document cannot be read; there are no findings then.
func Check(file string, text []byte) ([]Finding, []diagnostic.Diagnostic) {
	r := diagnostic.Reporter{File: file}
	root := r.Document(text, MaxDocument)
	if root == nil {
		return nil, r.Diagnostics()
	}
	d := newDocument(root, &r)
	if r.Count() > 0 {
		return nil, r.Diagnostics()
	}
	var found []Finding
	for _, rule := range Rules() {
		rule.check(d, func(at setting, remedy, problem string, args ...any) {
			found = append(found, Finding{
				File: file, Line: at.place.Line, Column: at.place.Column, Path: at.path,
				Rule: rule.Name, Problem: fmt.Sprintf(problem, args...), Why: rule.Why, Remedy: remedy,
			})
		})
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(found), nil
}
