package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrAction is wrapped by every error about an action that cannot be recorded.
var ErrAction = errors.New("invalid action")

// Action is one request by an agent to change a record (AC "Vocabulary").
// Empty strings mean "not sent".
type Action struct {
	// ActionID is the agent's own id, unique within a tenant.
	ActionID        string
	ContractID      string
	ContractVersion int
	WorkflowID      string
	AgentID         string
	ActionType      string
	SubjectID       string
	SubjectKind     string
	RequestedAt     Instant
	// Params is not captured when the agent's runtime hid the arguments (decision D33).
	Params      Object
	Channel     string
	Compensates string
	// TraceID and SpanID are lowercase hex of the action's span.
	TraceID     string
	SpanID      string
	SessionID   string
	ReferenceID string
	Tool        string
	// ReportedOutcome is what the agent's runtime said; it never decides a verdict (decision D34).
	ReportedOutcome string
}

// Names of the fields of an action that a verdict may depend on, as the API and contracts spell them.
const (
	FieldActionID    = "action_id"
	FieldSubjectID   = "subject_id"
	FieldRequestedAt = "requested_at"
	FieldParams      = "params"
	FieldAgentID     = "agent_id"
	FieldChannel     = "channel"
	FieldWorkflowID  = "workflow_id"
	FieldSessionID   = "session_id"
	FieldReferenceID = "reference_id"
)

// DefaultSubjectKind and the other defaults of the envelope (AC "YAML reference").
const DefaultSubjectKind = "record"

// Normalize checks the action and lowercases its identifiers. Errors name the field.
func (a Action) Normalize() (Action, error) {
	var err error
	if err = CheckOpaque("action_id", a.ActionID); err != nil {
		return Action{}, fmt.Errorf("%w: %w", ErrAction, err)
	}
	if a.ContractID, err = Identifier(a.ContractID); err != nil {
		return Action{}, fmt.Errorf("%w: contract_id: %w", ErrAction, err)
	}
	if err = CheckOpaque("subject_id", a.SubjectID); err != nil {
		return Action{}, fmt.Errorf("%w: %w", ErrAction, err)
	}
	for _, optional := range []struct{ field, text string }{
		{"workflow_id", a.WorkflowID}, {"agent_id", a.AgentID}, {"action_type", a.ActionType},
		{"subject_kind", a.SubjectKind}, {"channel", a.Channel}, {"compensates", a.Compensates},
		{"trace_id", a.TraceID}, {"span_id", a.SpanID}, {"session_id", a.SessionID},
		{"reference_id", a.ReferenceID}, {"tool", a.Tool}, {"reported_outcome", a.ReportedOutcome},
	} {
		if optional.text == "" {
			continue
		}
		if err := CheckOpaque(optional.field, optional.text); err != nil {
			return Action{}, fmt.Errorf("%w: %w", ErrAction, err)
		}
	}
	if a.Compensates == a.ActionID {
		return Action{}, fmt.Errorf("%w: compensates names the action itself", ErrAction)
	}
	if a.RequestedAt < 0 || a.RequestedAt > MaxInstant {
		return Action{}, fmt.Errorf("%w: requested_at: %w: outside the years 1970 to 9999", ErrAction, ErrInstant)
	}
	return a, nil
}

// RawRef is the reference of the claim record (AC "Idempotency").
func (a Action) RawRef() string { return ClaimRawRef(a.ActionID) }

// ClaimRawRef is the reference of the claim record of an action id.
func ClaimRawRef(actionID string) string { return claimPrefix + actionID }

// ClaimID is the internal id of an action: a function of tenant and action
// id, so that every store and every replica gives the same one.
func ClaimID(tenant, actionID string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + actionID))
	return "clm_" + hex.EncodeToString(sum[:16])
}

// Field returns the action's field that where_action names (decision D30):
// action_id, agent_id, workflow_id, session_id, reference_id, or param:NAME.
// A field that was not sent is absent and equals nothing.
func (a Action) Field(name string) Value {
	var text string
	switch name {
	case FieldActionID:
		text = a.ActionID
	case FieldAgentID:
		text = a.AgentID
	case FieldWorkflowID:
		text = a.WorkflowID
	case FieldSessionID:
		text = a.SessionID
	case FieldReferenceID:
		text = a.ReferenceID
	default:
		return a.Params.Lookup(name[min(len("param:"), len(name)):])
	}
	if text == "" {
		return Value{}
	}
	return StringValue(text)
}

// DefaultTenant owns everything for which no tenant is named (decision D37).
const DefaultTenant = "default"
