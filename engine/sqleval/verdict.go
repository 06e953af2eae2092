package sqleval

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// answers are the fixed columns: action id, one flag per call, and verdict and
// reasons per lens in the order of AC "Evaluation order".
func (k *compiler) answers() []string {
	outcomeViolations := []contract.Section{contract.ReversedBy}
	policyViolations := []contract.Section{contract.Preconditions, contract.Limits, contract.AggregateLimits, contract.ForbiddenEffects, contract.ReversedBy}
	outcome, outcomeReasons := k.lens(outcomeViolations)
	policy, policyReasons := k.lens(policyViolations)
	return []string{"c.action_id", k.flags(), outcome, outcomeReasons, policy, policyReasons}
}

func (k *compiler) flags() string {
	var flags []string
	for i, column := range k.columns {
		below := ""
		if column.BelowTrust != "" {
			below = fmt.Sprintf(" WHEN c.w%d THEN '2'", i)
		}
		flags = append(flags, fmt.Sprintf("CASE WHEN c.f%d THEN '1'%s ELSE '0' END", i, below))
	}
	return strings.Join(flags, " || ")
}

// step is one row of the evaluation order.
type step struct {
	condition string
	verdict   engine.RawVerdict
	reasons   string
}

func (k *compiler) lens(violations []contract.Section) (verdict, reasons string) {
	var v, r strings.Builder
	v.WriteString("CASE")
	r.WriteString("CASE")
	for _, s := range k.steps(violations) {
		if s.condition == "" {
			fmt.Fprintf(&v, " ELSE '%s' END", s.verdict)
			fmt.Fprintf(&r, " ELSE %s END", s.reasons)
			continue
		}
		fmt.Fprintf(&v, " WHEN %s THEN '%s'", s.condition, s.verdict)
		fmt.Fprintf(&r, " WHEN %s THEN %s", s.condition, s.reasons)
	}
	return v.String(), r.String()
}

// steps are the tests of AC "Evaluation order"; the first that applies decides.
func (k *compiler) steps(violations []contract.Section) []step {
	var steps []step
	if excluded := k.anyTree(k.contract.Exclusions); excluded != "" {
		steps = append(steps, step{excluded, engine.NotVerified, "',excluded_by_contract' || " + k.treeCodes(k.contract.Exclusions)})
	}
	steps = append(steps, step{"c.facts = 0", engine.Unverifiable, "',identity_unmatched'"})
	if k.contract.UnverifiableIf != nil {
		trees := []*contract.Tree{k.contract.UnverifiableIf}
		steps = append(steps, step{k.anyTree(trees), engine.Unverifiable, k.treeCodes(trees)})
	}
	if violated := k.indexes(violations...); len(violated) > 0 {
		steps = append(steps, step{join(violated, "c.f%d", " OR "), engine.NotVerified, k.firedCodes(violated)})
	}
	expected := k.indexes(contract.ExpectedEffects)
	return append(steps,
		step{join(expected, "c.f%d", " AND "), engine.Verified, k.firedCodes(expected)},
		step{"c.ever = 0", engine.Unverifiable, "',no_structured_signal'"},
		step{"", engine.NotVerified, "',verified_condition_not_met'" + k.missingCodes(expected)},
	)
}

// indexes are the calls of the given sections, in contract order.
func (k *compiler) indexes(sections ...contract.Section) []int {
	var indexes []int
	for i, check := range k.contract.Checks {
		for _, section := range sections {
			if check.Section == section {
				indexes = append(indexes, i)
			}
		}
	}
	return indexes
}

func join(indexes []int, format, separator string) string {
	parts := make([]string, len(indexes))
	for i, index := range indexes {
		parts[i] = fmt.Sprintf(format, index)
	}
	return "(" + strings.Join(parts, separator) + ")"
}

func (k *compiler) firedCodes(indexes []int) string {
	parts := make([]string, len(indexes))
	for i, index := range indexes {
		parts[i] = whenCode(fmt.Sprintf("c.f%d", index), k.contract.Calls[index].Code(true))
	}
	return strings.Join(parts, " || ")
}

func (k *compiler) missingCodes(indexes []int) string {
	var b strings.Builder
	for _, index := range indexes {
		call := k.contract.Calls[index]
		missing := primitive.Literal("," + call.Code(false))
		if k.columns[index].BelowTrust != "" {
			below := call.(primitive.TrustGate).BelowTrustCode()
			missing = fmt.Sprintf("CASE WHEN c.w%d THEN %s ELSE %s END", index, primitive.Literal(","+below), missing)
		}
		fmt.Fprintf(&b, " || CASE WHEN c.f%d THEN '' ELSE %s END", index, missing)
	}
	return b.String()
}

func whenCode(condition, code string) string {
	return fmt.Sprintf("CASE WHEN %s THEN %s ELSE '' END", condition, primitive.Literal(","+code))
}

// anyTree is true when one of the trees holds; empty without trees.
func (k *compiler) anyTree(trees []*contract.Tree) string {
	if len(trees) == 0 {
		return ""
	}
	parts := make([]string, len(trees))
	for i, tree := range trees {
		parts[i] = value(tree)
	}
	return "(" + strings.Join(parts, " OR ") + ")"
}

func value(t *contract.Tree) string {
	switch t.Operator {
	case contract.Leaf:
		return fmt.Sprintf("c.f%d", t.Call)
	case contract.Not:
		return "(NOT " + value(t.Children[0]) + ")"
	}
	separator := map[contract.Operator]string{contract.Any: " OR ", contract.All: " AND "}[t.Operator]
	parts := make([]string, len(t.Children))
	for i, child := range t.Children {
		parts[i] = value(child)
	}
	return "(" + strings.Join(parts, separator) + ")"
}

// match is a leaf with the condition under which it makes its tree hold.
type match struct{ condition, code string }

// treeCodes are the codes of the leaves that make the trees hold, each code
// once: a leaf counts when every node from it to the root has the value that
// the root needs, where not turns the value around.
func (k *compiler) treeCodes(trees []*contract.Tree) string {
	var matches []match
	for _, tree := range trees {
		k.matches(tree, true, nil, &matches)
	}
	parts := []string{"''"}
	for i, m := range matches {
		condition := m.condition
		for _, earlier := range matches[:i] {
			if earlier.code == m.code {
				condition += " AND NOT (" + earlier.condition + ")"
			}
		}
		parts = append(parts, whenCode(condition, m.code))
	}
	return strings.Join(parts, " || ")
}

func (k *compiler) matches(t *contract.Tree, wanted bool, path []string, matches *[]match) {
	here := value(t)
	if !wanted {
		here = "NOT " + here
	}
	path = append(path[:len(path):len(path)], here)
	if t.Operator == contract.Leaf {
		*matches = append(*matches, match{strings.Join(path, " AND "), k.contract.Calls[t.Call].Code(wanted)})
		return
	}
	for _, child := range t.Children {
		k.matches(child, wanted != (t.Operator == contract.Not), path, matches)
	}
}
