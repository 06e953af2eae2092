package dialect

// langsmith is LangSmith's OpenTelemetry exporter. Its trace.session_id is the
// LangSmith project, never the session.
var langsmith = &spanDialect{
	Info:      Info{Name: "langsmith", Signal: Spans, DefaultOn: true},
	when:      attrIs("langsmith.span.kind", "tool"),
	tool:      texts{attrText("langsmith.trace.name"), spanName()},
	callID:    texts{attrText("gen_ai.tool.call.id"), toolMessageCallID()},
	arguments: values{attrValue("gen_ai.prompt")},
	result:    values{attrValue("gen_ai.completion")},
	session: texts{
		attrText("langsmith.metadata.session_id"),
		attrText("langsmith.metadata.conversation_id"),
		attrText("langsmith.metadata.thread_id"),
	},
	outcome:   outcomes{exception(), statusError(), toolMessageStatus(), otherwise(Success)},
	envelopes: func(*view) envelopes { return envelopes{inputEnvelope} },
	langchain: always,
}
