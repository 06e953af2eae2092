package sqlite

import (
	"github.com/countersign-otel/countersign/engine"
)

// orZero is the value of a column, or the zero value for NULL.
func orZero[T any](value *T) T {
	var zero T
	if value == nil {
		return zero
	}
	return *value
}

// actionRow reads the columns of an action: action_id, contract_id,
// contract_version, workflow_id, agent_id, action_type, subject_id,
// subject_kind, requested_at, params, channel, compensates, trace_id, span_id,
// session_id, reference_id, tool, reported_outcome.
type actionRow struct {
	a                                                  engine.Action
	workflow, agent, actionType, kind, params, channel *string
	compensates, trace, span, session, reference, tool *string
	outcome                                            *string
}

func (r *actionRow) columns() []any {
	return []any{
		&r.a.ActionID, &r.a.ContractID, &r.a.ContractVersion, &r.workflow, &r.agent, &r.actionType, &r.a.SubjectID, &r.kind,
		&r.a.RequestedAt, &r.params, &r.channel, &r.compensates, &r.trace, &r.span, &r.session, &r.reference, &r.tool, &r.outcome,
	}
}

func (r *actionRow) action() (engine.Action, error) {
	a := r.a
	a.WorkflowID, a.AgentID, a.ActionType, a.SubjectKind = orZero(r.workflow), orZero(r.agent), orZero(r.actionType), orZero(r.kind)
	a.Channel, a.Compensates, a.TraceID, a.SpanID = orZero(r.channel), orZero(r.compensates), orZero(r.trace), orZero(r.span)
	a.SessionID, a.ReferenceID, a.Tool, a.ReportedOutcome = orZero(r.session), orZero(r.reference), orZero(r.tool), orZero(r.outcome)
	if r.params == nil {
		return a, nil
	}
	var err error
	a.Params, err = engine.ReadObject(*r.params)
	return a, err
}
