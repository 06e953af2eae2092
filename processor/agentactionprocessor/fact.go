package agentactionprocessor

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/ottlvalue"
	"github.com/countersign-otel/countersign/internal/record"
)

// factSubjectKind is the kind of subject of all facts made of spans (AC "OpenTelemetry").
const factSubjectKind = "ticket"

// annotateFact makes a self-reported fact of a span that carries
// agent.action.type and agent.action.subject_id (AC "OpenTelemetry").
func (b *batch) annotateFact(span ptrace.Span) {
	fact, ok, err := factOf(span)
	if !ok {
		return
	}
	if err == nil {
		err = b.noTenant
	}
	if err != nil {
		b.badFacts++
		record.PutError(span.Attributes(), "agent.action: no fact: "+err.Error())
		return
	}
	b.facts++
	record.AppendFact(span.Attributes(), record.Fact{Tenant: b.tenant, Trust: engine.SelfReported, Fact: fact})
}

// factOf is the fact that a span says; ok is false when it carries no such thing.
func factOf(span ptrace.Span) (fact engine.Fact, ok bool, err error) {
	attributes := span.Attributes()
	kind, hasKind := attributes.Get(factTypeKey)
	subject, hasSubject := attributes.Get(factSubjectKey)
	if !hasKind || !hasSubject {
		return engine.Fact{}, false, nil
	}
	action, err := ottlvalue.Text(kind)
	if err != nil {
		return engine.Fact{}, true, fmt.Errorf("%s: %w", factTypeKey, err)
	}
	subjectID, err := ottlvalue.Text(subject)
	if err != nil {
		return engine.Fact{}, true, fmt.Errorf("%s: %w", factSubjectKey, err)
	}
	said, err := factAttributes(attributes, action)
	if err != nil {
		return engine.Fact{}, true, err
	}
	fact, err = engine.Fact{
		RawRef:      factRef(span),
		Source:      engine.AgentSource,
		Type:        factType(action),
		SubjectID:   subjectID,
		SubjectKind: factSubjectKind,
		OccurredAt:  engine.InstantOfNanos(uint64(max(span.EndTimestamp(), span.StartTimestamp()))),
		Attributes:  said,
	}.Normalize()
	return fact, true, err
}

// factType maps the type of an agent's action to a fact type (AC "OpenTelemetry").
func factType(action string) string {
	switch engine.Fold(action) {
	case "status_change":
		return "status_change"
	case "escalate", "handoff":
		return "escalation"
	case "reply":
		return "agent_message"
	}
	return "agent_action"
}

// factAttributes are {action, from, to, actor: "agent"}; what was not sent is
// left out. agent.action.name is the action where it says more than the type.
func factAttributes(attributes pcommon.Map, action string) (engine.Object, error) {
	said := map[string]any{"action": action, "actor": "agent"}
	for _, optional := range []struct{ key, name string }{
		{factNameKey, "action"}, {factFromKey, "from"}, {factToKey, "to"},
	} {
		if value, ok := attributes.Get(optional.key); ok {
			text, err := ottlvalue.Text(value)
			if err != nil {
				return engine.Object{}, fmt.Errorf("%s: %w", optional.key, err)
			}
			if text != "" {
				said[optional.name] = text
			}
		}
	}
	return ottlvalue.Object(said)
}

// factRef names the fact by its span, so that the same span is the same fact.
// A span without ids leaves it to the content (decision D36).
func factRef(span ptrace.Span) string {
	if span.TraceID().IsEmpty() || span.SpanID().IsEmpty() {
		return ""
	}
	return engine.SpanPrefix + span.TraceID().String() + "-" + span.SpanID().String()
}
