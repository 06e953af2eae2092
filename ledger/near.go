package ledger

import "github.com/countersign-otel/countersign/engine"

// NearFilter says which facts are near, for hints to people.
type NearFilter struct {
	// Subject is the case: it, and what is linked to it, one hop (decision D7).
	Subject string
	// Alike are subjects that are spelled like it; those of the case do not count as such.
	Alike []string
	// Types of facts; none selects nothing.
	Types []string
	// At is the moment that they are near; Since and Until bound occurred_at, both ends included.
	At, Since, Until engine.Instant
	// Limit is how many of one type are returned before At, and from At on, those
	// nearest to it, of the case and again of the subjects alike.
	Limit int
}

// NearFact is a fact of a case or, when it is Alike, of a subject spelled like the case's.
type NearFact struct {
	engine.Fact
	Alike bool
}
