package primitive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// paramNotIn is true when an argument that the agent sent is none of the
// allowed values. A missing one is no violation (AC "param_not_in"). Evidence
// is the claim record.
type paramNotIn struct {
	param  string
	values []pair // attr is the parameter's name
}

// MaxValues is the longest list of allowed values.
const MaxValues = 256

var paramNotInDefinition = Definition{
	Name: "param_not_in",
	Spellings: map[Section][]string{
		Limits:    {"param_in", "param_not_in"},
		Condition: {"param_not_in", "param_in"},
	},
	Doc:       "True when the action's parameter was sent and is none of the values.",
	Arguments: paramNotInArguments,
	Labels:    map[string]string{"param_not_allowed": "Parameter not allowed"},
	Parse:     parseParamNotIn,
}

var paramNotInArguments = []Argument{
	{Name: "param", Kind: KindIdentifier, Required: true, Doc: "parameter of the action"},
	{Name: "values", Kind: KindValues, Required: true, Doc: "allowed values, at least one"},
}

func parseParamNotIn(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(paramNotInArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := paramNotIn{param: requiredIdentifier(m, "param")}
	call.values = parseValues(m, call.param)
	return Entry{Call: call}, p.Reporter.Count() == before
}

// parseValues reads the allowed values, sorted and each once, so that their
// order in the file is no part of the call key.
func parseValues(m *diagnostic.Mapping, param string) []pair {
	before := m.Reporter().Count()
	if !m.Require("values") {
		return nil
	}
	var values []pair
	list := m.List("values")
	for i, node := range list {
		text, ok := constant(m.Reporter(), diagnostic.Resolve(node), fmt.Sprintf("%s[%d]", m.Path("values"), i))
		if ok {
			values = append(values, pair{param, engine.StringValue(text)})
		}
	}
	if m.Reporter().Count() == before && (len(list) == 0 || len(list) > MaxValues) {
		m.Errorf("values", "%s has %d values; 1 to %d are allowed", m.Path("values"), len(list), MaxValues)
	}
	slices.SortFunc(values, func(a, b pair) int {
		return strings.Compare(a.value.Canonicalized(), b.value.Canonicalized())
	})
	return slices.CompactFunc(values, func(a, b pair) bool { return a.value.Canonicalized() == b.value.Canonicalized() })
}

// Key implements Call.
func (e paramNotIn) Key(map[string]engine.Source) string {
	k := callKey{}
	k.text("primitive", "param_not_in")
	k.text("param", e.param)
	quoted := make([]string, len(e.values))
	for i, p := range e.values {
		quoted[i] = quote(p.value.Canonicalized())
	}
	k["values"] = "[" + strings.Join(quoted, ",") + "]"
	return k.String()
}

// Code implements Call.
func (e paramNotIn) Code(fired bool) string { return notUnless(fired, "param_not_allowed:"+e.param) }

// Describe implements Call.
func (e paramNotIn) Describe() string { return e.param + " one of " + e.list() }

func (e paramNotIn) list() string {
	texts := make([]string, len(e.values))
	for i, p := range e.values {
		texts[i], _ = p.value.Scalar()
	}
	return strings.Join(texts, ", ")
}

// Explain implements Call.
func (e paramNotIn) Explain() string {
	return fmt.Sprintf("The parameter %s, when it is sent, is one of: %s.", e.param, e.list())
}

// ExplainTrue implements Rule.
func (e paramNotIn) ExplainTrue() string {
	return fmt.Sprintf("The parameter %s is sent and is none of: %s.", e.param, e.list())
}

// Sources implements Call.
func (e paramNotIn) Sources() []string { return nil }

// Evaluate implements Call.
func (e paramNotIn) Evaluate(c *engine.Case) engine.Finding {
	found := paramFinding(c, e.param)
	value := c.Action.Params.Lookup(e.param)
	if kind := value.Kind(); kind == engine.Absent || kind == engine.Null {
		return found
	}
	found.Fired = true
	for _, p := range e.values {
		if value.Equal(p.value) {
			found.Fired = false
		}
	}
	return found
}

// SQL implements Call.
func (e paramNotIn) SQL(b *Builder) Columns {
	var allowed []string
	for _, p := range e.values {
		allowed = append(allowed, fmt.Sprintf("coalesce(%s, %s)", b.equalsConstant("b.params", p), b.Dialect.False))
	}
	sent := b.Dialect.sent("b.params", e.param)
	return paramColumns(b, e.param, fmt.Sprintf("%s AND NOT (%s)", sent, strings.Join(allowed, " OR ")))
}
