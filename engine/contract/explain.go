package contract

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// Explain says what a contract demands and how its verdicts come about, in
// sentences for people who do not read YAML. It ends with a line break.
func Explain(c *Contract) string {
	e := explanation{contract: c}
	e.introduction()
	e.timing()
	for _, part := range explainedSections {
		e.section(part)
	}
	e.unknown()
	e.verdicts()
	return e.text.String()
}

type explanation struct {
	contract *Contract
	text     strings.Builder
}

func (e *explanation) line(format string, args ...any) {
	fmt.Fprintf(&e.text, format+"\n", args...)
}

func (e *explanation) heading(text string) { e.line("\n%s", text) }

func (e *explanation) introduction() {
	c := e.contract
	e.line("%s", c.VendorDisplay)
	e.line("Contract %s, version %d.", c.ID, c.Version)
	if c.Description != "" {
		e.line("\n%s", c.Description)
	}
	e.line("\n%s", citationSentence(c.Citation))
	if c.Citation.Notes != "" {
		e.line("%s", c.Citation.Notes)
	}
}

func citationSentence(s Citation) string {
	text := "The policy stands at " + s.URL
	if s.Title != "" {
		text = fmt.Sprintf("The policy is %q, at %s", s.Title, s.URL)
	}
	if s.Retrieved != "" {
		text += ", as of " + s.Retrieved
	}
	return text + "."
}

func (e *explanation) timing() {
	c := e.contract
	e.heading("WHO, WHAT, WHEN")
	act := "acts"
	if c.ActionType != "" {
		act = fmt.Sprintf("asks for a %q", c.ActionType)
	}
	e.line("An agent of %q %s on one %s. What it asked for are its parameters.", c.Vendor, act, subject(c))
	e.line("Everything is measured from the moment of that request, and looked for under that %s and those linked to it.", subject(c))
	e.line("The window closes %s after the request.", primitive.InWords(c.Window))
}

// explainedSection is one list of the action block in the order in which people ask.
type explainedSection struct {
	section Section
	heading string
	// otherwise leads to the message of a check that fails.
	otherwise string
}

var explainedSections = []explainedSection{
	{Preconditions, "MUST BE TRUE BEFORE", "If not"},
	{Limits, "LIMITS ON WHAT THE AGENT MAY ASK FOR", "If not"},
	{ExpectedEffects, "MUST HAPPEN, ALL OF IT", "If not"},
	{ForbiddenEffects, "MUST NOT HAPPEN", "If it does"},
	{AggregateLimits, "TOTALS OVER MANY ACTIONS", "If not"},
	{ReversedBy, "UNDOES THE ACTION LATER", "If it does"},
}

func (e *explanation) section(part explainedSection) {
	n := 0
	for _, check := range e.contract.Checks {
		if check.Section != part.section {
			continue
		}
		if n++; n == 1 {
			e.heading(part.heading)
		}
		e.line("%d. %s", n, check.Call.Explain())
		if check.Message != "" {
			e.line("   %s: %s", part.otherwise, check.Message)
		}
	}
}

// subject is what the contract calls a subject. The kind that stands for none
// given would read as "any record of the record".
func subject(c *Contract) string {
	if c.SubjectKind == engine.DefaultSubjectKind {
		return "subject"
	}
	return c.SubjectKind
}

func (e *explanation) unknown() {
	c := e.contract
	if len(c.Exclusions) > 0 {
		e.heading("EXCLUDED, AND THEREFORE FAILED")
		for i, tree := range c.Exclusions {
			e.line("%d. %s", i+1, sentence(e.condition(tree)))
		}
	}
	e.heading("CANNOT BE KNOWN")
	e.line("1. No system has any record of the %s.", subject(c))
	n := 2
	if c.UnverifiableIf != nil {
		for _, tree := range alternatives(c.UnverifiableIf) {
			e.line("%d. %s", n, sentence(e.condition(tree)))
			n++
		}
	}
	e.line("%d. Systems have records of the %s, but none of a kind that must happen was ever seen.", n, subject(c))
}

// alternatives are the branches of an any, or the tree itself.
func alternatives(t *Tree) []*Tree {
	if t.Operator == Any {
		return t.Children
	}
	return []*Tree{t}
}

// condition is a tree as a clause, without a full stop.
func (e *explanation) condition(t *Tree) string {
	switch t.Operator {
	case Not:
		return "it is not so that " + e.operand(t.Children[0])
	case Any:
		return e.list(t.Children, ", or ")
	case All:
		return e.list(t.Children, ", and ")
	}
	call := e.contract.Calls[t.Call]
	text := call.Explain()
	if rule, ok := call.(primitive.Rule); ok {
		text = rule.ExplainTrue()
	}
	return lowerFirst(strings.TrimSuffix(text, "."))
}

func (e *explanation) list(trees []*Tree, conjunction string) string {
	clauses := make([]string, len(trees))
	for i, t := range trees {
		clauses[i] = e.operand(t)
	}
	return strings.Join(clauses, conjunction)
}

// operand puts lists of clauses in brackets.
func (e *explanation) operand(t *Tree) string {
	if (t.Operator == Any || t.Operator == All) && len(t.Children) > 1 {
		return "(" + e.condition(t) + ")"
	}
	return e.condition(t)
}

func sentence(clause string) string { return strings.ToUpper(clause[:1]) + clause[1:] + "." }

// lowerFirst leaves the names of sources alone: they are lowercase already.
func lowerFirst(text string) string { return strings.ToLower(text[:1]) + text[1:] }

func (e *explanation) verdicts() {
	reversible := e.has(ReversedBy)
	e.heading("THE VERDICTS")
	e.line("Two questions are answered about every action.")
	e.line("Outcome, did it work? PASS when everything that must happen was seen in time%s. FAIL when something is missing%s.",
		when(reversible, ", and nothing undid it"), when(reversible, " or the action was undone"))
	e.line("Policy, was it right? PASS when the outcome passes and every rule above was kept. FAIL when any rule was broken, even if the outcome passes, and when the outcome fails.")
	e.line("For each question, the first of these that applies decides:")
	for i, step := range e.steps() {
		e.line("%d. %s", i+1, step)
	}
	e.settlement()
	e.line("Nothing here blocks, approves or changes anything: the records are compared after the fact.")
}

// steps are AC "Evaluation order", without those that the contract has no use for.
func (e *explanation) steps() []string {
	c := e.contract
	broken := ""
	if e.hasRules() {
		broken = "A rule was broken: FAIL for the policy."
	}
	if e.has(ReversedBy) {
		broken = strings.TrimSpace(broken + " The action was undone: FAIL for both.")
	}
	var steps []string
	for _, step := range []string{
		when(len(c.Exclusions) > 0, "The action is excluded: FAIL."),
		fmt.Sprintf("No system has any record of the %s: UNKNOWN.", subject(c)),
		when(c.UnverifiableIf != nil, "Another condition under CANNOT BE KNOWN holds, except the last: UNKNOWN."),
		broken,
		"Everything that must happen was seen in time: PASS.",
		"Nothing of a kind that must happen was ever seen: UNKNOWN.",
		"Something that must happen is missing: FAIL.",
	} {
		if step != "" {
			steps = append(steps, step)
		}
	}
	return steps
}

// hasRules says whether anything beside effects and reversals can fail the policy.
func (e *explanation) hasRules() bool {
	return e.has(Preconditions) || e.has(Limits) || e.has(AggregateLimits) || e.has(ForbiddenEffects)
}

func (e *explanation) settlement() {
	c := e.contract
	sources := c.NamedSources()
	caughtUp := ""
	if len(sources) > 0 {
		caughtUp = fmt.Sprintf(" and %s have reported past it, or were waited for long enough", strings.Join(sources, ", "))
	}
	if len(sources) == 1 {
		caughtUp = fmt.Sprintf(" and %s has reported past it, or was waited for long enough", sources[0])
	}
	if c.SettleAtClose {
		e.line("A verdict is final when the window has closed%s.", caughtUp)
	} else {
		e.line("A verdict is final as soon as everything that must happen was seen; otherwise when the window has closed%s.", caughtUp)
	}
	if e.has(ReversedBy) {
		e.line("A record that undoes the action reopens a final verdict.")
	}
	if c.UpdatesUntilSettled {
		e.line("Once a verdict was final, what it depends on cannot be changed by recording the action again.")
	}
}

func (e *explanation) has(s Section) bool {
	for _, check := range e.contract.Checks {
		if check.Section == s {
			return true
		}
	}
	return false
}

func when(condition bool, text string) string {
	if condition {
		return text
	}
	return ""
}
