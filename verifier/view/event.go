package view

import (
	"fmt"
	"strings"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
	"github.com/countersign-otel/countersign/verifier/settle"
)

// Kinds of events.
const (
	EventPending     = "action.pending"
	EventVerified    = "action.verified"
	EventCompensated = "action.compensated"
	EventParked      = ledger.ParkedEvent
)

// EventKinds are all kinds of events.
func EventKinds() []string {
	return []string{EventPending, EventVerified, EventCompensated, EventParked}
}

// Event is what happened to an action, as streams and webhooks tell it. It
// names the action and says what was decided; GET /v1/actions/{ref} tells the rest.
type Event struct {
	ID              string         `json:"id" doc:"the place in the tenant's sequence of events; the same whenever and however often the event is told"`
	Type            string         `json:"type" enum:"action.pending,action.verified,action.compensated,action.parked"`
	At              engine.Instant `json:"at" doc:"when the verification was computed, or the action was parked"`
	ActionID        string         `json:"action_id"`
	ClaimID         string         `json:"claim_id" doc:"the internal id, clm_..."`
	ContractID      string         `json:"contract_id"`
	ContractVersion int            `json:"contract_version"`
	SubjectID       string         `json:"subject_id"`
	AgentID         *string        `json:"agent_id"`
	WorkflowID      *string        `json:"workflow_id"`
	Compensates     *string        `json:"compensates" doc:"the action that this one corrects"`
	TraceID         *string        `json:"trace_id"`
	SpanID          *string        `json:"span_id"`
	Status          *string        `json:"status" enum:"pending,settled" doc:"null for parked work"`
	Outcome         *Lens          `json:"outcome" doc:"null for parked work"`
	Policy          *Lens          `json:"policy" doc:"null for parked work"`
	Headline        string         `json:"headline"`
	// Error and Disagreement are those of parked work.
	Error        string `json:"error,omitempty" doc:"why the action cannot be verified until somebody looks at it"`
	Disagreement bool   `json:"disagreement,omitempty" doc:"the evaluators did not say the same, so that there is no verdict"`
}

// EventOf shows an event.
func EventOf(e ledger.Event) Event {
	shown := Event{
		ID: e.String(), Type: e.Kind, At: e.At, ActionID: e.ActionID, ClaimID: e.ClaimID,
		ContractID: e.Contract.ID, ContractVersion: e.Contract.Version, SubjectID: e.SubjectID,
		AgentID: sent(e.AgentID), WorkflowID: sent(e.WorkflowID), Compensates: sent(e.Compensates), TraceID: sent(e.TraceID), SpanID: sent(e.SpanID),
		Headline: e.Headline,
	}
	if e.Kind == EventParked {
		shown.Headline = "PARKED — " + e.Error
		shown.Error, shown.Disagreement = e.Error, strings.HasPrefix(e.Error, settle.ErrDisagreement.Error())
		return shown
	}
	shown.Status = sent(e.Status)
	shown.Outcome, shown.Policy = eventLens(e.Outcome), eventLens(e.Policy)
	return shown
}

func eventLens(v ledger.EventVerdict) *Lens {
	return &Lens{v.Raw.Label(), v.Raw, notNil(v.Reasons), fmt.Sprintf("%x", v.Hash)}
}

// EventFilter selects events; zero fields select all. Parked work has no
// verdict, so that a filter by verdict leaves it out.
type EventFilter struct {
	Kinds               []string
	ContractID, AgentID string
	// Verdict is PASS, FAIL or UNKNOWN of settled runs under the policy lens, or PENDING.
	Verdict string
}

// Match says whether an event is selected. What told nothing never is.
func (f EventFilter) Match(e *ledger.Event) bool {
	switch {
	case e.Kind == "",
		f.ContractID != "" && f.ContractID != e.Contract.ID,
		f.AgentID != "" && f.AgentID != e.AgentID:
		return false
	}
	return f.matchKind(e.Kind) && f.matchVerdict(e)
}

func (f EventFilter) matchKind(kind string) bool {
	for _, k := range f.Kinds {
		if k == kind {
			return true
		}
	}
	return len(f.Kinds) == 0
}

func (f EventFilter) matchVerdict(e *ledger.Event) bool {
	switch f.Verdict {
	case "":
		return true
	case "PENDING":
		return e.Status == ledger.Pending
	}
	return e.Status == ledger.Settled && e.Policy.Raw.Label() == f.Verdict
}
