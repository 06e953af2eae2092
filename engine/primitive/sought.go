package primitive

import (
	"strings"

	"github.com/countersign-otel/countersign/engine"
)

// Seeker is implemented by calls that can be missing a fact, and then say what it would have been.
type Seeker interface {
	Seek() Sought
}

// Sought is a fact that a call looks for. It serves hints for people (see
// engine/report, NearMiss) and decides nothing.
type Sought struct {
	// State: the fact tells what was before the action, and not what came of it.
	State bool
	// Type, and Source unless it is empty, which is any.
	Source, Type string
	// Back and Ahead are how long before and after the request it counts, both ends included.
	Back, Ahead engine.Duration
	// MinTrust is the lowest trust of its source; UnknownTrust for any.
	MinTrust engine.Trust

	attributes effect
}

func (e effect) seek() Sought {
	return Sought{Source: e.source, Type: e.factType, Ahead: e.within, MinTrust: e.minTrust, attributes: e}
}

func (s state) seek() Sought {
	return Sought{State: true, Source: s.source, Type: s.factType, Back: s.lookback, attributes: effect{where: s.where}}
}

// Lacks are the conditions on its attributes that a fact does not meet, in
// words like "status = succeeded"; empty when it meets them all.
func (s Sought) Lacks(a *engine.Action, f *engine.Fact) []string {
	var lacking []string
	for _, p := range s.attributes.where {
		if !f.Attributes.Lookup(p.attr).Equal(p.value) {
			lacking = append(lacking, p.phrase())
		}
	}
	for _, p := range s.attributes.origin {
		if !f.Attributes.Lookup(p.attr).Equal(a.Field(p.field)) {
			lacking = append(lacking, p.phrase())
		}
	}
	return lacking
}

func (p pair) phrase() string { return p.attr + " = " + p.value.Canonicalized() }

func (p originPair) phrase() string {
	return p.attr + " = the action's " + strings.TrimPrefix(p.field, "param:")
}
