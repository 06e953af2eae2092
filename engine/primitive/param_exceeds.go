package primitive

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"gopkg.in/yaml.v3"
)

// paramExceeds is true when an argument of the agent's own is above max. A
// missing or non-numeric one reads as 0 (decision D3). Evidence is the claim record.
type paramExceeds struct {
	param string
	max   engine.Decimal
}

var paramExceedsDefinition = Definition{
	Name: "param_exceeds",
	Spellings: map[Section][]string{
		Limits:    {"param_max", "param_exceeds"},
		Condition: {"param_exceeds", "param_max"},
	},
	Doc:       "True when the action's parameter is above max.",
	Arguments: paramExceedsArguments,
	Labels:    map[string]string{"limit_exceeded": "Limit exceeded"},
	Parse:     parseParamExceeds,
}

var paramExceedsArguments = []Argument{
	{Name: "param", Kind: KindIdentifier, Required: true, Doc: "parameter of the action"},
	{Name: "max", Kind: KindDecimal, Required: true, Doc: "largest allowed value"},
}

func parseParamExceeds(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(paramExceedsArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := paramExceeds{param: requiredIdentifier(m, "param"), max: requiredDecimal(m, "max")}
	return Entry{Call: call}, p.Reporter.Count() == before
}

// Key implements Call.
func (e paramExceeds) Key(map[string]engine.Source) string {
	k := callKey{}
	k.text("primitive", "param_exceeds")
	k.text("param", e.param)
	k.text("max", e.max.String())
	return k.String()
}

// Code implements Call.
func (e paramExceeds) Code(fired bool) string { return notUnless(fired, "limit_exceeded:"+e.param) }

// Describe implements Call.
func (e paramExceeds) Describe() string { return fmt.Sprintf("%s at most %s", e.param, e.max) }

// Explain implements Call.
func (e paramExceeds) Explain() string {
	return fmt.Sprintf("The parameter %s is at most %s; one that is missing or no number counts as 0.", e.param, e.max)
}

// ExplainTrue implements Rule.
func (e paramExceeds) ExplainTrue() string {
	return fmt.Sprintf("The parameter %s is above %s.", e.param, e.max)
}

// Sources implements Call.
func (e paramExceeds) Sources() []string { return nil }

// Evaluate implements Call.
func (e paramExceeds) Evaluate(c *engine.Case) engine.Finding {
	found := paramFinding(c, e.param)
	value, _ := c.Action.Params.Lookup(e.param).Decimal() // 0 when it does not read
	found.Fired = value.Cmp(e.max) > 0
	return found
}

// paramFinding is the claim record with the parameter's value.
func paramFinding(c *engine.Case, param string) engine.Finding {
	value := c.Action.Params.Lookup(param)
	text, ok := value.Scalar()
	if number, isNumber := value.Decimal(); isNumber {
		text = number.String()
	}
	return engine.Finding{Evidence: c.Action.RawRef(), Value: engine.FindingValue{Set: ok, Observed: text}}
}

// SQL implements Call.
func (e paramExceeds) SQL(b *Builder) Columns {
	value := b.decimalOf("b.params", e.param)
	read := fmt.Sprintf("coalesce(%s, %s)", value, b.Dialect.constant("0"))
	return paramColumns(b, e.param, b.Dialect.compare(read, ">", b.Dialect.constant(e.max.String())))
}

func paramColumns(b *Builder, param, fired string) Columns {
	text := b.Dialect.text("b.params", param)
	return Columns{
		Fired:    fired,
		Evidence: Literal(engine.ClaimRawRef("")) + " || b.action_id",
		Observed: fmt.Sprintf("coalesce(%s, %s)", b.Dialect.canonical(b.Dialect.decimal(text)), text),
	}
}
