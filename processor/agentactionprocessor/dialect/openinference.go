package dialect

import "strings"

// openinference is Arize's OpenInference. tool.parameters is not read: it is
// the schema in some of its instrumentations and the arguments in others.
var openinference = &spanDialect{
	Info:      Info{Name: "openinference", Signal: Spans, DefaultOn: true},
	when:      attrIs("openinference.span.kind", "TOOL"),
	tool:      texts{attrText("tool.name"), spanName()},
	callID:    texts{attrText("tool.id"), attrText("tool_call.id"), toolMessageCallID()},
	arguments: values{attrValue("input.value")},
	result:    values{attrValue("output.value")},
	agent:     texts{attrText("agent.name"), attrText("tool.agent_role")},
	session: texts{
		attrText("session.id"),
		metadataText("metadata", "session_id"),
		metadataText("metadata", "conversation_id"),
		metadataText("metadata", "thread_id"),
	},
	outcome: outcomes{exception(), errorType(), statusError(), toolMessageStatus(), otherwise(Success)},
	envelopes: func(v *view) envelopes {
		if strings.Contains(v.scope.Name(), "llama_index") || strings.Contains(v.scope.Name(), "llama-index") {
			return envelopes{kwargsEnvelope}
		}
		return nil
	},
	langchain: func(v *view) bool { return strings.Contains(v.scope.Name(), "langchain") },
}
