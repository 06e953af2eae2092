package dialect

// mergedTools stands for several calls whose own spans are beside it.
const mergedTools = "(merged tools)"

// googleADK is Google's Agent Development Kit. A failed call's span has no
// attributes and no status: without a result the outcome is unknown.
var googleADK = &spanDialect{
	Info: Info{Name: "google_adk", Signal: Spans, DefaultOn: true},
	when: either(
		attrExists("gcp.vertex.agent.tool_call_args"),
		all(scopeIs("gcp.vertex.agent"), nameStarts("execute_tool ")),
	),
	tool:      texts{attrText("gen_ai.tool.name"), nameAfter("execute_tool ")},
	callID:    texts{attrText("gen_ai.tool.call.id")},
	arguments: values{attrValue("gcp.vertex.agent.tool_call_args"), attrValue("gen_ai.tool.call.arguments")},
	result:    values{attrValue("gcp.vertex.agent.tool_response"), attrValue("gen_ai.tool.call.result")},
	agent:     texts{attrText("gen_ai.agent.name")},
	session:   texts{attrText("gen_ai.conversation.id")},
	outcome: outcomes{
		errorType(),
		exception(),
		statusError(),
		statusOK(),
		when("attr:gcp.vertex.agent.tool_response", Success, func(v *view) bool {
			return understandResult(v.attr("gcp.vertex.agent.tool_response")).State == Present ||
				v.result.State == Present
		}),
		otherwise(Unknown),
	},
	neither: adkCaptureOff,
}

// adkCaptureOff: with content capture off, both texts are an empty object. A
// tool without parameters that answers nothing looks the same, and is then
// taken for not captured: a missing value violates no check, a wrong one may.
func adkCaptureOff(v *view) bool {
	return v.text("gcp.vertex.agent.tool_call_args") == "{}" &&
		v.text("gcp.vertex.agent.tool_response") == "{}" &&
		!v.has("gen_ai.tool.call.arguments")
}
