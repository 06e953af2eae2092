package dialect

// codexLogs is the log events of OpenAI's Codex CLI. Its records carry no
// time of their own.
var codexLogs = &logDialect{
	Info:     Info{Name: "codex_logs", Signal: Logs, Experimental: true},
	result:   "codex.tool_result",
	decision: "codex.tool_decision",

	tool:      texts{attrText("tool_name")},
	callID:    texts{attrText("call_id")},
	arguments: values{attrValue("arguments")},
	output:    values{attrValue("output")},
	agent:     texts{resourceText("service.name")},
	session:   texts{attrText("conversation.id")},
	rejected:  []string{"denied", "abort"},
}
