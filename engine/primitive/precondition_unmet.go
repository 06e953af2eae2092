package primitive

import (
	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// preconditionUnmet is true when the latest record before the action does not
// match, or when there is none. Evidence is the record that was inspected.
type preconditionUnmet struct{ state }

var preconditionUnmetDefinition = Definition{
	Name: "precondition_unmet",
	Spellings: map[Section][]string{
		Preconditions: {"state_before_action", "precondition_unmet"},
		Condition:     {"precondition_unmet"},
	},
	Doc:       "True when the latest record of the state, at or before the request, does not match, or when there is none.",
	Arguments: stateArguments(),
	Labels:    map[string]string{"precondition_unmet": "Precondition not met"},
	Parse:     parsePreconditionUnmet,
}

// Key implements Call.
func (s preconditionUnmet) Key(map[string]engine.Source) string {
	return s.key("precondition_unmet").String()
}

// Code implements Call.
func (s preconditionUnmet) Code(fired bool) string {
	if fired {
		return "precondition_unmet:" + s.name()
	}
	return "precondition_met:" + s.name()
}

// Describe implements Call.
func (s preconditionUnmet) Describe() string { return s.phrase() + " was not so before the action" }

// Explain implements Call.
func (s preconditionUnmet) Explain() string { return s.sentence("has") }

// ExplainTrue implements Rule.
func (s preconditionUnmet) ExplainTrue() string { return s.sentence("is missing, or does not have") }

// Evaluate implements Call.
func (s preconditionUnmet) Evaluate(c *engine.Case) engine.Finding {
	evidence, holds := s.holds(c)
	return engine.Finding{Fired: !holds, Evidence: evidence}
}

// Seek implements Seeker.
func (s preconditionUnmet) Seek() Sought { return s.seek() }

// SQL implements Call.
func (s preconditionUnmet) SQL(b *Builder) Columns {
	holds, evidence := s.columns(b)
	return Columns{Fired: "NOT " + holds, Evidence: evidence}
}

func parsePreconditionUnmet(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	s, message, ok := parseState(p, stateArguments(), argument, path)
	return Entry{Call: preconditionUnmet{s}, Message: message}, ok
}
