package primitive

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// effect is the argument shared by all primitives that look at facts after the
// action (AC "effect_observed").
type effect struct {
	factType string
	source   string // "" means any
	within   engine.Duration
	where    []pair
	origin   []originPair
	minTrust engine.Trust
}

// pair demands that an attribute equals a constant (decision D4).
type pair struct {
	attr  string
	value engine.Value
}

// originPair demands that an attribute equals a field of the action (decision D30).
type originPair struct{ attr, field string }

func effectArguments(extra ...Argument) []Argument {
	shared := []Argument{
		{Name: "type", Kind: KindIdentifier, Required: true, Doc: "fact type to look for"},
		{Name: "source", Kind: KindIdentifier, Doc: "system of record that reports it; any when absent"},
		{Name: "within", Kind: KindDuration, Doc: "how long after the request it counts; the action's window when absent"},
		{Name: "where", Kind: KindWhere, Doc: "attributes that must equal a value"},
		{Name: "where_action", Kind: KindWhereAction, Words: actionFields, Doc: "attributes that must equal a field of the action"},
	}
	return append(append(shared, extra...), messageArgument)
}

// trustWords are the levels of trust in the specification's words.
func trustWords() []string {
	return []string{engine.SelfReported.String(), engine.Shared.String(), engine.Independent.String()}
}

var messageArgument = Argument{Name: "message", Kind: KindText, Doc: "sentence for the operator when the check fails"}

func parseEffect(m *diagnostic.Mapping, within engine.Duration) effect {
	e := effect{within: m.Duration("within", within), source: m.Identifier("source")}
	if m.Require("type") {
		e.factType = m.Identifier("type")
	}
	e.where = parseWhere(m, "where")
	e.origin = parseOrigin(m)
	if text, ok := m.Scalar("min_trust"); ok {
		trust, err := engine.ParseTrust(text)
		if err != nil {
			m.Errorf("min_trust", "%s: %s", m.Path("min_trust"), err)
		}
		e.minTrust = trust
	}
	return e
}

// parseWhere reads pairs of attribute and value, sorted by attribute, so that
// the order in the file is no part of the call key.
func parseWhere(m *diagnostic.Mapping, key string) []pair {
	var pairs []pair
	eachPair(m, key, func(attr string, value *yaml.Node, path string) {
		text, ok := constant(m.Reporter(), value, path)
		if ok {
			pairs = append(pairs, pair{attr, engine.StringValue(text)})
		}
	})
	slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.attr, b.attr) })
	return pairs
}

// eachPair reads a mapping from attribute names to anything.
func eachPair(m *diagnostic.Mapping, key string, read func(attr string, value *yaml.Node, path string)) {
	node := m.Value(key)
	if node == nil {
		return
	}
	if node.Kind != yaml.MappingNode {
		m.Report(key, diagnostic.Diagnostic{Message: m.Path(key) + " is not a mapping", Allowed: "write {attribute: value}"})
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		path := m.Path(key) + "." + node.Content[i].Value
		attr, err := engine.Identifier(node.Content[i].Value)
		if err != nil {
			m.Reporter().Errorf(node.Content[i], path, "%s: %s", path, err)
			continue
		}
		if seen[attr] {
			m.Reporter().Errorf(node.Content[i], path, "key %q stands twice; keep one", attr)
			continue
		}
		seen[attr] = true
		read(attr, diagnostic.Resolve(node.Content[i+1]), path)
	}
}

// constant reads a value that is embedded in comparisons: it matches
// [A-Za-z0-9_.:@/ -]{1,120} (AC "Primitives").
func constant(r *diagnostic.Reporter, node *yaml.Node, path string) (string, bool) {
	if node == nil || node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.Errorf(node, path, "%s is not a single value", path)
		return "", false
	}
	if !isConstant(node.Value) {
		r.Report(node, path, diagnostic.Diagnostic{
			Message: fmt.Sprintf("%s: the value %q cannot be compared", path, node.Value),
			Allowed: "write 1 to 120 letters, digits, spaces or _ . : @ / -",
		})
		return "", false
	}
	return node.Value, true
}

func isConstant(text string) bool {
	if text == "" || len(text) > 120 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (c < '0' || c > '9') && !strings.ContainsRune("_.:@/ -", rune(c)) {
			return false
		}
	}
	return true
}

// actionFields are what where_action may name, besides param:NAME (decision D30).
var actionFields = []string{
	engine.FieldActionID, engine.FieldAgentID, engine.FieldWorkflowID, engine.FieldSessionID, engine.FieldReferenceID,
}

func parseOrigin(m *diagnostic.Mapping) []originPair {
	var pairs []originPair
	eachPair(m, "where_action", func(attr string, value *yaml.Node, path string) {
		if field, ok := parseActionField(m.Reporter(), value, path); ok {
			pairs = append(pairs, originPair{attr, field})
		}
	})
	slices.SortFunc(pairs, func(a, b originPair) int { return strings.Compare(a.attr, b.attr) })
	return pairs
}

func parseActionField(r *diagnostic.Reporter, node *yaml.Node, path string) (string, bool) {
	var text string
	if node != nil && node.Kind == yaml.ScalarNode {
		text = node.Value
	}
	if slices.Contains(actionFields, text) {
		return text, true
	}
	if param, ok := strings.CutPrefix(text, "param:"); ok {
		if id, err := engine.Identifier(param); err == nil {
			return "param:" + id, true
		}
	}
	r.Report(node, path, diagnostic.Diagnostic{
		Message:    fmt.Sprintf("%s: %q is no field of an action", path, text),
		Allowed:    "allowed are " + strings.Join(actionFields, ", ") + ", param:NAME",
		DidYouMean: diagnostic.Nearest(text, actionFields),
	})
	return "", false
}

// ActionFields implements ActionReader.
func (e effect) ActionFields() []string {
	var fields []string
	for _, p := range e.origin {
		switch {
		case p.field == engine.FieldActionID:
		case strings.HasPrefix(p.field, "param:"):
			fields = append(fields, engine.FieldParams)
		default:
			fields = append(fields, p.field)
		}
	}
	return fields
}

// Sources implements Call.
func (e effect) Sources() []string {
	if e.source == "" {
		return nil
	}
	return []string{e.source}
}

// EffectType implements Effect.
func (e effect) EffectType() (source, factType string) { return e.source, e.factType }

// name is <source>.<type>, or the bare type (AC "Reason codes").
func (e effect) name() string {
	if e.source == "" {
		return e.factType
	}
	return e.source + "." + e.factType
}

// phrase is the effect in words: "stripe refund_created (status = succeeded)".
func (e effect) phrase() string {
	text := e.factType
	if e.source != "" {
		text = e.source + " " + e.factType
	}
	var conditions []string
	for _, p := range e.where {
		conditions = append(conditions, p.phrase())
	}
	for _, p := range e.origin {
		conditions = append(conditions, p.phrase())
	}
	if len(conditions) == 0 {
		return text
	}
	return text + " (" + strings.Join(conditions, ", ") + ")"
}

// matches is the Go side of the effect predicate: type, source, window with
// the source's clock skew (decision D29), where and where_action. Trust is
// judged by the caller.
func (e effect) matches(c *engine.Case, f *engine.Fact) bool {
	if f.Type != e.factType || (e.source != "" && f.Source != e.source) {
		return false
	}
	if f.OccurredAt < c.Action.RequestedAt && !e.withinSkew(c, f) {
		return false
	}
	if f.OccurredAt > c.Action.RequestedAt.Add(e.within) {
		return false
	}
	return e.matchesAttributes(&c.Action, f)
}

func (e effect) withinSkew(c *engine.Case, f *engine.Fact) bool {
	skew := c.Snapshot.Sources[f.Source].ClockSkew
	return skew > 0 && f.OccurredAt >= c.Action.RequestedAt.Sub(skew)
}

func (e effect) matchesAttributes(a *engine.Action, f *engine.Fact) bool {
	for i := range e.where {
		if !f.Attributes.Lookup(e.where[i].attr).Equal(e.where[i].value) {
			return false
		}
	}
	for i := range e.origin {
		if !f.Attributes.Lookup(e.origin[i].attr).Equal(a.Field(e.origin[i].field)) {
			return false
		}
	}
	return true
}

// condition is the SQL side of matches, over the aliases b (action) and f (fact).
func (e effect) condition(b *Builder) string {
	parts := []string{
		"f.fact_type = " + Literal(e.factType),
		"f.occurred_at >= b.requested_at - f.clock_skew",
		fmt.Sprintf("f.occurred_at <= b.requested_at + %d", e.within),
	}
	if e.source != "" {
		parts = append(parts, "f.source = "+Literal(e.source))
	}
	parts = append(parts, e.attributeConditions(b, "b")...)
	return strings.Join(parts, " AND ")
}

// attributeConditions are where and where_action, for the action under an alias.
func (e effect) attributeConditions(b *Builder, action string) []string {
	var parts []string
	for _, p := range e.where {
		parts = append(parts, b.equalsConstant("f.attributes", p))
	}
	for _, p := range e.origin {
		parts = append(parts, b.equalsField("f.attributes", p, action))
	}
	return parts
}

// callKey writes {"primitive":..., ...} with sorted keys; values are texts,
// whole numbers or mappings of texts.
type callKey map[string]string

func (k callKey) text(name, text string) {
	if text != "" {
		k[name] = quote(text)
	}
}

func (k callKey) seconds(name string, d engine.Duration) {
	k[name] = strconv.FormatInt(int64(d), 10)
}

func (k callKey) String() string {
	names := make([]string, 0, len(k))
	for name := range k {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for i, name := range names {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(quote(name) + ":" + k[name])
	}
	b.WriteByte('}')
	return b.String()
}

func quote(text string) string { return engine.StringValue(text).Canonical() }

func wherePairs(pairs []pair) callKey {
	k := callKey{}
	for _, p := range pairs {
		// Equal constants compare equal, so they make the same key (decision D4).
		k.text(p.attr, p.value.Canonicalized())
	}
	return k
}

// key starts a call key with the effect's arguments.
func (e effect) key(primitive string, sources map[string]engine.Source) callKey {
	k := callKey{}
	k.text("primitive", primitive)
	k.text("type", e.factType)
	k.text("source", e.source)
	k.seconds("within", e.within)
	if len(e.where) > 0 {
		k["where"] = wherePairs(e.where).String()
	}
	if len(e.origin) > 0 {
		origin := callKey{}
		for _, p := range e.origin {
			origin.text(p.attr, p.field)
		}
		k["where_action"] = origin.String()
	}
	k.text("min_trust", e.minTrust.String())
	if skews := e.skews(sources); len(skews) > 0 {
		k["clock_skew"] = skews.String()
	}
	return k
}

// skews are the non-zero clock skews that apply to the effect (decision D29).
func (e effect) skews(sources map[string]engine.Source) callKey {
	skews := callKey{}
	for name, s := range sources {
		if s.ClockSkew > 0 && (e.source == "" || e.source == name) {
			skews.seconds(name, s.ClockSkew)
		}
	}
	return skews
}
