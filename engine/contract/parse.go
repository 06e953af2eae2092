package contract

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"github.com/countersign-otel/countersign/engine/primitive"
	"gopkg.in/yaml.v3"
)

// Limits of a contract (decision D20). Lists and calls are bounded because
// every call is a column of the statement that evaluates a contract.
const (
	MaxDocument  = 256 << 10
	MaxEntries   = 64
	MaxCalls     = 256
	MaxTreeDepth = 16
)

// Lengths of the envelope's texts, in characters.
const (
	maxName  = 120
	maxTitle = 300
	maxURL   = 2000
	maxProse = 4000
	maxDate  = 40
)

// defaultWindow and the other defaults are those of AC "YAML reference".
const (
	defaultWindow      = engine.Hour
	defaultWindowText  = "1h"
	defaultOutcomeType = "action"
	defaultClaimSource = "agent.actions"
)

// File is a document with the name under which diagnostics report it.
type File struct {
	Name     string
	Document []byte
}

// Parse reads one contract (AC "YAML reference"). It reports every error of the
// document at once, in the order of the file (decision D20), and then returns
// no contract: half a contract would judge by half its rules. It never panics.
func Parse(file string, document []byte) (*Contract, []diagnostic.Diagnostic) {
	p := parser{
		reporter: &diagnostic.Reporter{File: file},
		contract: &Contract{Document: bytes.Clone(document)},
	}
	if root := p.reporter.Document(document, MaxDocument); root != nil {
		p.document(root)
	}
	if p.reporter.Count() > 0 {
		return nil, p.reporter.Diagnostics()
	}
	return p.contract, nil
}

// ParseAll parses several contracts and reports the errors of all of them. Two
// files with the same id and version are an error (decision D21).
func ParseAll(files ...File) ([]*Contract, []diagnostic.Diagnostic) {
	type version struct {
		id     string
		number int
	}
	var contracts []*Contract
	var reports []diagnostic.Diagnostic
	first := map[version]File{}
	for _, f := range files {
		c, diagnostics := Parse(f.Name, f.Document)
		reports = append(reports, diagnostics...)
		if c == nil {
			continue
		}
		v := version{c.ID, c.Version}
		if other, twice := first[v]; twice {
			reports = append(reports, diagnostic.Diagnostic{
				File: f.Name, Line: 1, Column: 1, Path: "version",
				Message: fmt.Sprintf("%s version %d is in %s too", c.ID, c.Version, other.Name),
				Allowed: "a version is immutable; give an edit the next version, and another contract an id of its own",
			})
			continue
		}
		first[v] = f
		contracts = append(contracts, c)
	}
	return contracts, reports
}

type parser struct {
	reporter *diagnostic.Reporter
	contract *Contract
}

var envelopeKeys = []string{
	"id", "version", "kind", "vendor", "vendor_display", "action_type", "outcome_type", "claim_source",
	"subject_kind", "description", "source_citation", "unknown_fields", "exclusions", "action", "billing",
}

func (p *parser) document(root *yaml.Node) {
	m, ok := p.reporter.Mapping(p.withoutLenses(root), "", envelopeKeys...)
	if !ok {
		return
	}
	p.envelope(m)
	p.citation(m)
	p.billing(m)
	p.contract.UnknownFields = p.unknownFields(m)
	p.action(m)
	if m.Has("exclusions") {
		p.exclusions(m)
	}
	p.contract.Hash = contentHash(root)
}

// withoutLenses reports lenses: with a message of its own: they are derived
// (AC "How the two lenses are derived").
func (p *parser) withoutLenses(root *yaml.Node) *yaml.Node {
	if root.Kind != yaml.MappingNode {
		return root
	}
	rest := *root
	rest.Content = nil
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "lenses" {
			p.reporter.Report(root.Content[i], "lenses", diagnostic.Diagnostic{
				Message: "'lenses' is not allowed in an action contract; the outcome and policy lenses are derived from the action block",
				Allowed: "remove the key",
			})
			continue
		}
		rest.Content = append(rest.Content, root.Content[i], root.Content[i+1])
	}
	return &rest
}

var idPattern = regexp.MustCompile(`^[a-z][a-z0-9_]{2,63}$`)

func (p *parser) envelope(m *diagnostic.Mapping) {
	c := p.contract
	c.ID = p.id(m)
	c.Version = p.version(m)
	p.kind(m)
	c.Vendor = requiredText(m, "vendor", maxName)
	if c.VendorDisplay = m.Text("vendor_display", maxName); c.VendorDisplay == "" {
		c.VendorDisplay = c.Vendor
	}
	c.ActionType = m.Identifier("action_type")
	c.OutcomeType = identifierOr(m, "outcome_type", c.ActionType)
	if c.OutcomeType == "" {
		c.OutcomeType = defaultOutcomeType
	}
	c.ClaimSource = identifierOr(m, "claim_source", defaultClaimSource)
	c.SubjectKind = identifierOr(m, "subject_kind", engine.DefaultSubjectKind)
	c.Description = m.Prose("description", maxProse)
}

func identifierOr(m *diagnostic.Mapping, key, otherwise string) string {
	if !m.Has(key) {
		return otherwise
	}
	return m.Identifier(key)
}

func requiredText(m *diagnostic.Mapping, key string, most int) string {
	if !m.Require(key) {
		return ""
	}
	before := m.Reporter().Count()
	text := m.Text(key, most)
	if text == "" && m.Reporter().Count() == before {
		m.Report(key, diagnostic.Diagnostic{
			Message: m.Path(key) + " is empty",
			Allowed: fmt.Sprintf("write 1 to %d characters", most),
		})
	}
	return text
}

func (p *parser) id(m *diagnostic.Mapping) string {
	if !m.Require("id") {
		return ""
	}
	text, ok := m.Scalar("id")
	if ok && !idPattern.MatchString(text) {
		m.Report("id", diagnostic.Diagnostic{
			Message: fmt.Sprintf("id: %q is no contract id", text),
			Allowed: "write 3 to 64 lowercase letters, digits or _, beginning with a letter",
		})
	}
	return text
}

// maxVersion keeps versions within a 32-bit integer column.
const maxVersion = 1<<31 - 1

func (p *parser) version(m *diagnostic.Mapping) int {
	if !m.Require("version") {
		return 0
	}
	text, ok := m.Scalar("version")
	if !ok {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil || n == 0 || text[0] == '0' || m.Value("version").ShortTag() != "!!int" {
		m.Report("version", diagnostic.Diagnostic{
			Message: fmt.Sprintf("version: %q is no version", text),
			Allowed: fmt.Sprintf("write a whole number from 1 to %d, without quotes", maxVersion),
		})
		return 0
	}
	return int(n)
}

func (p *parser) kind(m *diagnostic.Mapping) {
	if !m.Require("kind") {
		return
	}
	if text, ok := m.Scalar("kind"); ok && text != "action" {
		m.Report("kind", diagnostic.Diagnostic{
			Message: fmt.Sprintf("kind: %q is not supported", text),
			Allowed: "write kind: action",
		})
	}
}

func (p *parser) citation(m *diagnostic.Mapping) {
	if !m.Require("source_citation") {
		return
	}
	s, ok := p.reporter.Mapping(m.Value("source_citation"), "source_citation", "url", "retrieved", "title", "notes")
	if !ok {
		return
	}
	p.contract.Citation = Citation{
		URL:       requiredText(s, "url", maxURL),
		Retrieved: s.Text("retrieved", maxDate),
		Title:     s.Text("title", maxTitle),
		Notes:     s.Prose("notes", maxProse),
	}
}

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

func (p *parser) billing(m *diagnostic.Mapping) {
	if !m.Has("billing") {
		return
	}
	b, ok := p.reporter.Mapping(m.Value("billing"), "billing", "unit_price", "currency")
	if !ok {
		return
	}
	price, ok := b.Decimal("unit_price")
	if ok && price.Cmp(engine.Decimal{}) < 0 {
		b.Report("unit_price", diagnostic.Diagnostic{
			Message: fmt.Sprintf("billing.unit_price: %s is negative", price),
			Allowed: "write 0 or more",
		})
	}
	currency, ok := b.Scalar("currency")
	if ok && !currencyPattern.MatchString(currency) {
		b.Report("currency", diagnostic.Diagnostic{
			Message: fmt.Sprintf("billing.currency: %q is no currency", currency),
			Allowed: "write three capital letters of ISO 4217, like USD",
		})
	}
	p.contract.Billing = Billing{UnitPrice: price.String(), Currency: currency}
}

func (p *parser) unknownFields(m *diagnostic.Mapping) []string {
	var fields []string
	for i, node := range p.list(m, "unknown_fields") {
		path := fmt.Sprintf("unknown_fields[%d]", i)
		if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" || len(node.Value) > maxName {
			p.reporter.Report(node, path, diagnostic.Diagnostic{
				Message: path + " is no name of a field",
				Allowed: fmt.Sprintf("write a text of at most %d bytes", maxName),
			})
			continue
		}
		fields = append(fields, node.Value)
	}
	return fields
}

// list reads a list of at most MaxEntries entries.
func (p *parser) list(m *diagnostic.Mapping, key string) []*yaml.Node {
	entries := m.List(key)
	if len(entries) > MaxEntries {
		m.Errorf(key, "%s has %d entries; at most %d are allowed", m.Path(key), len(entries), MaxEntries)
		return nil
	}
	return entries
}

// sections are the lists of the action: block in the order of the checks table.
var sections = []Section{Preconditions, Limits, AggregateLimits, ForbiddenEffects, ReversedBy, ExpectedEffects}

var actionKeys = []string{
	"window", "settle", "updates", "preconditions", "limits", "expected_effects", "forbidden_effects",
	"aggregate_limits", "reversed_by", "unverifiable_if",
}

// settleAtClose is the only value of settle (decision D28).
const settleAtClose = "at_close"

// Values of updates; the first is what AC "Idempotency" says, and the default.
const (
	updatesAlways       = "always"
	updatesUntilSettled = "until_settled"
)

func (p *parser) action(m *diagnostic.Mapping) {
	if !m.Require("action") {
		return
	}
	a, ok := p.reporter.Mapping(m.Value("action"), "action", actionKeys...)
	if !ok {
		return
	}
	p.window(a)
	p.settle(a)
	p.updates(a)
	for _, s := range sections {
		p.section(a, s)
	}
	p.expectSomething(a)
	if a.Has("unverifiable_if") {
		p.unverifiableIf(a)
	}
}

func (p *parser) window(a *diagnostic.Mapping) {
	p.contract.Window, p.contract.WindowText = defaultWindow, defaultWindowText
	if text, ok := a.Scalar("window"); ok {
		p.contract.Window, p.contract.WindowText = a.Duration("window", defaultWindow), text
	}
}

func (p *parser) settle(a *diagnostic.Mapping) {
	text, ok := a.Scalar("settle")
	if !ok {
		return
	}
	if text != settleAtClose {
		a.Report("settle", diagnostic.Diagnostic{
			Message:    fmt.Sprintf("action.settle: %q is not supported", text),
			Allowed:    "write at_close, or remove the key to let an early PASS settle at once",
			DidYouMean: diagnostic.Nearest(text, []string{settleAtClose}),
		})
		return
	}
	p.contract.SettleAtClose = true
}

func (p *parser) updates(a *diagnostic.Mapping) {
	text, ok := a.Scalar("updates")
	if !ok {
		return
	}
	if text != updatesAlways && text != updatesUntilSettled {
		a.Report("updates", diagnostic.Diagnostic{
			Message:    fmt.Sprintf("action.updates: %q is not supported", text),
			Allowed:    "write until_settled, or always, which is the default, to let an action be recorded anew after its verdict has settled",
			DidYouMean: diagnostic.Nearest(text, []string{updatesUntilSettled, updatesAlways}),
		})
		return
	}
	p.contract.UpdatesUntilSettled = text == updatesUntilSettled
}

func (p *parser) expectSomething(a *diagnostic.Mapping) {
	key := string(ExpectedEffects)
	if !a.Require(key) {
		return
	}
	if node := a.Value(key); node.Kind == yaml.SequenceNode && len(node.Content) == 0 {
		a.Report(key, diagnostic.Diagnostic{Message: a.Path(key) + " is empty", Allowed: "write at least one " + primitive.Spellings(primitive.ExpectedEffects)[0]})
	}
}

func (p *parser) section(a *diagnostic.Mapping, s Section) {
	for i, node := range p.list(a, string(s)) {
		path := fmt.Sprintf("%s[%d]", a.Path(string(s)), i)
		entry, ok := p.entry(node, s, path, nil)
		if !ok {
			continue
		}
		p.contract.Checks = append(p.contract.Checks, Check{Section: s, Call: entry.Call, Message: entry.Message})
		p.call(node, path, entry.Call)
	}
}

// call adds a call and returns its index.
func (p *parser) call(node *yaml.Node, path string, call primitive.Call) int {
	if len(p.contract.Calls) == MaxCalls {
		p.reporter.Errorf(node, path, "the contract has more than %d checks and conditions", MaxCalls)
	}
	p.contract.Calls = append(p.contract.Calls, call)
	p.contract.Places = append(p.contract.Places, Place{path, node.Line, node.Column})
	return len(p.contract.Calls) - 1
}

// entry reads {primitive: argument}. Words are what may stand there besides
// primitives, for the message.
func (p *parser) entry(node *yaml.Node, s primitive.Section, path string, words []string) (primitive.Entry, bool) {
	spellings := primitive.Spellings(s)
	if node.Kind == yaml.ScalarNode && node.ShortTag() != "!!null" {
		p.bare(node, s, path, append(words, spellings...))
		return primitive.Entry{}, false
	}
	if node.Kind != yaml.MappingNode || len(node.Content) != 2 {
		allowed := fmt.Sprintf("write {%s: ...}", spellings[0])
		if words != nil {
			allowed = fmt.Sprintf("write one primitive, like {%s: ...}, or one of %s", spellings[len(spellings)-1], joined(words))
		}
		p.reporter.Report(node, path, diagnostic.Diagnostic{Message: path + " is not a mapping with a single key", Allowed: allowed})
		return primitive.Entry{}, false
	}
	key, argument := node.Content[0], node.Content[1]
	definition, ok := primitive.Find(s, key.Value)
	if !ok {
		p.notAllowed(key, path, append(words, spellings...))
		return primitive.Entry{}, false
	}
	return definition.Parse(primitive.Parsing{
		Reporter: p.reporter, Section: s, Window: p.contract.Window,
		ContractID: p.contract.ID, Vendor: p.contract.Vendor,
	}, argument, path+"."+key.Value)
}

// bare reports a text where {primitive: argument} is needed.
func (p *parser) bare(node *yaml.Node, s primitive.Section, path string, words []string) {
	if _, ok := primitive.Find(s, node.Value); !ok {
		p.notAllowed(node, path, words)
		return
	}
	p.reporter.Report(node, path, diagnostic.Diagnostic{
		Message: fmt.Sprintf("%s: '%s' needs an argument", path, node.Value),
		Allowed: fmt.Sprintf("write {%s: ...}", node.Value),
	})
}

func (p *parser) notAllowed(node *yaml.Node, path string, words []string) {
	p.reporter.Report(node, path, diagnostic.Diagnostic{
		Message:    fmt.Sprintf("'%s' is not allowed here", node.Value),
		Allowed:    "allowed are " + joined(words),
		DidYouMean: diagnostic.Nearest(node.Value, words),
	})
}
