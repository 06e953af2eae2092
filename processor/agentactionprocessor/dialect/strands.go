package dialect

const inferenceDetails = "gen_ai.client.inference.operation.details"

// strands is AWS Strands Agents: arguments and result stand in span events.
var strands = &spanDialect{
	Info: Info{Name: "strands", Signal: Spans, DefaultOn: true},
	when: all(
		either(attrIs("gen_ai.system", "strands-agents"), attrIs("gen_ai.provider.name", "strands-agents")),
		attrIs("gen_ai.operation.name", "execute_tool"),
	),
	tool:   texts{attrText("gen_ai.tool.name")},
	callID: texts{attrText("gen_ai.tool.call.id")},
	arguments: values{
		attrValue("gen_ai.tool.call.arguments"),
		messagePart(inferenceDetails, "gen_ai.input.messages", "tool_call", "arguments"),
		eventValue("gen_ai.tool.message", "content"),
	},
	result: values{
		attrValue("gen_ai.tool.call.result"),
		messagePart(inferenceDetails, "gen_ai.output.messages", "tool_call_response", "response"),
		eventValue("gen_ai.choice", "message"),
	},
	session: texts{attrText("session.id"), attrText("gen_ai.conversation.id")},
	outcome: outcomes{
		when("attr:gen_ai.tool.status", Success, func(v *view) bool { return v.text("gen_ai.tool.status") == "success" }),
		when("attr:gen_ai.tool.status", Error, func(v *view) bool { return v.text("gen_ai.tool.status") == "error" }),
		exception(),
		statusError(),
		otherwise(Success),
	},
}
