package dialect

// agentAction is a family of home-made instrumentations that name their
// attributes agent.action.*. They share no schema, so it is off by default.
var agentAction = &spanDialect{
	Info: Info{Name: "agent_action", Signal: Spans, Experimental: true},
	when: all(
		attrIs("agent.action.type", "tool", "tool_call", "tool-call", "tool_execution"),
		either(attrExists("agent.tool.name"), attrExists("agent.action")),
	),
	tool:      texts{attrText("agent.tool.name"), attrText("agent.action")},
	callID:    texts{attrText("agent.tool.call.id")},
	arguments: values{attrValue("agent.tool.parameters")},
	result:    values{attrValue("agent.artifact")},
	agent:     texts{attrText("agent.id")},
	session:   texts{attrText("agent.session.id"), attrText("session.id")},
	outcome:   outcomes{errorType(), exception(), statusError(), otherwise(Success)},
}
