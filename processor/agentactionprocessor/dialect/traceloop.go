package dialect

import "strings"

// traceloop is OpenLLMetry: its decorator, its LangChain, MCP and OpenAI
// Agents instrumentations.
var traceloop = &spanDialect{
	Info: Info{Name: "traceloop", Signal: Spans, DefaultOn: true},
	when: either(
		attrIs("traceloop.span.kind", "tool"),
		all(attrExists("traceloop.entity.input"), attrIs("gen_ai.operation.name", "execute_tool")),
	),
	tool: texts{traceloopMessageName(), attrText("gen_ai.tool.name"), attrText("traceloop.entity.name")},
	callID: texts{
		attrText("gen_ai.tool.call.id"),
		{"arguments.tool_call_id", func(v *view) string { return envelopeCallID(v.arguments.outer) }},
		toolMessageCallID(),
	},
	arguments: values{attrValue("traceloop.entity.input"), attrValue("gen_ai.tool.call.arguments")},
	result:    values{attrValue("traceloop.entity.output"), attrValue("gen_ai.tool.call.result")},
	agent:     texts{attrText("gen_ai.agent.name")},
	session: texts{
		attrText("gen_ai.conversation.id"),
		attrText("traceloop.association.properties.session_id"),
		attrText("traceloop.association.properties.thread_id"),
	},
	workflow: texts{attrText("traceloop.workflow.name")},
	outcome: outcomes{
		errorType(), exception(), statusError(), toolMessageStatus(), resultSaysError(), otherwise(Success),
	},
	envelopes: func(*view) envelopes {
		return envelopes{langchainEnvelope, pythonCallEnvelope, javascriptCallEnvelope, mcpCallEnvelope}
	},
	langchain: func(v *view) bool { return strings.Contains(v.scope.Name(), "langchain") },
}

// traceloopMessageName: the JavaScript instrumentation writes the class of the
// tool where its name should be; only the ToolMessage knows the name. Anywhere
// else the span knows it, and the tool's answer must not change it.
func traceloopMessageName() textSource {
	return textSource{"result.name", func(v *view) string {
		if !strings.HasPrefix(v.scope.Name(), "@traceloop/") {
			return ""
		}
		return v.message.name
	}}
}
