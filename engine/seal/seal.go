// Package seal makes verdicts tamper-evident: the canonical document of a
// verdict and its hash (decision D24), and the chain of a tenant (decision D25).
package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Format names the version of the document that is hashed.
const Format = "countersign.verdict.v1"

// document is what a verdict hash covers. It holds no clock, no database id
// and no chain position, and only strings, booleans, arrays, objects and small
// integers, so that every RFC 8785 library makes the same bytes.
// Members stand in the order of their names, as RFC 8785 wants them.
type document struct {
	Action   actionPart    `json:"action"`
	Checks   []checkedPart `json:"checks"`
	Contract contractPart  `json:"contract"`
	Format   string        `json:"format"`
	Lens     engine.Lens   `json:"lens"`
	Verdict  string        `json:"raw_verdict"`
	Reasons  []string      `json:"reasons"`
	Tenant   string        `json:"tenant"`
}

type actionPart struct {
	ActionID string `json:"action_id"`
	AgentID  string `json:"agent_id,omitempty"`
	// Params is the canonical JSON text of the params; absent when not captured.
	Params      string `json:"params,omitempty"`
	RequestedAt string `json:"requested_at"`
	SubjectID   string `json:"subject_id"`
}

type checkedPart struct {
	Call     string `json:"call"`
	Evidence string `json:"evidence,omitempty"`
	Fired    bool   `json:"fired"`
	Value    string `json:"value,omitempty"`
}

type contractPart struct {
	Hash    string `json:"hash"`
	ID      string `json:"id"`
	Version int    `json:"version"`
}

// Subject is what a verdict is about.
type Subject struct {
	Tenant   string
	Contract *contract.Contract
	Action   engine.Action
	// Sources give the clock skews that are part of the call keys (decision D29).
	Sources map[string]engine.Source
	// Calls are what Calls makes of Contract and Sources; nil makes them. Who seals many verdicts makes them once.
	Calls []string
}

// Calls are the call keys of a contract's checks.
func Calls(c *contract.Contract, sources map[string]engine.Source) []string {
	keys := make([]string, len(c.Checks))
	for i, check := range c.Checks {
		keys[i] = check.Call.Key(sources)
	}
	return keys
}

// Sealed is a verdict with its document and hash.
type Sealed struct {
	Document string
	Hash     [32]byte
}

// Seal makes the canonical document of one lens and hashes it (decision D24).
func Seal(s Subject, lens engine.Lens, verdict engine.Verdict, findings []engine.Finding) (Sealed, error) {
	canonical, err := canonicalJSON(document{
		Action:   action(s.Action),
		Checks:   checks(s, findings),
		Contract: contractPart{s.Contract.Hash, s.Contract.ID, s.Contract.Version},
		Format:   Format,
		Lens:     lens,
		Verdict:  string(verdict.Raw),
		Reasons:  verdict.Reasons,
		Tenant:   s.Tenant,
	})
	if err != nil {
		return Sealed{}, fmt.Errorf("verdict document of action %q: %w", s.Action.ActionID, err)
	}
	return Sealed{Document: string(canonical), Hash: sha256.Sum256(canonical)}, nil
}

// canonicalJSON is the RFC 8785 text of a document or a Run. What encoding/json writes of
// one is that text already, because members are sorted and numbers small: but for
// two line separators, which it escapes and RFC 8785 does not. Where one may be,
// the library of RFC 8785 decides.
func canonicalJSON(d any) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(d); err != nil {
		return nil, err
	}
	written := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	if bytes.Contains(written, []byte(`\u202`)) {
		return jcs.Transform(written)
	}
	return written, nil
}

func action(a engine.Action) actionPart {
	part := actionPart{ActionID: a.ActionID, SubjectID: a.SubjectID, RequestedAt: a.RequestedAt.String(), AgentID: a.AgentID}
	if a.Params.Captured() {
		part.Params = a.Params.Canonical()
	}
	return part
}

// IsAbout says whether a sealed document is about an action as it stands. An
// action that was recorded anew with another subject, moment, agent or params
// is not what the document was sealed for (AC "Idempotency").
func IsAbout(sealed string, a engine.Action) (bool, error) {
	var said struct {
		Action actionPart `json:"action"`
	}
	if err := json.Unmarshal([]byte(sealed), &said); err != nil {
		return false, fmt.Errorf("verdict document of action %q: %w", a.ActionID, err)
	}
	return said.Action == action(a), nil
}

func checks(s Subject, findings []engine.Finding) []checkedPart {
	calls := s.Calls
	if calls == nil {
		calls = Calls(s.Contract, s.Sources)
	}
	parts := make([]checkedPart, len(calls))
	for i, call := range calls {
		parts[i] = checkedPart{Call: call, Evidence: findings[i].Evidence, Fired: findings[i].Fired, Value: ValueText(findings[i].Value)}
	}
	return parts
}

// ValueText is a check's value as one string: a compound one is its canonical
// JSON text, none is empty.
func ValueText(v engine.FindingValue) string {
	if !v.Compared {
		return v.Observed
	}
	return fmt.Sprintf(`{"expected":%s,"observed":%s}`,
		engine.StringValue(v.Expected).Canonical(), engine.StringValue(v.Observed).Canonical())
}

// Next is the chain hash that follows previous: SHA-256(0x01 || previous ||
// verdict hash) (decision D25). The first one follows 32 zero bytes.
func Next(previous, verdict [32]byte) [32]byte {
	var buffer [65]byte
	buffer[0] = 0x01
	copy(buffer[1:33], previous[:])
	copy(buffer[33:], verdict[:])
	return sha256.Sum256(buffer[:])
}
