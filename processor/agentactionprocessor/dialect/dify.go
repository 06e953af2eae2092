package dialect

// dify is Dify's tool nodes. The tool's name is the title of the node.
var dify = &spanDialect{
	Info:           Info{Name: "dify", Signal: Spans, Experimental: true},
	when:           all(attrIs("gen_ai.framework", "dify"), attrIs("gen_ai.span.kind", "TOOL")),
	tool:           texts{attrText("gen_ai.tool.name")},
	callID:         texts{attrText("gen_ai.tool.call.id"), attrText("node.execution_id")},
	arguments:      values{attrValue("gen_ai.tool.call.arguments"), attrValue("input.value")},
	result:         values{attrValue("gen_ai.tool.call.result"), attrValue("output.value")},
	session:        texts{attrText("gen_ai.conversation.id")},
	outcome:        outcomes{exception(), statusError(), otherwise(Success)},
	serviceIsAgent: true,
}
