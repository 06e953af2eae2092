package primitive

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// effectAttrDiffers is true when a matching fact carries attr further than
// tolerance from a reference: a parameter of the action, or an attribute of
// the latest state before it, plus or minus a parameter. Without a reference
// there is no violation. Evidence is the earliest such fact.
type effectAttrDiffers struct {
	effect
	attr        string
	equalsParam string    // exactly one of equalsParam
	equalsState *stateRef // and equalsState is set
	plusParam   string
	minusParam  string
	tolerance   engine.Decimal
}

// stateRef names an attribute of the latest state fact.
type stateRef struct {
	state
	attr string
}

var effectAttrDiffersDefinition = Definition{
	Name: "effect_attr_differs",
	Spellings: map[Section][]string{
		ForbiddenEffects: {"effect_attr_differs"},
		Condition:        {"effect_attr_differs"},
	},
	Doc:       "True when a matching fact in the window carries an attribute that differs from its reference by more than the tolerance.",
	Arguments: effectAttrDiffersArguments,
	Choices: []Choice{
		{Keys: []string{"equals_param", "equals_state"}, Required: true},
		{Keys: []string{"plus_param", "minus_param"}},
	},
	Labels: map[string]string{"effect_attr_mismatch": "Value differs from its reference"},
	Parse:  parseEffectAttrDiffers,
}

var effectAttrDiffersArguments = effectArguments(
	Argument{Name: "attr", Kind: KindIdentifier, Required: true, Doc: "attribute that is compared"},
	Argument{Name: "equals_param", Kind: KindIdentifier, Doc: "reference: a parameter of the action"},
	Argument{Name: "equals_state", Kind: KindState, Doc: "reference: an attribute of the latest state before the action"},
	Argument{Name: "plus_param", Kind: KindIdentifier, Doc: "parameter that is added to the reference"},
	Argument{Name: "minus_param", Kind: KindIdentifier, Doc: "parameter that is taken from the reference"},
	Argument{Name: "tolerance", Kind: KindTolerance, Doc: "absolute difference that is allowed; 0 when absent"},
)

// StateArguments describe the mapping under equals_state.
var StateArguments = []Argument{
	{Name: "type", Kind: KindIdentifier, Required: true, Doc: "fact type that records the state"},
	{Name: "source", Kind: KindIdentifier, Doc: "system of record that reports it; any when absent"},
	{Name: "attr", Kind: KindIdentifier, Required: true, Doc: "attribute of the record"},
	{Name: "lookback", Kind: KindDuration, Doc: "how old the record may be; 30d when absent"},
}

func parseEffectAttrDiffers(p Parsing, argument *yaml.Node, path string) (Entry, bool) {
	before := p.Reporter.Count()
	m, ok := p.Reporter.Mapping(argument, path, keys(effectAttrDiffersArguments, p.Section)...)
	if !ok {
		return Entry{}, false
	}
	call := effectAttrDiffers{
		effect:      parseEffect(m, p.Window),
		attr:        requiredIdentifier(m, "attr"),
		equalsParam: m.Identifier("equals_param"),
		equalsState: parseStateRef(p, m),
		plusParam:   m.Identifier("plus_param"),
		minusParam:  m.Identifier("minus_param"),
	}
	call.tolerance, _ = m.Decimal("tolerance")
	checkReference(m, call)
	return Entry{Call: call, Message: m.Text("message", MaxMessage)}, p.Reporter.Count() == before
}

func parseStateRef(p Parsing, m *diagnostic.Mapping) *stateRef {
	if !m.Has("equals_state") {
		return nil
	}
	s, ok := p.Reporter.Mapping(m.Value("equals_state"), m.Path("equals_state"), keys(StateArguments, p.Section)...)
	if !ok {
		return &stateRef{}
	}
	return &stateRef{
		state: state{
			factType: requiredIdentifier(s, "type"),
			source:   s.Identifier("source"),
			lookback: s.Duration("lookback", defaultLookback),
		},
		attr: requiredIdentifier(s, "attr"),
	}
}

func checkReference(m *diagnostic.Mapping, e effectAttrDiffers) {
	place := strings.TrimSuffix(m.Path(""), ".")
	switch {
	case m.Has("equals_param") && m.Has("equals_state"):
		m.Errorf("equals_state", "%s: equals_param and equals_state are both given; keep one reference", place)
	case !m.Has("equals_param") && !m.Has("equals_state"):
		m.Errorf("equals_param", "%s: the reference is missing; write equals_param or equals_state", place)
	}
	if m.Has("plus_param") && m.Has("minus_param") {
		m.Errorf("minus_param", "%s: plus_param and minus_param are both given; keep one", place)
	}
	if e.tolerance.Cmp(engine.Decimal{}) < 0 {
		m.Errorf("tolerance", "%s: %s is negative; write 0 or more", m.Path("tolerance"), e.tolerance)
	}
}

// Sources implements Call.
func (e effectAttrDiffers) Sources() []string {
	names := e.effect.Sources()
	if e.equalsState != nil && e.equalsState.source != "" && e.equalsState.source != e.source {
		names = append(names, e.equalsState.source)
	}
	return names
}

// Key implements Call.
func (e effectAttrDiffers) Key(sources map[string]engine.Source) string {
	k := e.key("effect_attr_differs", sources)
	k.text("attr", e.attr)
	k.text("equals_param", e.equalsParam)
	k.text("plus_param", e.plusParam)
	k.text("minus_param", e.minusParam)
	k.text("tolerance", e.tolerance.String())
	if e.equalsState != nil {
		s := callKey{}
		s.text("type", e.equalsState.factType)
		s.text("source", e.equalsState.source)
		s.text("attr", e.equalsState.attr)
		s.seconds("lookback", e.equalsState.lookback)
		k["equals_state"] = s.String()
	}
	return k.String()
}

// Code implements Call.
func (e effectAttrDiffers) Code(fired bool) string {
	return notUnless(fired, "effect_attr_mismatch:"+e.name()+"."+e.attr)
}

// Describe implements Call.
func (e effectAttrDiffers) Describe() string {
	return fmt.Sprintf("%s whose %s is not %s", e.phrase(), e.attr, e.reference())
}

func (e effectAttrDiffers) reference() string {
	var b strings.Builder
	if e.equalsState != nil {
		fmt.Fprintf(&b, "%s of %s before the action", e.equalsState.attr, e.equalsState.phrase())
	} else {
		b.WriteString("the parameter " + e.equalsParam)
	}
	if e.plusParam != "" {
		b.WriteString(" plus the parameter " + e.plusParam)
	}
	if e.minusParam != "" {
		b.WriteString(" minus the parameter " + e.minusParam)
	}
	if e.tolerance.Cmp(engine.Decimal{}) > 0 {
		b.WriteString(" within " + e.tolerance.String())
	}
	return b.String()
}

// Explain implements Call.
func (e effectAttrDiffers) Explain() string {
	return e.sentence("", fmt.Sprintf("whose %s is not %s", e.attr, e.referenceInWords()))
}

func (e effectAttrDiffers) referenceInWords() string {
	text := "the parameter " + e.equalsParam
	if s := e.equalsState; s != nil {
		text = fmt.Sprintf("the %s of the latest record %q in %s before the request (at most %s old)", s.attr, s.factType, or(s.source, "any system"), InWords(s.lookback))
	}
	if e.plusParam != "" {
		text += " plus the parameter " + e.plusParam
	}
	if e.minusParam != "" {
		text += " minus the parameter " + e.minusParam
	}
	if e.tolerance.Cmp(engine.Decimal{}) > 0 {
		text += fmt.Sprintf(" (a difference of up to %s is allowed)", e.tolerance)
	}
	return text
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// Evaluate implements Call.
func (e effectAttrDiffers) Evaluate(c *engine.Case) engine.Finding {
	expected, ok := e.expected(c)
	if !ok {
		return engine.Finding{}
	}
	for i := range c.Facts {
		f := &c.Facts[i]
		if !e.matches(c, f) {
			continue
		}
		observed, ok := f.Attributes.Lookup(e.attr).Decimal()
		if ok && observed.Sub(expected).Abs().Cmp(e.tolerance) > 0 {
			value := engine.FindingValue{Set: true, Compared: true, Observed: observed.String(), Expected: expected.String()}
			return engine.Finding{Fired: true, Evidence: f.RawRef, Value: value}
		}
	}
	return engine.Finding{}
}

// expected is the reference; ok is false where any part of it is missing.
func (e effectAttrDiffers) expected(c *engine.Case) (engine.Decimal, bool) {
	reference := c.Action.Params.Lookup(e.equalsParam)
	if e.equalsState != nil {
		f := e.equalsState.latest(c)
		if f == nil {
			return engine.Decimal{}, false
		}
		reference = f.Attributes.Lookup(e.equalsState.attr)
	}
	expected, ok := reference.Decimal()
	if ok && e.plusParam != "" {
		var more engine.Decimal
		more, ok = c.Action.Params.Lookup(e.plusParam).Decimal()
		expected = expected.Add(more)
	}
	if ok && e.minusParam != "" {
		var less engine.Decimal
		less, ok = c.Action.Params.Lookup(e.minusParam).Decimal()
		expected = expected.Sub(less)
	}
	return expected, ok
}

// SQL implements Call. A reference that is a state needs the second pass over
// the facts, because the first one finds the state.
func (e effectAttrDiffers) SQL(b *Builder) Columns {
	pass := b.First
	if e.equalsState != nil {
		pass = b.Second
	}
	expected := e.expectedSQL(b)
	observed := b.decimalOf("f.attributes", e.attr)
	differs := b.Dialect.compare(b.Dialect.distance(observed, expected), ">", b.Dialect.constant(e.tolerance.String()))
	first := pass(fmt.Sprintf("min(%s) FILTER (WHERE %s AND %s)", b.withText(b.Dialect.canonical(observed)), e.condition(b), differs))
	return Columns{
		Fired:    first + " IS NOT NULL",
		Evidence: b.carriedRef(first),
		Observed: b.carriedText(first),
		Expected: fmt.Sprintf("CASE WHEN %s IS NOT NULL THEN %s END", first, b.Dialect.canonical(expected)),
	}
}

func (e effectAttrDiffers) expectedSQL(b *Builder) string {
	expected := b.decimalOf("b.params", e.equalsParam)
	if e.equalsState != nil {
		carried := b.withText("coalesce(" + b.Dialect.canonical(b.decimalOf("f.attributes", e.equalsState.attr)) + ", '')")
		latest := b.First(fmt.Sprintf("max(%s) FILTER (WHERE %s)", carried, e.equalsState.condition()))
		expected = b.Dialect.decimal(b.carriedText(latest))
	}
	if e.plusParam != "" {
		expected = b.Dialect.add(expected, b.decimalOf("b.params", e.plusParam))
	}
	if e.minusParam != "" {
		expected = b.Dialect.subtract(expected, b.decimalOf("b.params", e.minusParam))
	}
	return expected
}
