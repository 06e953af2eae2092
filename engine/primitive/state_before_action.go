package primitive

import (
	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// stateBeforeAction is true when the latest record before the action matches.
// It stands in condition trees; as a precondition the same spelling compiles
// to preconditionUnmet (AC "The action: block", decision D19).
type stateBeforeAction struct{ state }

var stateBeforeActionDefinition = Definition{
	Name:      "state_before_action",
	Spellings: map[Section][]string{Condition: {"state_before_action"}},
	Doc:       "True when the latest record of the state, at or before the request, matches every where pair.",
	Arguments: stateArguments(),
	Labels:    map[string]string{"precondition_met": "Precondition met"},
	Parse:     parseStateBeforeAction,
}

func parseStateBeforeAction(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	s, message, ok := parseState(p, stateArguments(), argument, path)
	return Entry{Call: stateBeforeAction{s}, Message: message}, ok
}

// Key implements Call.
func (s stateBeforeAction) Key(map[string]engine.Source) string {
	return s.key("state_before_action").String()
}

// Code implements Call.
func (s stateBeforeAction) Code(fired bool) string {
	if fired {
		return "precondition_met:" + s.name()
	}
	return "precondition_unmet:" + s.name()
}

// Describe implements Call.
func (s stateBeforeAction) Describe() string { return s.phrase() + " before the action" }

// Explain implements Call.
func (s stateBeforeAction) Explain() string { return s.sentence("has") }

// Evaluate implements Call.
func (s stateBeforeAction) Evaluate(c *engine.Case) engine.Finding {
	evidence, holds := s.holds(c)
	return engine.Finding{Fired: holds, Evidence: evidence}
}

// SQL implements Call.
func (s stateBeforeAction) SQL(b *Builder) Columns {
	holds, evidence := s.columns(b)
	return Columns{Fired: holds, Evidence: evidence}
}
