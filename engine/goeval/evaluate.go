// Package goeval derives verdicts from facts in Go, on its own: it sees no
// result of the SQL evaluator, which it checks (decision D23).
package goeval

import (
	"fmt"
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// Evaluate judges every action of a snapshot, in the order of its Actions.
func Evaluate(c *contract.Contract, s *engine.Snapshot) []engine.Evaluation {
	evaluations := make([]engine.Evaluation, len(s.Actions))
	for i, one := range s.Cases() {
		evaluations[i] = Judge(c, &one)
	}
	return evaluations
}

// Judge evaluates one action: first every primitive, then both lenses.
func Judge(c *contract.Contract, one *engine.Case) engine.Evaluation {
	findings := make([]engine.Finding, len(c.Calls))
	for i, call := range c.Calls {
		findings[i] = call.Evaluate(one)
	}
	j := judgement{contract: c, facts: one.Facts, findings: findings}
	e := engine.Evaluation{ActionID: one.Action.ActionID, Findings: findings, Outcome: j.verdict(engine.Outcome)}
	e.Policy = e.Outcome
	if j.policyViolated() {
		e.Policy = j.verdict(engine.Policy)
	}
	return e
}

type judgement struct {
	contract *contract.Contract
	facts    []engine.Fact
	findings []engine.Finding
}

// verdict runs the tests of AC "Evaluation order"; the first that applies decides.
func (j judgement) verdict(lens engine.Lens) engine.Verdict {
	if codes := j.excluded(); codes != nil {
		return engine.Verdict{Raw: engine.NotVerified, Reasons: codes}
	}
	if len(j.facts) == 0 {
		return engine.Verdict{Raw: engine.Unverifiable, Reasons: []string{"identity_unmatched"}}
	}
	if tree := j.contract.UnverifiableIf; tree != nil && j.holds(tree) {
		return engine.Verdict{Raw: engine.Unverifiable, Reasons: j.matched(nil, tree, true)}
	}
	if codes := j.violations(lens); len(codes) > 0 {
		return engine.Verdict{Raw: engine.NotVerified, Reasons: codes}
	}
	observed, missing := j.expected()
	if len(missing) == 0 {
		return engine.Verdict{Raw: engine.Verified, Reasons: observed}
	}
	if !j.everObserved() {
		return engine.Verdict{Raw: engine.Unverifiable, Reasons: []string{"no_structured_signal"}}
	}
	return engine.Verdict{Raw: engine.NotVerified, Reasons: append([]string{"verified_condition_not_met"}, missing...)}
}

// excluded are the reasons of the exclusions that match; nil when none does.
func (j judgement) excluded() []string {
	var codes []string
	for _, tree := range j.contract.Exclusions {
		if !j.holds(tree) {
			continue
		}
		if codes == nil {
			codes = []string{"excluded_by_contract"}
		}
		codes = j.matched(codes, tree, true)
	}
	return codes
}

func (j judgement) holds(t *contract.Tree) bool {
	switch t.Operator {
	case contract.Leaf:
		return j.findings[t.Call].Fired
	case contract.Not:
		return !j.holds(t.Children[0])
	case contract.All:
		return !slices.ContainsFunc(t.Children, func(child *contract.Tree) bool { return !j.holds(child) })
	}
	return slices.ContainsFunc(t.Children, j.holds)
}

// matched adds the codes of the leaves that make a tree have the wanted value, each code once.
func (j judgement) matched(codes []string, t *contract.Tree, wanted bool) []string {
	if j.holds(t) != wanted {
		return codes
	}
	if t.Operator == contract.Leaf {
		code := j.contract.Calls[t.Call].Code(wanted)
		if !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
		return codes
	}
	if t.Operator == contract.Not {
		wanted = !wanted
	}
	for _, child := range t.Children {
		codes = j.matched(codes, child, wanted)
	}
	return codes
}

// policyViolated says that something fired which fails the policy lens alone;
// without it both lenses run the same tests.
func (j judgement) policyViolated() bool {
	for i, check := range j.contract.Checks {
		if j.findings[i].Fired && check.Section != contract.ExpectedEffects && check.Section != contract.ReversedBy {
			return true
		}
	}
	return false
}

// violations are the codes of everything that fired and fails the lens, in contract order.
func (j judgement) violations(lens engine.Lens) []string {
	var codes []string
	for i, check := range j.contract.Checks {
		if check.Section == contract.ExpectedEffects || !j.findings[i].Fired {
			continue
		}
		if lens == engine.Policy || check.Section == contract.ReversedBy {
			codes = append(codes, check.Call.Code(true))
		}
	}
	return codes
}

// expected are the codes of the expected effects, apart by whether they were observed.
func (j judgement) expected() (observed, missing []string) {
	for i, check := range j.contract.Checks {
		if check.Section != contract.ExpectedEffects {
			continue
		}
		if j.findings[i].Fired {
			observed = append(observed, check.Call.Code(true))
			continue
		}
		missing = append(missing, missingCode(check.Call, j.findings[i]))
	}
	return observed, missing
}

func missingCode(call primitive.Call, found engine.Finding) string {
	if gate, ok := call.(primitive.TrustGate); ok && found.BelowTrust {
		return gate.BelowTrustCode()
	}
	return call.Code(false)
}

// everObserved is decision D9: any fact of an expected effect's type, at any time.
func (j judgement) everObserved() bool {
	for _, check := range j.contract.Checks {
		effect, ok := check.Call.(primitive.Effect)
		if !ok || check.Section != contract.ExpectedEffects {
			continue
		}
		source, factType := effect.EffectType()
		for i := range j.facts {
			if j.facts[i].Type == factType && (source == "" || j.facts[i].Source == source) {
				return true
			}
		}
	}
	return false
}

// Differences says in words where two evaluators disagree about one action; nil when they agree.
func Differences(c *contract.Contract, sql, derived engine.Evaluation) []string {
	var differences []string
	note := func(what string, sql, derived any) {
		differences = append(differences, fmt.Sprintf("%s: SQL says %+v, Go says %+v", what, sql, derived))
	}
	for i, call := range c.Calls {
		if i >= len(sql.Findings) || i >= len(derived.Findings) {
			note("number of findings", len(sql.Findings), len(derived.Findings))
			break
		}
		if sql.Findings[i] != derived.Findings[i] {
			note(call.Code(true), sql.Findings[i], derived.Findings[i])
		}
	}
	if !sameVerdict(sql.Outcome, derived.Outcome) {
		note("outcome", sql.Outcome, derived.Outcome)
	}
	if !sameVerdict(sql.Policy, derived.Policy) {
		note("policy", sql.Policy, derived.Policy)
	}
	return differences
}

func sameVerdict(a, b engine.Verdict) bool {
	return a.Raw == b.Raw && slices.Equal(a.Reasons, b.Reasons)
}
