package contracttest

import (
	"fmt"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/diagnostic"
	"gopkg.in/yaml.v3"
)

func (p *parser) actions(m *diagnostic.Mapping) []Case {
	if !m.Require("actions") {
		return nil
	}
	var cases []Case
	seen := map[string]bool{}
	expected := 0
	nodes := p.list(m, "actions", MaxEntries)
	for i, node := range nodes {
		path := fmt.Sprintf("%s[%d]", m.Path("actions"), i)
		c, expects, ok := p.action(node, path, fmt.Sprintf("act_%d", i+1))
		if expects {
			expected++
		}
		if !ok {
			continue
		}
		if seen[c.Action.ActionID] {
			p.reporter.Errorf(node, path, "the action_id %q stands twice; give each action its own", c.Action.ActionID)
		}
		seen[c.Action.ActionID] = true
		cases = append(cases, c)
	}
	if expected == 0 {
		m.Report("actions", diagnostic.Diagnostic{
			Message: m.Path("actions") + " expects nothing, so the test cannot fail",
			Allowed: "give at least one action an expect",
		})
	}
	return cases
}

var actionKeys = []string{
	"action_id", "subject_id", "subject_kind", "requested_at", "params", "agent_id", "workflow_id", "action_type",
	"channel", "compensates", "session_id", "reference_id", "expect",
}

func (p *parser) action(node *yaml.Node, path, id string) (c Case, expects, ok bool) {
	before := p.reporter.Count()
	m, ok := p.reporter.Mapping(node, path, actionKeys...)
	if !ok {
		return Case{}, true, false
	}
	a := engine.Action{ActionID: id, SubjectID: p.subject, Params: p.object(m, "params")}
	for key, target := range map[string]*string{
		"action_id": &a.ActionID, "subject_id": &a.SubjectID, "subject_kind": &a.SubjectKind, "agent_id": &a.AgentID,
		"workflow_id": &a.WorkflowID, "action_type": &a.ActionType, "channel": &a.Channel, "compensates": &a.Compensates,
		"session_id": &a.SessionID, "reference_id": &a.ReferenceID,
	} {
		read(m, key, target)
	}
	a.RequestedAt = p.requestedAt(m)
	c = Case{Expect: p.expect(m), Line: node.Line}
	if p.reporter.Count() > before {
		return Case{}, m.Has("expect"), false
	}
	a.ContractID = "contract" // Bind gives the real one
	a, err := a.Normalize()
	if err != nil {
		p.reporter.Errorf(node, path, "%s: %s", path, err)
	}
	a.ContractID = ""
	c.Action = a
	return c, m.Has("expect"), err == nil
}

// requestedAt is the start where an action does not say when.
func (p *parser) requestedAt(m *diagnostic.Mapping) engine.Instant {
	if !m.Has("requested_at") && p.start != nil {
		return *p.start
	}
	if !m.Require("requested_at") {
		return 0
	}
	at, _ := p.instant(m, "requested_at")
	return at
}

var expectKeys = []string{
	"status", "outcome", "policy", "reasons", "outcome_reasons", "headline", "waiting_on", "stale_sources", "checks",
}

func (p *parser) expect(m *diagnostic.Mapping) Expect {
	if !m.Has("expect") {
		return Expect{}
	}
	e, ok := p.reporter.Mapping(m.Value("expect"), m.Path("expect"), expectKeys...)
	if !ok {
		return Expect{}
	}
	if len(e.Node().Content) == 0 {
		m.Errorf("expect", "%s is empty; write at least one of status, outcome, policy", m.Path("expect"))
	}
	labels := []string{engine.Verified.Label(), engine.NotVerified.Label(), engine.Unverifiable.Label()}
	x := Expect{
		Status:         p.oneOf(e, "status", "pending", "settled"),
		Outcome:        p.oneOf(e, "outcome", labels...),
		Policy:         p.oneOf(e, "policy", labels...),
		Reasons:        p.texts(e, "reasons"),
		OutcomeReasons: p.texts(e, "outcome_reasons"),
		WaitingOn:      p.texts(e, "waiting_on"),
		StaleSources:   p.texts(e, "stale_sources"),
	}
	read(e, "headline", &x.Headline)
	for i, node := range p.list(e, "checks", MaxEntries) {
		x.Checks = append(x.Checks, p.expectCheck(node, fmt.Sprintf("%s[%d]", e.Path("checks"), i)))
	}
	return x
}

func (p *parser) expectCheck(node *yaml.Node, path string) ExpectCheck {
	m, ok := p.reporter.Mapping(node, path, "code", "ok", "value", "expected", "evidence")
	if !ok {
		return ExpectCheck{}
	}
	var c ExpectCheck
	if m.Require("code") {
		read(m, "code", &c.Code)
	}
	if text := p.oneOf(m, "ok", "true", "false"); text != "" {
		yes := text == "true"
		c.OK = &yes
	}
	c.Value, c.Expected, c.Evidence = optional(m, "value"), optional(m, "expected"), optional(m, "evidence")
	return c
}

func optional(m *diagnostic.Mapping, key string) *string {
	text, ok := m.Scalar(key)
	if !ok {
		return nil
	}
	return &text
}
