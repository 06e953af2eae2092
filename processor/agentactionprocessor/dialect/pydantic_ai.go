package dialect

// pydanticAI is Pydantic AI, also through Logfire. Two of its tool spans are
// calls that did not run: arguments that failed validation, and calls put off
// until a person approves them.
var pydanticAI = &spanDialect{
	Info: Info{Name: "pydantic_ai", Signal: Spans, DefaultOn: true},
	when: all(
		scopeIs("pydantic-ai"),
		either(
			attrIs("gen_ai.operation.name", "execute_tool"),
			nameIs("running tool"),
			nameStarts("execute_tool "),
		),
	),
	tool:      texts{attrText("gen_ai.tool.name"), nameAfter("execute_tool ")},
	callID:    texts{attrText("gen_ai.tool.call.id")},
	arguments: values{attrValue("gen_ai.tool.call.arguments"), attrValue("tool_arguments")},
	result:    values{attrValue("gen_ai.tool.call.result"), attrValue("tool_response")},
	agent:     texts{attrText("gen_ai.agent.name")},
	session:   texts{attrText("gen_ai.conversation.id")},
	workflow:  texts{attrText("gen_ai.agent.call.id")},
	outcome: outcomes{
		when("attr:pydantic_ai.tool.failure_stage", NotExecuted, func(v *view) bool {
			return v.text("pydantic_ai.tool.failure_stage") == "validation"
		}),
		when("attr:pydantic_ai.tool.deferral.name", Deferred, func(v *view) bool {
			return v.has("pydantic_ai.tool.deferral.name")
		}),
		exception(),
		statusError(),
		otherwise(Success),
	},
}
