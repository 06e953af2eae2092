// Package primitive holds the primitives of the contract language (AC
// "Primitives"), one file each: arguments and their validation, SQL, Go
// evaluation, reason code and plain-language sentence.
//
// The SQL and the Go of a primitive stand side by side so that a reader can
// compare them, but share nothing: they check each other (decision D23).
package primitive

import (
	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// Section is a place in a contract where primitives stand.
type Section string

// Sections of the action: block in the order of the checks table (AC "Headline
// rules"), and Condition for condition trees.
const (
	Preconditions    Section = "preconditions"
	Limits           Section = "limits"
	AggregateLimits  Section = "aggregate_limits"
	ForbiddenEffects Section = "forbidden_effects"
	ReversedBy       Section = "reversed_by"
	ExpectedEffects  Section = "expected_effects"
	Condition        Section = "condition"
)

// Call is a primitive with its arguments, as it stands in a contract. It is
// immutable and safe for concurrent use. A call fires when it is true: an
// effect was observed, a violation happened.
type Call interface {
	// Key is the canonical JSON text of primitive and arguments, part of the
	// verdict hash (decision D24). Sources give the clock skew that applies (decision D29).
	Key(sources map[string]engine.Source) string
	// Code is the reason code when the call fired, and when it did not.
	Code(fired bool) string
	// Describe is a short phrase for headlines, like "amount at most 250".
	Describe() string
	// Explain is a full sentence for people who do not read YAML.
	Explain() string
	// Sources are the sources that the call names.
	Sources() []string
	// Evaluate derives the finding from facts, in Go.
	Evaluate(c *engine.Case) engine.Finding
	// SQL adds what the call needs to the statement and returns its columns.
	SQL(b *Builder) Columns
}

// Effect is implemented by calls that look at facts of one type; Type and
// Source say which. Source may be empty.
type Effect interface {
	EffectType() (source, factType string)
}

// ActionReader is implemented by calls that may compare facts with fields of
// the action (decision D30). The fields are named as in where_action, without
// action_id, which never changes, and with params for any param:NAME.
type ActionReader interface {
	ActionFields() []string
}

// Rule is implemented by violations whose Explain says the rule that is kept;
// ExplainTrue says when the call is true, for condition trees.
type Rule interface {
	ExplainTrue() string
}

// Definition describes one primitive of the language.
type Definition struct {
	// Name is the primitive's own name; reason codes and call keys are built on it.
	Name string
	// Spellings lists, by section, under which names the primitive may be written there.
	Spellings map[Section][]string
	// Doc says in one sentence when the primitive is true.
	Doc string
	// Arguments describe the mapping under the name, for the schema and the reference page.
	Arguments []Argument
	// Choices are keys of which only one may be given, for the schema.
	Choices []Choice
	// Bare is the kind of value that is allowed instead of the mapping of
	// arguments; empty for none.
	Bare ArgumentKind
	// Labels are the primitive's reason codes in words, by what stands before the colon.
	Labels map[string]string
	// Parse reads the argument. It reports what is wrong and then returns ok false.
	Parse func(p Parsing, argument *yaml.Node, path string) (Entry, bool)
}

// Argument describes one key of a primitive's argument.
type Argument struct {
	Name     string
	Kind     ArgumentKind
	Required bool
	Doc      string
	// Words are those that the value, or a value under the key, may be; empty for no such list.
	Words []string
	// OnlyIn limits the argument to some sections; empty means all.
	OnlyIn []Section
}

// Choice is a set of keys of which at most one may be given; exactly one when Required.
type Choice struct {
	Keys     []string
	Required bool
}

// ArgumentKind is the kind of value that an argument takes.
type ArgumentKind string

// Kinds of arguments.
const (
	KindIdentifier  ArgumentKind = "identifier"
	KindIdentifiers ArgumentKind = "identifiers"
	KindDecimal     ArgumentKind = "decimal"
	KindTolerance   ArgumentKind = "tolerance" // a decimal that is not negative
	KindCount       ArgumentKind = "count"
	KindDuration    ArgumentKind = "duration"
	KindText        ArgumentKind = "text"
	KindValues      ArgumentKind = "values"
	KindWhere       ArgumentKind = "where"
	KindWhereAction ArgumentKind = "where_action"
	KindTrust       ArgumentKind = "trust"
	KindScope       ArgumentKind = "scope"
	KindState       ArgumentKind = "state"
)

// Parsing is what a Parse function may use.
type Parsing struct {
	Reporter *diagnostic.Reporter
	// Section is where the primitive stands.
	Section Section
	// Window fills a missing within (AC "Window and time semantics").
	Window engine.Duration
	// ContractID and Vendor are those of the contract being parsed, for aggregates (decision D17).
	ContractID, Vendor string
}

// Entry is a parsed list entry or tree leaf.
type Entry struct {
	Call Call
	// Message is the operator's sentence; empty for none.
	Message string
}

// MaxMessage is the longest message, in characters.
const MaxMessage = 200

// Definitions lists all primitives. Adding one is adding a file and a line here.
func Definitions() []*Definition {
	return []*Definition{
		&effectObservedDefinition,
		&effectCountExceedsDefinition,
		&effectAttrExceedsDefinition,
		&effectAttrDiffersDefinition,
		&aggregateExceedsDefinition,
		&reversalObservedDefinition,
		&stateBeforeActionDefinition,
		&preconditionUnmetDefinition,
		&paramExceedsDefinition,
		&paramNotInDefinition,
		&missingFactSourceDefinition,
	}
}

// Label is a reason code of a primitive in words; ok is false for codes of the engine itself.
func Label(kind string) (label string, ok bool) {
	for _, d := range Definitions() {
		if label, ok = d.Labels[kind]; ok {
			return label, true
		}
	}
	return "", false
}

// Find returns the definition that is written as spelling in a section.
func Find(section Section, spelling string) (*Definition, bool) {
	for _, d := range Definitions() {
		for _, s := range d.Spellings[section] {
			if s == spelling {
				return d, true
			}
		}
	}
	return nil, false
}

// Spellings lists the names that may be written in a section, in the order of Definitions.
func Spellings(section Section) []string {
	var names []string
	for _, d := range Definitions() {
		names = append(names, d.Spellings[section]...)
	}
	return names
}

// keys lists the names of the arguments that may be written in a section.
func keys(arguments []Argument, section Section) []string {
	var names []string
	for _, a := range arguments {
		if a.AllowedIn(section) {
			names = append(names, a.Name)
		}
	}
	return names
}

// AllowedIn says whether the argument may be written in a section.
func (a Argument) AllowedIn(section Section) bool {
	if len(a.OnlyIn) == 0 {
		return true
	}
	for _, s := range a.OnlyIn {
		if s == section {
			return true
		}
	}
	return false
}

// TrustGate is implemented by effects that demand a lowest trust (AC "min_trust").
type TrustGate interface {
	// BelowTrustCode is the reason code when only sources below it report the effect.
	BelowTrustCode() string
}
