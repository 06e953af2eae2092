// Package seal makes verdicts tamper-evident: the canonical document of a
// verdict and its hash (decision D24), and the chain of a tenant (decision D25).
package seal

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/contract"
)

// Format names the version of the document that is hashed.
const Format = "countersign.verdict.v1"

// actionPart is how a document names the action.
type actionPart struct {
	ActionID string `json:"action_id"`
	AgentID  string `json:"agent_id,omitempty"`
	// Params is the canonical JSON text of the params; absent when not captured.
	Params      string `json:"params,omitempty"`
	RequestedAt string `json:"requested_at"`
	SubjectID   string `json:"subject_id"`
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

// Seal makes the canonical documents of both lenses and hashes them (decision D24).
func Seal(s Subject, outcome, policy engine.Verdict, findings []engine.Finding) (sealedOutcome, sealedPolicy Sealed) {
	buffer := buffers.Get().(*[]byte)
	defer buffers.Put(buffer)
	b := appendShared((*buffer)[:0], s, findings)
	shared := len(b)
	b = appendVerdict(b, s, engine.Outcome, outcome)
	sealedOutcome = Sealed{string(b), sha256.Sum256(b)}
	b = appendVerdict(b[:shared], s, engine.Policy, policy)
	sealedPolicy = Sealed{string(b), sha256.Sum256(b)}
	*buffer = b
	return sealedOutcome, sealedPolicy
}

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// appendShared and appendVerdict write what a verdict hash covers. It holds no
// clock, no database id and no chain position, and only strings, booleans,
// arrays, objects and small integers, so that every RFC 8785 library makes the
// same bytes. Members stand in the order of their names, as RFC 8785 wants them:
// what both lenses share comes first, and the tenant last.
func appendShared(b []byte, s Subject, findings []engine.Finding) []byte {
	b = appendAction(append(b, `{"action":`...), action(s.Action))
	b = appendChecks(append(b, `,"checks":[`...), s, findings)
	b = engine.AppendString(append(b, `],"contract":{"hash":`...), s.Contract.Hash)
	b = engine.AppendString(append(b, `,"id":`...), s.Contract.ID)
	b = strconv.AppendInt(append(b, `,"version":`...), int64(s.Contract.Version), 10)
	return append(b, `},"format":"`+Format+`"`...)
}

func appendVerdict(b []byte, s Subject, lens engine.Lens, verdict engine.Verdict) []byte {
	b = engine.AppendString(append(b, `,"lens":`...), string(lens))
	b = engine.AppendString(append(b, `,"raw_verdict":`...), string(verdict.Raw))
	b = appendStrings(append(b, `,"reasons":`...), verdict.Reasons)
	b = engine.AppendString(append(b, `,"tenant":`...), s.Tenant)
	return append(b, '}')
}

func appendAction(b []byte, a actionPart) []byte {
	b = engine.AppendString(append(b, `{"action_id":`...), a.ActionID)
	b = appendPresent(b, `,"agent_id":`, a.AgentID)
	b = appendPresent(b, `,"params":`, a.Params)
	b = engine.AppendString(append(b, `,"requested_at":`...), a.RequestedAt)
	b = engine.AppendString(append(b, `,"subject_id":`...), a.SubjectID)
	return append(b, '}')
}

func appendChecks(b []byte, s Subject, findings []engine.Finding) []byte {
	calls := s.Calls
	if calls == nil {
		calls = Calls(s.Contract, s.Sources)
	}
	for i, call := range calls {
		if i > 0 {
			b = append(b, ',')
		}
		b = engine.AppendString(append(b, `{"call":`...), call)
		b = appendPresent(b, `,"evidence":`, findings[i].Evidence)
		b = strconv.AppendBool(append(b, `,"fired":`...), findings[i].Fired)
		b = appendPresent(b, `,"value":`, ValueText(findings[i].Value))
		b = append(b, '}')
	}
	return b
}

// appendPresent leaves a member out that is empty.
func appendPresent(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return engine.AppendString(append(b, name...), text)
}

// appendStrings writes null for nil.
func appendStrings(b []byte, texts []string) []byte {
	if texts == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i, text := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = engine.AppendString(b, text)
	}
	return append(b, ']')
}

func action(a engine.Action) actionPart {
	part := actionPart{ActionID: a.ActionID, SubjectID: a.SubjectID, RequestedAt: a.RequestedAt.String(), AgentID: a.AgentID}
	if a.Params.Captured() {
		part.Params = a.Params.Canonical()
	}
	return part
}

// Said is what a verdict's document says, without anything of the action.
type Said struct {
	Lens            engine.Lens
	Raw             engine.RawVerdict
	ContractID      string
	ContractVersion int
}

// Open reads a document of which only the hash is known. It fails when the
// document is another one than was sealed.
func Open(sealed string, hash [32]byte) (Said, error) {
	if sum := sha256.Sum256([]byte(sealed)); sum != hash {
		return Said{}, fmt.Errorf("verdict document with the hash %x is stored under %x: it was changed", sum, hash)
	}
	var d struct {
		Lens     engine.Lens
		Verdict  engine.RawVerdict `json:"raw_verdict"`
		Contract struct {
			ID      string
			Version int
		}
	}
	if err := json.Unmarshal([]byte(sealed), &d); err != nil {
		return Said{}, fmt.Errorf("verdict document with the hash %x: %w", hash, err)
	}
	return Said{d.Lens, d.Verdict, d.Contract.ID, d.Contract.Version}, nil
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
