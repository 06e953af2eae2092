package primitive

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// state finds the latest fact of a type at or before the request, within a
// lookback (AC "state_before_action").
type state struct {
	factType string
	source   string
	lookback engine.Duration
	where    []pair
}

const defaultLookback = 30 * engine.Day

func stateArguments() []Argument {
	return []Argument{
		{Name: "type", Kind: KindIdentifier, Required: true, Doc: "fact type that records the state"},
		{Name: "source", Kind: KindIdentifier, Doc: "system of record that reports it; any when absent"},
		{Name: "where", Kind: KindWhere, Required: true, Doc: "attributes that the latest record must have; at least one"},
		{Name: "lookback", Kind: KindDuration, Doc: "how old the record may be; 30d when absent"},
		messageArgument,
	}
}

func parseState(p Parsing, arguments []Argument, argument *yaml.Node, path string) (state, string, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(arguments, p.Section)...)
	if !ok {
		return state{}, "", false
	}
	s := state{
		factType: requiredIdentifier(m, "type"),
		source:   m.Identifier("source"),
		lookback: m.Duration("lookback", defaultLookback),
		where:    parseWhere(m, "where"),
	}
	if where := m.Value("where"); where == nil || where.Kind == yaml.MappingNode && len(where.Content) == 0 {
		m.Report("where", diagnostic.Diagnostic{Message: path + " needs a non-empty where", Allowed: "write where: {attribute: value}"})
	}
	return s, m.Text("message", MaxMessage), p.Reporter.Count() == before
}

// Sources implements Call.
func (s state) Sources() []string {
	if s.source == "" {
		return nil
	}
	return []string{s.source}
}

func (s state) name() string { return effect{factType: s.factType, source: s.source}.name() }

func (s state) phrase() string {
	return effect{factType: s.factType, source: s.source, where: s.where}.phrase()
}

func (s state) key(primitive string) callKey {
	k := callKey{}
	k.text("primitive", primitive)
	k.text("type", s.factType)
	k.text("source", s.source)
	k.seconds("lookback", s.lookback)
	k["where"] = wherePairs(s.where).String()
	return k
}

// latest is the Go side: the last fact in the order of decision D5; nil for none.
func (s state) latest(c *engine.Case) *engine.Fact {
	from := c.Action.RequestedAt.Sub(s.lookback)
	for i := len(c.Facts) - 1; i >= 0; i-- {
		f := &c.Facts[i]
		if f.Type != s.factType || (s.source != "" && f.Source != s.source) {
			continue
		}
		if f.OccurredAt <= c.Action.RequestedAt && f.OccurredAt >= from {
			return f
		}
	}
	return nil
}

// holds says whether the latest record matches every where pair.
func (s state) holds(c *engine.Case) (evidence string, ok bool) {
	f := s.latest(c)
	if f == nil {
		return "", false
	}
	e := effect{where: s.where}
	return f.RawRef, e.matchesAttributes(&c.Action, f)
}

// condition is the SQL side of the lookup, without where.
func (s state) condition() string {
	parts := []string{
		"f.fact_type = " + Literal(s.factType),
		"f.occurred_at <= b.requested_at",
		fmt.Sprintf("f.occurred_at >= b.requested_at - %d", s.lookback),
	}
	if s.source != "" {
		parts = append(parts, "f.source = "+Literal(s.source))
	}
	return strings.Join(parts, " AND ")
}

// columns compares the latest record with the latest matching one: the state
// holds when both are the same.
func (s state) columns(b *Builder) (holds, evidence string) {
	conditions := []string{s.condition()}
	for _, p := range s.where {
		conditions = append(conditions, b.equalsConstant("f.attributes", p))
	}
	latest := b.latest(s.condition())
	matching := b.latest(strings.Join(conditions, " AND "))
	return fmt.Sprintf("coalesce(%s = %s, %s)", latest, matching, b.Dialect.False), rawRef(latest)
}
