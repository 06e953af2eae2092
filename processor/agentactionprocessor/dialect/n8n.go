package dialect

// n8n is n8n's tool nodes. It never writes arguments or results, and no call
// id: n8n.node.id names a place in the workflow, which a loop passes many
// times in one trace, and would make one action of many calls.
var n8n = &spanDialect{
	Info: Info{Name: "n8n", Signal: Spans, Experimental: true},
	when: all(
		nameIs("node.execute"),
		attrContains("n8n.node.type", "langchain.tool", "langchain.mcpClientTool"),
	),
	tool:     texts{attrText("n8n.node.name")},
	agent:    texts{resourceText("service.name")},
	workflow: texts{attrText("n8n.workflow.id")},
	outcome:  outcomes{exception(), statusError(), otherwise(Success)},
}
