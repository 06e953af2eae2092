package dialect

// vercelAILegacy is the Vercel AI SDK up to version 6, and version 7 with its
// legacy exporter. An instrumentation beside it may copy a failed sibling's
// error status onto a call that went well, so a result counts for more.
var vercelAILegacy = &spanDialect{
	Info:      Info{Name: "vercel_ai_legacy", Signal: Spans, DefaultOn: true},
	when:      either(attrIs("ai.operationId", "ai.toolCall"), attrExists("ai.toolCall.name")),
	tool:      texts{attrText("ai.toolCall.name")},
	callID:    texts{attrText("ai.toolCall.id")},
	arguments: values{attrValue("ai.toolCall.args")},
	result:    values{attrValue("ai.toolCall.result")},
	agent:     texts{attrText("ai.telemetry.functionId"), attrText("resource.name")},
	session: texts{
		attrText("ai.telemetry.metadata.sessionId"),
		attrText("ai.telemetry.metadata.session_id"),
		attrText("ai.telemetry.metadata.threadId"),
		attrText("ai.telemetry.metadata.conversationId"),
	},
	outcome: outcomes{
		when("attr:ai.toolCall.result", Success, func(v *view) bool {
			return v.has("ai.toolCall.result") && !hasException(v)
		}),
		exception(),
		statusError(),
		otherwise(Success),
	},
}
