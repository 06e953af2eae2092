package record

import (
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
)

// Action is a recorded action on its way to a ledger.
type Action struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	Action engine.Action
	// StartedNanos is the start of the call in OTLP nanoseconds; 0 when unknown.
	StartedNanos int64
}

// AppendAction adds one action to those that a span or log record carries.
func AppendAction(attributes pcommon.Map, a Action) {
	m := appendMap(attributes, ActionsKey)
	m.EnsureCapacity(a.fields())
	putText(m, tenantField, a.Tenant)
	putText(m, actionIDField, a.Action.ActionID)
	putText(m, contractIDField, a.Action.ContractID)
	if a.Action.ContractVersion != 0 {
		m.PutInt(contractVersionField, int64(a.Action.ContractVersion))
	}
	putText(m, workflowIDField, a.Action.WorkflowID)
	putText(m, agentIDField, a.Action.AgentID)
	putText(m, actionTypeField, a.Action.ActionType)
	putText(m, subjectIDField, a.Action.SubjectID)
	putText(m, subjectKindField, a.Action.SubjectKind)
	m.PutStr(requestedAtField, a.Action.RequestedAt.String())
	if a.StartedNanos != 0 {
		m.PutInt(startedNanosField, a.StartedNanos)
	}
	if a.Action.Params.Captured() {
		m.PutStr(paramsField, a.Action.Params.Text())
	}
	putText(m, channelField, a.Action.Channel)
	putText(m, compensatesField, a.Action.Compensates)
	putText(m, traceIDField, a.Action.TraceID)
	putText(m, spanIDField, a.Action.SpanID)
	putText(m, sessionIDField, a.Action.SessionID)
	putText(m, referenceIDField, a.Action.ReferenceID)
	putText(m, toolField, a.Action.Tool)
	putText(m, reportedOutcomeField, a.Action.ReportedOutcome)
}

// fields is how many of its fields are set.
func (a *Action) fields() int {
	n := 1 // requested_at
	for _, text := range [...]string{
		a.Tenant, a.Action.ActionID, a.Action.ContractID, a.Action.WorkflowID, a.Action.AgentID, a.Action.ActionType,
		a.Action.SubjectID, a.Action.SubjectKind, a.Action.Channel, a.Action.Compensates, a.Action.TraceID, a.Action.SpanID,
		a.Action.SessionID, a.Action.ReferenceID, a.Action.Tool, a.Action.ReportedOutcome,
	} {
		if text != "" {
			n++
		}
	}
	for _, set := range [...]bool{a.Action.ContractVersion != 0, a.StartedNanos != 0, a.Action.Params.Captured()} {
		if set {
			n++
		}
	}
	return n
}

// appendMap adds an empty map to the slice under key. Anything else that
// stands there is replaced: it cannot be ours.
func appendMap(attributes pcommon.Map, key string) pcommon.Map {
	value, ok := attributes.Get(key)
	if !ok {
		attributes.EnsureCapacity(attributes.Len() + 1) // by itself it would double
	}
	if !ok || value.Type() != pcommon.ValueTypeSlice {
		return attributes.PutEmptySlice(key).AppendEmpty().SetEmptyMap()
	}
	return value.Slice().AppendEmpty().SetEmptyMap()
}

func putText(m pcommon.Map, key, text string) {
	if text != "" {
		m.PutStr(key, text)
	}
}

func readAction(m pcommon.Map) (Action, error) {
	var r reader
	a := Action{Action: engine.Action{RequestedAt: noInstant}}
	for key, value := range m.All() {
		r.action(&a, key, value)
	}
	if a.Action.RequestedAt == noInstant {
		r.fail(requestedAtField, "is missing")
	}
	if r.err != nil {
		return Action{}, r.err
	}
	var err error
	a.Action, err = a.Action.Normalize()
	return a, err
}

// action reads one field in one pass over the map: looking every field up
// would go over it once for each.
func (r *reader) action(a *Action, key string, value pcommon.Value) {
	switch key {
	case tenantField:
		a.Tenant = r.text(key, value)
	case actionIDField:
		a.Action.ActionID = r.text(key, value)
	case contractIDField:
		a.Action.ContractID = r.text(key, value)
	case contractVersionField:
		a.Action.ContractVersion = r.version(key, value)
	case workflowIDField:
		a.Action.WorkflowID = r.text(key, value)
	case agentIDField:
		a.Action.AgentID = r.text(key, value)
	case actionTypeField:
		a.Action.ActionType = r.text(key, value)
	case subjectIDField:
		a.Action.SubjectID = r.text(key, value)
	case subjectKindField:
		a.Action.SubjectKind = r.text(key, value)
	case requestedAtField:
		a.Action.RequestedAt = r.instant(key, value)
	case startedNanosField:
		a.StartedNanos = r.nanos(key, value)
	case paramsField:
		a.Action.Params = r.object(key, value)
	case channelField:
		a.Action.Channel = r.text(key, value)
	case compensatesField:
		a.Action.Compensates = r.text(key, value)
	case traceIDField:
		a.Action.TraceID = r.text(key, value)
	case spanIDField:
		a.Action.SpanID = r.text(key, value)
	case sessionIDField:
		a.Action.SessionID = r.text(key, value)
	case referenceIDField:
		a.Action.ReferenceID = r.text(key, value)
	case toolField:
		a.Action.Tool = r.text(key, value)
	case reportedOutcomeField:
		a.Action.ReportedOutcome = r.text(key, value)
	}
}
