package primitive

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// effectObserved is true when a matching fact exists in the window. Evidence
// is the earliest matching fact of sufficient trust.
type effectObserved struct{ effect }

var effectObservedDefinition = Definition{
	Name: "effect_observed",
	Spellings: map[Section][]string{
		ExpectedEffects:  {"effect_observed"},
		ForbiddenEffects: {"effect_observed"},
		Condition:        {"effect_observed"},
	},
	Doc:       "True when at least one matching fact is observed between the request and the end of the window.",
	Bare:      KindIdentifier,
	Arguments: effectObservedArguments,
	Labels: map[string]string{
		"effect_observed":         "Effect observed",
		"expected_effect_missing": "Expected effect not observed",
		"effect_below_trust":      "Effect reported only by a source below the required trust",
	},
	Parse: parseEffectObserved,
}

var effectObservedArguments = effectArguments(Argument{
	Name: "min_trust", Kind: KindTrust, Words: trustWords(), OnlyIn: []Section{ExpectedEffects},
	Doc: "lowest trust of a source whose fact satisfies the effect",
})

func parseEffectObserved(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	e, message, ok := parseEffectOrShorthand(p, effectObservedArguments, argument, path, p.Window)
	return Entry{Call: effectObserved{e}, Message: message}, ok
}

// parseEffectOrShorthand reads the mapping, or the bare fact type.
func parseEffectOrShorthand(p Parsing, arguments []Argument, argument *yaml.Node, path string, within engine.Duration) (effect, string, bool) {
	before := p.Reporter.Count()
	if argument = diagnostic.Resolve(argument); argument != nil && argument.Kind == yaml.ScalarNode && argument.Tag != "!!null" {
		factType, err := engine.Identifier(argument.Value)
		if err != nil {
			p.Reporter.Errorf(argument, path, "%s: %s", path, err)
		}
		return effect{factType: factType, within: within}, "", p.Reporter.Count() == before
	}
	m, ok := p.Reporter.Mapping(argument, path, keys(arguments, p.Section)...)
	if !ok {
		return effect{}, "", false
	}
	return parseEffect(m, within), m.Text("message", MaxMessage), p.Reporter.Count() == before
}

// Key implements Call.
func (e effectObserved) Key(sources map[string]engine.Source) string {
	return e.key("effect_observed", sources).String()
}

// Code implements Call.
func (e effectObserved) Code(fired bool) string {
	if fired {
		return "effect_observed:" + e.name()
	}
	return "expected_effect_missing:" + e.name()
}

// BelowTrustCode is the reason code of an effect that only sources below min_trust report.
func (e effectObserved) BelowTrustCode() string { return "effect_below_trust:" + e.name() }

// Describe implements Call.
func (e effectObserved) Describe() string { return e.phrase() }

// Explain implements Call.
func (e effectObserved) Explain() string {
	text := e.sentence("")
	if e.minTrust != engine.UnknownTrust {
		text = fmt.Sprintf("%s, reported by a source whose trust is %s or better.", strings.TrimSuffix(text, "."), e.minTrust)
	}
	return text
}

// Evaluate implements Call.
func (e effectObserved) Evaluate(c *engine.Case) engine.Finding {
	var below engine.Finding
	for i := range c.Facts {
		f := &c.Facts[i]
		if !e.matches(c, f) {
			continue
		}
		if e.minTrust == engine.UnknownTrust || c.Snapshot.Sources[f.Source].Trust >= e.minTrust {
			return engine.Finding{Fired: true, Evidence: f.RawRef}
		}
		if !below.BelowTrust {
			below = engine.Finding{BelowTrust: true, Evidence: f.RawRef}
		}
	}
	return below
}

// Seek implements Seeker.
func (e effectObserved) Seek() Sought { return e.seek() }

// SQL implements Call.
func (e effectObserved) SQL(b *Builder) Columns {
	if e.minTrust == engine.UnknownTrust {
		first := b.earliest(e.condition(b))
		return Columns{Fired: first + " IS NOT NULL", Evidence: rawRef(first)}
	}
	trusted := b.earliest(fmt.Sprintf("%s AND f.trust >= %d", e.condition(b), e.minTrust))
	any := b.earliest(e.condition(b))
	return Columns{
		Fired:      trusted + " IS NOT NULL",
		BelowTrust: fmt.Sprintf("%s IS NULL AND %s IS NOT NULL", trusted, any),
		Evidence:   rawRef(fmt.Sprintf("coalesce(%s, %s)", trusted, any)),
	}
}
