// Package contracttest reads the tests that stand beside contracts
// (*_test.yaml): actions, facts, links, sources, an evaluation time, and what
// the verdicts must be. contracts/README.md describes the format. Nothing here
// reads files or evaluates SQL; the command line does.
package contracttest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

// Limits of a test file.
const (
	MaxDocument = 1 << 20
	MaxTests    = 1000
	MaxEntries  = 1000
	maxText     = 300
)

// File is one parsed test file.
type File struct {
	Name string
	// Contract is the contract's file, relative to the test file; by default
	// the test file's own name without _test.
	Contract string
	Tests    []Test
}

// Test is one named case: a world, a moment, and what must be said of it.
type Test struct {
	Name string
	Line int
	// At is the evaluation time.
	At      engine.Instant
	Actions []Case
	// Facts are normalized, in the order of the file.
	Facts []engine.Fact
	Links []engine.Link
	// Connections are the declared ones; a source that only has facts is pushed over the facts API.
	Connections []engine.Connection
	// Watermarks are those declared with pushed facts.
	Watermarks map[string]engine.Instant
	// Unavailable sources cannot be read for this verification.
	Unavailable []string
}

// Case is one action and what is expected of it.
type Case struct {
	// Action is normalized but for its contract, which Test.Bind fills in.
	Action engine.Action
	Expect Expect
	Line   int
}

// Expect is what the verification must say. Nil and empty parts are not looked at.
type Expect struct {
	Status, Outcome, Policy string
	// Reasons are the policy lens's codes, OutcomeReasons the outcome lens's.
	Reasons, OutcomeReasons []string
	Headline                string
	WaitingOn, StaleSources []string
	Checks                  []ExpectCheck
}

// ExpectCheck is what one row of the checks table must be.
type ExpectCheck struct {
	Code string
	OK   *bool
	// Value is the row's value; {expected, observed} are written as two texts.
	Value, Expected *string
	// Evidence is a raw_ref.
	Evidence *string
}

// Parse reads a test file and reports every error of it at once; then it
// returns no tests.
func Parse(name string, document []byte) (*File, []diagnostic.Diagnostic) {
	p := parser{reporter: &diagnostic.Reporter{File: name}}
	f := &File{Name: name, Contract: strings.Replace(name[strings.LastIndexAny(name, `/\`)+1:], "_test.yaml", ".yaml", 1)}
	if root := p.reporter.Document(document, MaxDocument); root != nil {
		p.file(f, root)
	}
	if p.reporter.Count() > 0 {
		return nil, p.reporter.Diagnostics()
	}
	return f, nil
}

type parser struct {
	reporter *diagnostic.Reporter
	// start is the origin of relative times, subject the default subject.
	start   *engine.Instant
	subject string
}

func (p *parser) file(f *File, root *yaml.Node) {
	m, ok := p.reporter.Mapping(root, "", "contract", "start", "subject_id", "tests")
	if !ok {
		return
	}
	if m.Has("contract") {
		f.Contract = m.Text("contract", maxText)
	}
	p.defaults(m)
	if !m.Require("tests") {
		return
	}
	seen := map[string]bool{}
	for i, node := range p.list(m, "tests", MaxTests) {
		own := *p // a test may have its own start and subject
		t, ok := own.test(node, fmt.Sprintf("tests[%d]", i))
		if seen[t.Name] && t.Name != "" {
			p.reporter.Errorf(node, "tests", "the test %q stands twice; give each its own name", t.Name)
		}
		seen[t.Name] = true
		if ok {
			f.Tests = append(f.Tests, t)
		}
	}
	if p.reporter.Count() == 0 && len(f.Tests) == 0 {
		m.Errorf("tests", "tests is empty; write at least one")
	}
}

// defaults reads start and subject_id.
func (p *parser) defaults(m *diagnostic.Mapping) {
	if m.Has("start") {
		p.start = nil // relative to nothing
		if start, ok := p.instant(m, "start"); ok {
			p.start = &start
		}
	}
	if subject, ok := m.Scalar("subject_id"); ok {
		p.subject = p.opaque(m, "subject_id", subject)
	}
}

func (p *parser) opaque(m *diagnostic.Mapping, key, text string) string {
	if err := engine.CheckOpaque(m.Path(key), text); err != nil {
		m.Errorf(key, "%s", err)
	}
	return text
}

func (p *parser) list(m *diagnostic.Mapping, key string, most int) []*yaml.Node {
	entries := m.List(key)
	if len(entries) > most {
		m.Errorf(key, "%s has %d entries; at most %d are allowed", m.Path(key), len(entries), most)
		return nil
	}
	return entries
}

var testKeys = []string{
	"name", "start", "subject_id", "at", "actions", "facts", "links", "sources", "watermarks", "unavailable_sources",
}

func (p *parser) test(node *yaml.Node, path string) (Test, bool) {
	before := p.reporter.Count()
	m, ok := p.reporter.Mapping(node, path, testKeys...)
	if !ok {
		return Test{}, false
	}
	t := Test{Line: node.Line}
	if m.Require("name") {
		t.Name = m.Text("name", maxText)
	}
	p.defaults(m)
	if m.Require("at") {
		t.At, _ = p.instant(m, "at")
	}
	t.Facts = p.facts(m)
	t.Links = p.links(m)
	t.Connections = p.connections(m)
	t.Watermarks = p.watermarks(m)
	for _, source := range p.texts(m, "unavailable_sources") {
		t.Unavailable = append(t.Unavailable, engine.Fold(source))
	}
	t.Actions = p.actions(m)
	return t, p.reporter.Count() == before
}

func (p *parser) facts(m *diagnostic.Mapping) []engine.Fact {
	var facts []engine.Fact
	for i, node := range p.list(m, "facts", MaxEntries) {
		if f, ok := p.fact(node, fmt.Sprintf("%s[%d]", m.Path("facts"), i)); ok {
			facts = append(facts, f)
		}
	}
	return facts
}

func (p *parser) fact(node *yaml.Node, path string) (engine.Fact, bool) {
	before := p.reporter.Count()
	m, ok := p.reporter.Mapping(node, path, "raw_ref", "source", "subject_id", "subject_kind", "fact_type", "occurred_at", "attributes")
	if !ok {
		return engine.Fact{}, false
	}
	f := engine.Fact{SubjectID: p.subject, Attributes: p.object(m, "attributes")}
	read(m, "raw_ref", &f.RawRef)
	read(m, "source", &f.Source)
	read(m, "subject_id", &f.SubjectID)
	read(m, "subject_kind", &f.SubjectKind)
	read(m, "fact_type", &f.Type)
	if m.Require("occurred_at") {
		f.OccurredAt, _ = p.instant(m, "occurred_at")
	}
	if p.reporter.Count() > before {
		return engine.Fact{}, false
	}
	f, err := f.Normalize()
	if err != nil {
		p.reporter.Errorf(node, path, "%s: %s", path, err)
	}
	return f, err == nil
}

func read(m *diagnostic.Mapping, key string, target *string) {
	if text, ok := m.Scalar(key); ok {
		*target = text
	}
}

func (p *parser) links(m *diagnostic.Mapping) []engine.Link {
	var links []engine.Link
	for i, node := range p.list(m, "links", MaxEntries) {
		path := fmt.Sprintf("%s[%d]", m.Path("links"), i)
		l, ok := p.reporter.Mapping(node, path, "subject_id", "linked_subject_id")
		if !ok {
			continue
		}
		link := engine.Link{SubjectID: p.subject}
		read(l, "subject_id", &link.SubjectID)
		read(l, "linked_subject_id", &link.LinkedSubjectID)
		if err := link.Check(); err != nil {
			p.reporter.Errorf(node, path, "%s: %s", path, err)
		}
		links = append(links, link)
	}
	return links
}

func (p *parser) connections(m *diagnostic.Mapping) []engine.Connection {
	var connections []engine.Connection
	for i, node := range p.list(m, "sources", MaxEntries) {
		path := fmt.Sprintf("%s[%d]", m.Path("sources"), i)
		s, ok := p.reporter.Mapping(node, path, "source", "connection", "health", "trust", "override", "watermark", "clock_skew")
		if ok {
			connections = append(connections, p.connection(s))
		}
	}
	return connections
}

// connection reads one provider of a source. One with a health is a connector,
// one without is the facts API, unless the test names it.
func (p *parser) connection(s *diagnostic.Mapping) engine.Connection {
	c := engine.Connection{Trust: engine.Shared}
	if s.Require("source") {
		c.Source = s.Identifier("source")
	}
	if text := p.oneOf(s, "health", string(engine.Healthy), string(engine.Syncing), string(engine.Failing)); text != "" {
		c.Health, c.Name, c.Trust = engine.Health(text), "connector", engine.Independent
	}
	read(s, "connection", &c.Name)
	c.Trust = p.trust(s, "trust", c.Trust)
	c.Override = p.trust(s, "override", engine.UnknownTrust)
	if s.Has("watermark") {
		if at, ok := p.instant(s, "watermark"); ok {
			c.Watermark = &at
		}
	}
	if text, ok := s.Scalar("clock_skew"); ok {
		skew, err := seconds(text)
		if err != nil {
			s.Errorf("clock_skew", "%s: %s", s.Path("clock_skew"), err)
		}
		c.ClockSkew = skew
	}
	return c
}

func (p *parser) trust(m *diagnostic.Mapping, key string, otherwise engine.Trust) engine.Trust {
	text, ok := m.Scalar(key)
	if !ok {
		return otherwise
	}
	trust, err := engine.ParseTrust(text)
	if err != nil {
		m.Errorf(key, "%s: %s", m.Path(key), err)
	}
	return trust
}

// oneOf reads one of some words; "" when absent or wrong.
func (p *parser) oneOf(m *diagnostic.Mapping, key string, words ...string) string {
	text, ok := m.Scalar(key)
	if !ok || slices.Contains(words, text) {
		return text
	}
	m.Report(key, diagnostic.Diagnostic{
		Message:    fmt.Sprintf("%s: %q is not known", m.Path(key), text),
		Allowed:    "allowed are " + strings.Join(words, ", "),
		DidYouMean: diagnostic.Nearest(text, words),
	})
	return ""
}

func (p *parser) watermarks(m *diagnostic.Mapping) map[string]engine.Instant {
	node := m.Value("watermarks")
	if node == nil {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		m.Errorf("watermarks", "%s is not a mapping; write {source: time}", m.Path("watermarks"))
		return nil
	}
	sources := make([]string, 0, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		if _, err := engine.Identifier(node.Content[i].Value); err != nil {
			p.reporter.Errorf(node.Content[i], m.Path("watermarks"), "%s: %s", m.Path("watermarks"), err)
		}
		sources = append(sources, node.Content[i].Value)
	}
	w, ok := p.reporter.Mapping(node, m.Path("watermarks"), sources...)
	if !ok {
		return nil
	}
	watermarks := map[string]engine.Instant{}
	for _, source := range slices.Compact(sources) {
		if at, ok := p.instant(w, source); ok {
			watermarks[engine.Fold(source)] = at
		}
	}
	return watermarks
}

// texts reads a list of texts.
func (p *parser) texts(m *diagnostic.Mapping, key string) []string {
	if !m.Has(key) {
		return nil
	}
	list := []string{} // an empty list expects nothing, an absent one expects anything
	for i, node := range p.list(m, key, MaxEntries) {
		if node.Kind != yaml.ScalarNode || node.ShortTag() == "!!null" {
			path := fmt.Sprintf("%s[%d]", m.Path(key), i)
			p.reporter.Errorf(node, path, "%s is not a single value", path)
			continue
		}
		list = append(list, node.Value)
	}
	return list
}

// Bind gives the test's actions to a contract, as recording them would: id,
// pinned version, and the defaults of its envelope.
func (t *Test) Bind(contractID string, version int, actionType, subjectKind string) []engine.Action {
	actions := make([]engine.Action, len(t.Actions))
	for i, c := range t.Actions {
		a := c.Action
		a.ContractID, a.ContractVersion = contractID, version
		if a.ActionType == "" {
			a.ActionType = actionType
		}
		if a.SubjectKind == "" {
			a.SubjectKind = subjectKind
		}
		actions[i] = a
	}
	return actions
}

// SourceNames are all sources that the test has facts, connections or watermarks of, sorted.
func (t *Test) SourceNames() []string {
	names := map[string]bool{}
	for _, f := range t.Facts {
		names[f.Source] = true
	}
	for _, c := range t.Connections {
		names[c.Source] = true
	}
	for source := range t.Watermarks {
		names[source] = true
	}
	return slices.Sorted(maps.Keys(names))
}
