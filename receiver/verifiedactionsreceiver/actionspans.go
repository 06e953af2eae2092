package verifiedactionsreceiver

import (
	"encoding/json"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
)

// actionScope is the instrumentation scope of spans made of VerifiedActions.
const actionScope = "verified_actions"

// payloadVersion is written where one has to stand. Readers look for its
// presence only, and fields that they do not know are left out here already.
const payloadVersion = "1"

// actionTraces makes one span of each action, in order. Each carries its
// action as metadata of its own, which is how processors recognise it.
func (s *server) actionTraces(payloads []verifiedactions.Payload, now time.Time) ptrace.Traces {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	scope.Scope().SetName(actionScope)
	for i := range payloads {
		p := &payloads[i]
		at := p.SentAt
		if at.IsZero() {
			at = now
		}
		for j := range p.Actions {
			s.actionSpan(scope.Spans().AppendEmpty(), p.SessionID, &p.Actions[j], at)
		}
	}
	return td
}

// actionSpan is of zero length: the time is that of the message (decision
// D13), and VA does not say when the call began.
func (s *server) actionSpan(span ptrace.Span, sessionID string, action *verifiedactions.Action, at time.Time) {
	span.SetTraceID(traceID(sessionID, action.ReferenceID))
	span.SetSpanID(spanID(actionDomain, sessionID, action.ReferenceID))
	span.SetName("verified_action " + string(action.Type))
	span.SetKind(ptrace.SpanKindInternal)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
	a := span.Attributes()
	a.PutStr(s.metadata.Version, payloadVersion)
	a.PutStr(s.metadata.Payload, payloadOf(sessionID, action))
	putText(a, "gen_ai.conversation.id", sessionID)
	putText(a, "gen_ai.tool.name", action.ToolName())
	if failedStatus[engine.Fold(action.Status)] {
		a.PutStr("error.type", "_OTHER")
		span.Status().SetCode(ptrace.StatusCodeError)
	}
}

// failedStatus are the words for a failed call; VA leaves them open.
var failedStatus = map[string]bool{"error": true, "failed": true, "failure": true, "timeout": true}

// payloadOf is the JSON of one action, always the same for the same action.
func payloadOf(sessionID string, action *verifiedactions.Action) string {
	fields := map[string]any{"type": action.Type, "reference_id": action.ReferenceID}
	for name, value := range action.Fields {
		fields[name] = value
	}
	if action.Status != "" {
		fields["status"] = action.Status
	}
	if action.DurationMS != nil {
		fields["duration_ms"] = *action.DurationMS
	}
	payload := map[string]any{"actions": []any{fields}}
	if sessionID != "" {
		payload["session_id"] = sessionID
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return "" // cannot happen: only strings and numbers that were read from JSON
	}
	return string(text)
}
