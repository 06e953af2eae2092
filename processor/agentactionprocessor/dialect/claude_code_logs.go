package dialect

// claudeCodeLogs is Claude Code's log events. success is text there. Without
// OTEL_LOG_TOOL_DETAILS=1 they have no arguments.
var claudeCodeLogs = &logDialect{
	Info:     Info{Name: "claude_code_logs", Signal: Logs, DefaultOn: true},
	result:   "claude_code.tool_result",
	decision: "claude_code.tool_decision",
	scope:    "com.anthropic.claude_code",
	service:  "claude-code",

	tool:      texts{claudeToolName("tool_name"), claudeMCPTool()},
	callID:    texts{attrText("tool_use_id")},
	arguments: values{attrValue("tool_input"), claudeParameters()},
	agent:     texts{attrText("agent_id"), attrText("agent.id"), resourceText("service.name")},
	session:   texts{attrText("session.id")},
	workflow:  texts{attrText("prompt.id")},
	mcpServer: texts{claudeParameter("mcp_server_name")},
	rejected:  []string{"reject"},
}

// claudeParameters reads tool_parameters where it holds arguments. For an MCP
// tool it names server and tool instead, which are no arguments.
func claudeParameters() valueSource {
	return valueSource{"attr:tool_parameters", func(v *view) reported {
		if claudeParameter("mcp_tool_name").read(v) != "" {
			return reported{}
		}
		return v.attr("tool_parameters")
	}}
}

func claudeParameter(member string) textSource { return metadataText("tool_parameters", member) }

// claudeMCPTool is the name that Claude Code gives an MCP tool, made of the
// parts that stand in tool_parameters.
func claudeMCPTool() textSource {
	return textSource{"attr:tool_parameters", func(v *view) string {
		server := claudeParameter("mcp_server_name").read(v)
		tool := claudeParameter("mcp_tool_name").read(v)
		if server == "" || tool == "" {
			return ""
		}
		return "mcp__" + server + "__" + tool
	}}
}
