package primitive

import (
	"fmt"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// effectCountExceeds is true when more than max matching facts exist in the
// window. Evidence is the (max+1)-th of them; the value is their number.
type effectCountExceeds struct {
	effect
	max int64
}

// MaxCount bounds max so that every evaluator counts in whole numbers.
const MaxCount = 1_000_000

var effectCountExceedsDefinition = Definition{
	Name: "effect_count_exceeds",
	Spellings: map[Section][]string{
		ForbiddenEffects: {"effect_count_exceeds"},
		Condition:        {"effect_count_exceeds"},
	},
	Doc:       "True when more matching facts than max are observed in the window.",
	Arguments: effectCountExceedsArguments,
	Labels:    map[string]string{"duplicate_effect": "Duplicate effect"},
	Parse:     parseEffectCountExceeds,
}

var effectCountExceedsArguments = effectArguments(
	Argument{Name: "max", Kind: KindCount, Doc: "how many are allowed; 1 when absent"},
)

func parseEffectCountExceeds(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(effectCountExceedsArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := effectCountExceeds{effect: parseEffect(m, p.Window), max: parseCount(m, "max", 1)}
	return Entry{Call: call, Message: m.Text("message", MaxMessage)}, p.Reporter.Count() == before
}

func parseCount(m *diagnostic.Mapping, key string, otherwise int64) int64 {
	text, ok := m.Scalar(key)
	if !ok {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > MaxCount || text[0] == '+' {
		m.Report(key, diagnostic.Diagnostic{
			Message: fmt.Sprintf("%s: %q is no count", m.Path(key), text),
			Allowed: fmt.Sprintf("write a whole number from 0 to %d", MaxCount),
		})
		return otherwise
	}
	return n
}

// Key implements Call.
func (e effectCountExceeds) Key(sources map[string]engine.Source) string {
	k := e.key("effect_count_exceeds", sources)
	k["max"] = strconv.FormatInt(e.max, 10)
	return k.String()
}

// Code implements Call.
func (e effectCountExceeds) Code(fired bool) string {
	return notUnless(fired, "duplicate_effect:"+e.name())
}

// Describe implements Call.
func (e effectCountExceeds) Describe() string {
	return fmt.Sprintf("more than %d %s within %s", e.max, e.phrase(), e.within)
}

// Explain implements Call.
func (e effectCountExceeds) Explain() string { return e.sentence(moreThan(e.max)) }

// Evaluate implements Call.
func (e effectCountExceeds) Evaluate(c *engine.Case) engine.Finding {
	var found engine.Finding
	var count int64
	for i := range c.Facts {
		if !e.matches(c, &c.Facts[i]) {
			continue
		}
		if count++; count == e.max+1 {
			found.Fired, found.Evidence = true, c.Facts[i].RawRef
		}
	}
	found.Value = engine.FindingValue{Set: true, Observed: strconv.FormatInt(count, 10)}
	return found
}

// SQL implements Call.
func (e effectCountExceeds) SQL(b *Builder) Columns {
	condition := e.condition(b)
	count := b.First(fmt.Sprintf("count(*) FILTER (WHERE %s)", condition))
	nth := b.First(b.Dialect.nth("f.order_key", condition, e.max+1))
	return Columns{
		Fired:    fmt.Sprintf("%s > %d", count, e.max),
		Evidence: rawRef(nth),
		Observed: fmt.Sprintf("CAST(%s AS text)", count),
	}
}

// notUnless is the reason code of a violation, and its negation in a condition tree.
func notUnless(fired bool, code string) string {
	if fired {
		return code
	}
	return "not:" + code
}
