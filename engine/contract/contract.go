// Package contract is the language of action contracts (AC "YAML reference"):
// parsing with diagnostics, plain language, schema and lint.
package contract

import (
	"slices"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/primitive"
)

// Contract is one parsed version of an action contract. It is immutable and safe for concurrent use.
type Contract struct {
	ID            string
	Version       int
	Vendor        string
	VendorDisplay string
	// ActionType, OutcomeType, ClaimSource and SubjectKind have their defaults filled in.
	ActionType    string
	OutcomeType   string
	ClaimSource   string
	SubjectKind   string
	Description   string
	Citation      Citation
	UnknownFields []string
	Billing       Billing
	// Window is the settlement window; WindowText is as the contract spells it (decision D26).
	Window     engine.Duration
	WindowText string
	// SettleAtClose keeps an early PASS pending until the window closed (decision D28).
	SettleAtClose bool
	// UpdatesUntilSettled keeps what a verdict depends on, see HeldFields, as it
	// was when the action settled. AC "Idempotency" lets any update change it.
	UpdatesUntilSettled bool
	// Checks stand in the order of the checks table (AC "Headline rules"):
	// preconditions, limits, aggregate_limits, forbidden_effects, reversed_by, expected_effects.
	Checks []Check
	// UnverifiableIf is nil when absent.
	UnverifiableIf *Tree
	Exclusions     []*Tree
	// Calls are all primitive calls: first those of Checks in order, then the
	// leaves of UnverifiableIf, then those of Exclusions.
	Calls []primitive.Call
	// Places say where each of Calls stands in Document.
	Places []Place
	// Document is the YAML text that was parsed; Hash is the hex SHA-256 of its canonical content (decision D21).
	Document []byte
	Hash     string
}

// Place is where something stands in a document. Line and Column count from 1.
type Place struct {
	// Path is like action.limits[0].
	Path         string
	Line, Column int
}

// Section is a list of the action: block.
type Section = primitive.Section

// Sections in the order of the checks table.
const (
	Preconditions    = primitive.Preconditions
	Limits           = primitive.Limits
	AggregateLimits  = primitive.AggregateLimits
	ForbiddenEffects = primitive.ForbiddenEffects
	ReversedBy       = primitive.ReversedBy
	ExpectedEffects  = primitive.ExpectedEffects
)

// Check is one entry of a section; its Call is Contract.Calls at the same index.
type Check struct {
	Section Section
	Call    primitive.Call
	// Message is the sentence an operator reads when the check fails; empty for none.
	Message string
}

// Operator of a condition tree.
type Operator string

// Operators; Leaf is a primitive call.
const (
	Any  Operator = "any"
	All  Operator = "all"
	Not  Operator = "not"
	Leaf Operator = "leaf"
)

// Tree is a condition tree over primitives (AC unverifiable_if, decision D19).
type Tree struct {
	Operator Operator
	Children []*Tree
	// Call is the index into Contract.Calls of a Leaf.
	Call int
}

// Citation says where the policy comes from (AC source_citation).
type Citation struct {
	URL, Retrieved, Title, Notes string
}

// Billing is the envelope's billing block.
type Billing struct {
	// UnitPrice is a canonical decimal.
	UnitPrice string
	Currency  string
}

// NamedSources lists every source that the action block names, each once, in
// order: those whose watermark settlement waits for (AC "Settlement waits for
// evidence").
func (c *Contract) NamedSources() []string {
	var names []string
	seen := map[string]bool{}
	for _, check := range c.Checks {
		for _, name := range check.Call.Sources() {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}

// Reads says whether what is known of a source (trust, clock skew, presence) may
// change a verdict: a call names it, or looks for an effect of any source.
func (c *Contract) Reads(source string) bool {
	return slices.ContainsFunc(c.Calls, func(call primitive.Call) bool {
		ofAny := false
		if effect, ok := call.(primitive.Effect); ok {
			named, _ := effect.EffectType()
			ofAny = named == ""
		}
		return ofAny || slices.Contains(call.Sources(), source)
	})
}

// SettlesAt is when the window of an action closes.
func (c *Contract) SettlesAt(requestedAt engine.Instant) engine.Instant {
	return requestedAt.Add(c.Window)
}

// Agent is who acted, for by: agent (decision D17).
func (c *Contract) Agent(a engine.Action) string {
	if a.AgentID != "" {
		return a.AgentID
	}
	return c.Vendor
}

// alwaysHeld are the fields that every verdict is about, or is read beside.
var alwaysHeld = []string{engine.FieldSubjectID, engine.FieldRequestedAt, engine.FieldParams, engine.FieldAgentID, engine.FieldChannel}

// HeldFields names the fields of an action that no update changes once it has
// a settled verdict: subject_id, requested_at, params, agent_id, channel, and
// what the contract's where_action reads besides. Nil unless
// UpdatesUntilSettled.
func (c *Contract) HeldFields() []string {
	if !c.UpdatesUntilSettled {
		return nil
	}
	held := slices.Clone(alwaysHeld)
	for _, call := range c.Calls {
		reader, ok := call.(primitive.ActionReader)
		if !ok {
			continue
		}
		for _, field := range reader.ActionFields() {
			if !slices.Contains(held, field) {
				held = append(held, field)
			}
		}
	}
	return held
}
