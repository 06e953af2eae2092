package api

import (
	"encoding/hex"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-otel/countersign/engine"
)

// ActionBody documents the body of POST /actions. It is read by hand, member
// by member, so that numbers keep their exact text.
type ActionBody struct {
	ActionID        string         `json:"action_id,omitempty" maxLength:"512" doc:"your own id from the agent's execution log; without one every call makes a new action"`
	ContractID      string         `json:"contract_id" doc:"the action contract"`
	ContractVersion int            `json:"contract_version,omitempty" minimum:"1" doc:"pinned on the action; default: the latest"`
	WorkflowID      *string        `json:"workflow_id,omitempty"`
	AgentID         *string        `json:"agent_id,omitempty"`
	ActionType      *string        `json:"action_type,omitempty" doc:"default: the contract's"`
	SubjectID       string         `json:"subject_id" maxLength:"512" doc:"the record that the action changes"`
	SubjectKind     *string        `json:"subject_kind,omitempty" doc:"default: the contract's"`
	RequestedAt     engine.Instant `json:"requested_at,omitempty" doc:"RFC 3339; default: now"`
	Params          engine.Object  `json:"params,omitempty" doc:"the agent's own arguments; at most 64 KiB, depth 16 and 256 keys; null means not captured"`
	Channel         *string        `json:"channel,omitempty"`
	Compensates     *string        `json:"compensates,omitempty" doc:"action id of the action that this one corrects"`
	TraceID         *string        `json:"trace_id,omitempty" pattern:"^[0-9a-fA-F]{32}$" doc:"of the action's span, where verdicts are shown"`
	SpanID          *string        `json:"span_id,omitempty" pattern:"^[0-9a-fA-F]{16}$"`
	SessionID       *string        `json:"session_id,omitempty"`
	ReferenceID     *string        `json:"reference_id,omitempty"`
	Tool            *string        `json:"tool,omitempty"`
	ReportedOutcome *string        `json:"reported_outcome,omitempty" doc:"what the agent's runtime said; it never decides a verdict"`
	Verify          string         `json:"verify,omitempty" enum:"auto" doc:"auto queues the first verification; without it nothing is verified until somebody asks"`
}

// actionMembers are the members of an action, apart from verify.
var actionMembers = []string{
	"action_id", "contract_id", "contract_version", "workflow_id", "agent_id", "action_type", "subject_id",
	"subject_kind", "requested_at", "params", "channel", "compensates", "trace_id", "span_id", "session_id",
	"reference_id", "tool", "reported_outcome",
}

// action reads an action; the time of recording stands in for requested_at (AC
// "Window and time semantics"). What is wrong is collected in o's faults.
func (o object) action(now engine.Instant) engine.Action {
	a := engine.Action{
		ActionID:        o.opaque("action_id", false),
		ContractID:      o.identifier("contract_id", true),
		ContractVersion: o.count("contract_version"),
		WorkflowID:      o.opaque("workflow_id", false),
		AgentID:         o.opaque("agent_id", false),
		ActionType:      o.opaque("action_type", false),
		SubjectID:       o.opaque("subject_id", true),
		SubjectKind:     o.opaque("subject_kind", false),
		RequestedAt:     now,
		Params:          o.data("params"),
		Channel:         o.opaque("channel", false),
		Compensates:     o.opaque("compensates", false),
		TraceID:         o.hex("trace_id", 16),
		SpanID:          o.hex("span_id", 8),
		SessionID:       o.opaque("session_id", false),
		ReferenceID:     o.opaque("reference_id", false),
		Tool:            o.opaque("tool", false),
		ReportedOutcome: o.opaque("reported_outcome", false),
	}
	if at, ok := o.instant("requested_at"); ok {
		a.RequestedAt = at
	}
	if a.ActionID == "" {
		a.ActionID = "act_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	}
	if a.Compensates != "" && a.Compensates == a.ActionID {
		o.fail("compensates", "names the action itself")
	}
	return a
}

// hex reads a W3C trace or span id of n bytes, in lowercase. All zeros is no id.
func (o object) hex(key string, n int) string {
	if !o.sent(key) {
		return ""
	}
	before := len(*o.faults)
	text := engine.Fold(o.text(key))
	if len(*o.faults) > before {
		return ""
	}
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != n || strings.Trim(text, "0") == "" {
		o.fail(key, "is not an id of %d hex digits, not all zero", 2*n)
		return ""
	}
	return text
}
