package primitive

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// effectAttrExceeds is true when a matching fact carries attr above max.
// Evidence is the earliest such fact; the value is what it carries. A missing
// or non-numeric attribute never violates (decision D3).
type effectAttrExceeds struct {
	effect
	attr string
	max  engine.Decimal
}

var effectAttrExceedsDefinition = Definition{
	Name: "effect_attr_exceeds",
	Spellings: map[Section][]string{
		ForbiddenEffects: {"effect_attr_exceeds"},
		Condition:        {"effect_attr_exceeds"},
	},
	Doc:       "True when a matching fact in the window carries an attribute above max.",
	Arguments: effectAttrExceedsArguments,
	Labels:    map[string]string{"forbidden_effect_observed": "Forbidden effect observed"},
	Parse:     parseEffectAttrExceeds,
}

var effectAttrExceedsArguments = effectArguments(
	Argument{Name: "attr", Kind: KindIdentifier, Required: true, Doc: "attribute that is compared"},
	Argument{Name: "max", Kind: KindDecimal, Required: true, Doc: "largest allowed value"},
)

func parseEffectAttrExceeds(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(effectAttrExceedsArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := effectAttrExceeds{effect: parseEffect(m, p.Window), attr: requiredIdentifier(m, "attr"), max: requiredDecimal(m, "max")}
	return Entry{Call: call, Message: m.Text("message", MaxMessage)}, p.Reporter.Count() == before
}

func requiredIdentifier(m *diagnostic.Mapping, key string) string {
	if !m.Require(key) {
		return ""
	}
	return m.Identifier(key)
}

func requiredDecimal(m *diagnostic.Mapping, key string) engine.Decimal {
	if !m.Require(key) {
		return engine.Decimal{}
	}
	number, _ := m.Decimal(key)
	return number
}

// Key implements Call.
func (e effectAttrExceeds) Key(sources map[string]engine.Source) string {
	k := e.key("effect_attr_exceeds", sources)
	k.text("attr", e.attr)
	k.text("max", e.max.String())
	return k.String()
}

// Code implements Call.
func (e effectAttrExceeds) Code(fired bool) string {
	return notUnless(fired, "forbidden_effect_observed:"+e.name())
}

// Describe implements Call.
func (e effectAttrExceeds) Describe() string {
	return fmt.Sprintf("%s with %s above %s", e.phrase(), e.attr, e.max)
}

// Explain implements Call.
func (e effectAttrExceeds) Explain() string {
	return e.sentence("", fmt.Sprintf("whose %s is above %s", e.attr, e.max))
}

// Evaluate implements Call.
func (e effectAttrExceeds) Evaluate(c *engine.Case) engine.Finding {
	for i := range c.Facts {
		f := &c.Facts[i]
		if !e.matches(c, f) {
			continue
		}
		value, ok := f.Attributes.Lookup(e.attr).Decimal()
		if ok && value.Cmp(e.max) > 0 {
			return engine.Finding{Fired: true, Evidence: f.RawRef, Value: engine.FindingValue{Set: true, Observed: value.String()}}
		}
	}
	return engine.Finding{}
}

// SQL implements Call.
func (e effectAttrExceeds) SQL(b *Builder) Columns {
	value := b.decimalOf("f.attributes", e.attr)
	over := b.Dialect.compare(value, ">", b.Dialect.constant(e.max.String()))
	first := b.First(fmt.Sprintf("min(%s) FILTER (WHERE %s AND %s)", b.withText(b.Dialect.canonical(value)), e.condition(b), over))
	return Columns{
		Fired:    first + " IS NOT NULL",
		Evidence: b.carriedRef(first),
		Observed: b.carriedText(first),
	}
}
