package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Action is what an agent did, as it says itself (AC "Recording actions").
type Action struct {
	// ActionID is your own id from the agent's execution log, at most 512
	// bytes. Record gives one where it is empty.
	ActionID   string `json:"action_id,omitempty"`
	ContractID string `json:"contract_id"`
	// ContractVersion is pinned on the action; 0 pins the latest.
	ContractVersion int    `json:"contract_version,omitempty"`
	WorkflowID      string `json:"workflow_id,omitempty"`
	AgentID         string `json:"agent_id,omitempty"`
	// ActionType and SubjectKind default to the contract's.
	ActionType  string `json:"action_type,omitempty"`
	SubjectKind string `json:"subject_kind,omitempty"`
	// SubjectID is the record that the action changes.
	SubjectID string `json:"subject_id"`
	// RequestedAt counts in whole seconds; zero is the sidecar's now.
	RequestedAt time.Time `json:"requested_at,omitzero"`
	// Params are the agent's arguments: anything that encoding/json writes as
	// an object of at most 64 KiB, depth 16 and 256 keys. Write amounts as
	// json.Number or string; a float64 has no exact decimals. Nil means that
	// they were not captured (decision D33), which is not the same as empty.
	Params      any    `json:"params"`
	Channel     string `json:"channel,omitempty"`
	Compensates string `json:"compensates,omitempty"`
	// TraceID (32 hex digits) and SpanID (16) are where the verdict is shown.
	TraceID         string `json:"trace_id,omitempty"`
	SpanID          string `json:"span_id,omitempty"`
	SessionID       string `json:"session_id,omitempty"`
	ReferenceID     string `json:"reference_id,omitempty"`
	Tool            string `json:"tool,omitempty"`
	ReportedOutcome string `json:"reported_outcome,omitempty"`
}

// Recorded is an action as it stands in the ledger. What was never sent is empty.
type Recorded struct {
	// ID is the internal id, clm_...
	ID              string          `json:"id"`
	ActionID        string          `json:"action_id"`
	ContractID      string          `json:"contract_id"`
	ContractVersion int             `json:"contract_version"`
	WorkflowID      string          `json:"workflow_id"`
	AgentID         string          `json:"agent_id"`
	ActionType      string          `json:"action_type"`
	SubjectID       string          `json:"subject_id"`
	SubjectKind     string          `json:"subject_kind"`
	RequestedAt     time.Time       `json:"requested_at"`
	Params          json.RawMessage `json:"params"`
	// ParamsCaptured is false when the agent's runtime hid the arguments, and nil otherwise.
	ParamsCaptured  *bool  `json:"params_captured"`
	Channel         string `json:"channel"`
	Compensates     string `json:"compensates"`
	TraceID         string `json:"trace_id"`
	SpanID          string `json:"span_id"`
	SessionID       string `json:"session_id"`
	ReferenceID     string `json:"reference_id"`
	Tool            string `json:"tool"`
	ReportedOutcome string `json:"reported_outcome"`
}

// newAction is the body of POST /v1/actions.
type newAction struct {
	Action
	Verify string `json:"verify,omitempty"`
}

// Record records an action and queues its verification. Recording the same
// ActionID again changes what AC "Idempotency" lets an update change. It fails
// with a *Problem when the action cannot be recorded as it is; its Code is
// conflict when the action has settled, other content was sent, and its contract
// says updates: until_settled.
func (c *Client) Record(ctx context.Context, action Action) (Recorded, error) {
	if action.ActionID == "" {
		// Here and not in the sidecar, so that a repeated request makes one action.
		action.ActionID = "act_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	}
	var answer struct {
		Action Recorded `json:"action"`
	}
	err := c.post(ctx, "/v1/actions", newAction{action, "auto"}, &answer)
	return answer.Action, err
}

// Verify asks for a verdict on a recorded action now, by its ActionID or ID.
// The sidecar verifies by itself what is recorded with this package.
func (c *Client) Verify(ctx context.Context, ref string) (Verification, error) {
	var verified Verification
	err := c.post(ctx, "/v1/actions/verify", map[string]string{"action_id": ref}, &verified)
	return verified, err
}

// Get returns an action with its latest verification, by its ActionID or ID.
func (c *Client) Get(ctx context.Context, ref string) (Verification, error) {
	var shown Verification
	err := c.get(ctx, actionPath(ref), nil, &shown)
	return shown, err
}

func actionPath(ref string) string { return "/v1/actions/" + url.PathEscape(ref) }

// Filter narrows List. Empty members match everything.
type Filter struct {
	// Verdict is PASS, FAIL, UNKNOWN, PENDING or COMPENSATED.
	Verdict    string
	ContractID string
	AgentID    string
	SubjectID  string
	TraceID    string
	WorkflowID string
	// Since and Until bound RequestedAt, both inclusive.
	Since, Until time.Time
}

// pageSize is how many actions one request of List brings.
const pageSize = 100

func (f Filter) query(cursor string) url.Values {
	values := url.Values{"limit": {strconv.Itoa(pageSize)}}
	for name, text := range map[string]string{
		"verdict": f.Verdict, "contract_id": f.ContractID, "agent_id": f.AgentID, "subject_id": f.SubjectID,
		"trace_id": f.TraceID, "workflow_id": f.WorkflowID, "cursor": cursor,
	} {
		if text != "" {
			values.Set(name, text)
		}
	}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			values.Set(name, at.Format(time.RFC3339))
		}
	}
	return values
}

// List yields actions, newest first, page by page as they are asked for. The
// verifications are without Checks and Sources. An error ends it.
func (c *Client) List(ctx context.Context, filter Filter) iter.Seq2[Verification, error] {
	return func(yield func(Verification, error) bool) {
		for cursor, more := "", true; more; more = cursor != "" {
			var page struct {
				Actions []Verification `json:"actions"`
				Next    string         `json:"next_cursor"`
			}
			if err := c.get(ctx, "/v1/actions", filter.query(cursor), &page); err != nil {
				yield(Verification{}, err)
				return
			}
			for _, action := range page.Actions {
				if !yield(action, nil) {
					return
				}
			}
			cursor = page.Next
		}
	}
}
