package dialect

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// agentLike spans stand above tool calls and name the agent (D31).
var agentLike = either(
	attrIs("gen_ai.operation.name", "invoke_agent", "create_agent", "invoke_workflow"),
	attrIs("openinference.span.kind", "AGENT"),
	attrIs("traceloop.span.kind", "agent", "workflow"),
	attrIs("langfuse.observation.type", "agent"),
	all(nameIs("agent run"), attrExists("agent_name")),
)

// sessionBearing spans are no agents, but some instrumentations write the
// session on them only: ADK's call_llm, the Vercel AI SDK's steps.
var sessionBearing = all(
	either(attrExists("gcp.vertex.agent.session_id"), attrExists("ai.settings.context.sessionId")),
	not(attrIs("gen_ai.operation.name", "execute_tool")),
)

var agentNames = texts{
	attrText("gen_ai.agent.name"),
	attrText("agent.name"),
	attrText("agent_name"),
	attrText("traceloop.entity.name"),
	attrText("graph.node.id"),
	hostedAgentID(),
	agentSpanName(),
}

var contextSessions = texts{
	attrText("gen_ai.conversation.id"),
	attrText("session.id"),
	attrText("langfuse.session.id"),
	attrText("traceloop.association.properties.session_id"),
	attrText("traceloop.association.properties.thread_id"),
	attrText("gcp.vertex.agent.session_id"),
	attrText("ai.settings.context.sessionId"),
}

// hostedAgentID: elsewhere the id may be one run's, or a constant.
func hostedAgentID() textSource {
	return textSource{"attr:gen_ai.agent.id", func(v *view) string {
		if v.span.Kind() != ptrace.SpanKindClient {
			return ""
		}
		return v.text("gen_ai.agent.id")
	}}
}

// agentSpanName is the last resort: the span's name, without the operation
// that the conventions put before the agent's name.
func agentSpanName() textSource {
	return textSource{"name", func(v *view) string {
		name := v.span.Name()
		operation := v.text("gen_ai.operation.name")
		if operation == "" || !strings.HasPrefix(name, operation) {
			return name
		}
		return strings.TrimSpace(strings.TrimPrefix(name, operation))
	}}
}

func firstText(v *view, from texts) string {
	for i := range from {
		if text := from[i].read(v); !textSentinel(text) && textProblem(text) == "" {
			return text
		}
	}
	return ""
}

// contextOf reads an agent-like span; false when it says nothing of use.
func contextOf(v *view, names texts) (Context, bool) {
	c := Context{
		TraceID: v.span.TraceID(),
		SpanID:  v.span.SpanID(),
		Start:   v.span.StartTimestamp(),
		End:     v.span.EndTimestamp(),
		Agent:   firstText(v, names),
		Session: firstText(v, contextSessions),
	}
	return c, c.Agent != "" || c.Session != ""
}
