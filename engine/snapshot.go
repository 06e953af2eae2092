package engine

import "slices"

// Snapshot is what a store knows, at one moment, about a batch of actions of
// one tenant under one contract version. The Go evaluator derives verdicts
// from it; it holds no result of the SQL evaluator (decision D23).
type Snapshot struct {
	Tenant  string
	Actions []Action
	// Peers are the recorded actions that aggregate limits may reach: same
	// contract id, any version (decision D17). Empty without aggregate limits.
	Peers []Action
	// Links maps a subject to its linked subjects, in both directions.
	Links map[string][]string
	// Facts maps a subject to its facts in the order of CompareFacts.
	Facts map[string][]Fact
	// Sources maps a source's name to its state.
	Sources map[string]Source
}

// Case is one action of a Snapshot with the facts of its own and linked
// subjects, in the order of CompareFacts.
type Case struct {
	Snapshot *Snapshot
	Action   Action
	Facts    []Fact
}

// Cases returns one Case per action, in the order of Actions.
func (s *Snapshot) Cases() []Case {
	cases := make([]Case, len(s.Actions))
	for i, action := range s.Actions {
		cases[i] = Case{Snapshot: s, Action: action, Facts: s.FactsOf(action.SubjectID)}
	}
	return cases
}

// Subjects are a subject and those linked to it, one hop, each once (decision D7).
func (s *Snapshot) Subjects(subject string) []string {
	linked := s.Links[subject]
	if len(linked) == 0 {
		return []string{subject}
	}
	subjects := append(make([]string, 0, len(linked)+1), subject)
	for _, other := range linked {
		if !slices.Contains(subjects, other) {
			subjects = append(subjects, other)
		}
	}
	return subjects
}

// FactsOf are the facts of a subject and those linked to it, in the order of CompareFacts.
func (s *Snapshot) FactsOf(subject string) []Fact {
	if len(s.Links[subject]) == 0 {
		return s.Facts[subject]
	}
	var facts []Fact
	for _, one := range s.Subjects(subject) {
		facts = append(facts, s.Facts[one]...)
	}
	slices.SortFunc(facts, CompareFacts)
	return facts
}
