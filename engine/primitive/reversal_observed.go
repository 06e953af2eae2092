package primitive

import (
	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// reversalObserved is true when a later record undoes the action. It fails
// both lenses. Evidence is the earliest matching fact.
type reversalObserved struct{ effect }

const defaultReversalWithin = 30 * engine.Day

var reversalObservedDefinition = Definition{
	Name: "reversal_observed",
	Spellings: map[Section][]string{
		ReversedBy: {"reversal_observed", "effect_observed"},
		Condition:  {"reversal_observed"},
	},
	Doc:       "True when a matching fact undoes the action within its own time, 30d when absent.",
	Bare:      KindIdentifier,
	Arguments: reversalObservedArguments,
	Labels:    map[string]string{"reversed": "Reversed"},
	Parse:     parseReversalObserved,
}

var reversalObservedArguments = effectArguments()

func parseReversalObserved(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	e, message, ok := parseEffectOrShorthand(p, reversalObservedArguments, argument, path, defaultReversalWithin)
	return Entry{Call: reversalObserved{e}, Message: message}, ok
}

// Reversal is implemented by calls whose facts re-verify a settled action (AC "reversal_observed").
type Reversal interface {
	Effect
	// Within is how long after the request the fact counts.
	Within() engine.Duration
}

// Within implements Reversal.
func (e reversalObserved) Within() engine.Duration { return e.within }

// Key implements Call.
func (e reversalObserved) Key(sources map[string]engine.Source) string {
	return e.key("reversal_observed", sources).String()
}

// Code implements Call.
func (e reversalObserved) Code(fired bool) string { return notUnless(fired, "reversed:"+e.name()) }

// Describe implements Call.
func (e reversalObserved) Describe() string { return e.phrase() + " undid the action" }

// Explain implements Call.
func (e reversalObserved) Explain() string { return e.sentence("") }

// Evaluate implements Call.
func (e reversalObserved) Evaluate(c *engine.Case) engine.Finding {
	for i := range c.Facts {
		if e.matches(c, &c.Facts[i]) {
			return engine.Finding{Fired: true, Evidence: c.Facts[i].RawRef}
		}
	}
	return engine.Finding{}
}

// SQL implements Call.
func (e reversalObserved) SQL(b *Builder) Columns {
	first := b.earliest(e.condition(b))
	return Columns{Fired: first + " IS NOT NULL", Evidence: rawRef(first)}
}
