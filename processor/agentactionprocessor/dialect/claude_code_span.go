package dialect

const (
	claudeTool      = "claude_code.tool"
	claudeExecution = "claude_code.tool.execution"
	claudeBlocked   = "claude_code.tool.blocked_on_user"
)

// claudeCodeSpan is Claude Code's traces (beta). The tool span itself never
// says how the call went: its children do, see Recognizer.Traces.
var claudeCodeSpan = &spanDialect{
	Info:   Info{Name: "claude_code_span", Signal: Spans, DefaultOn: true},
	when:   nameIs(claudeTool),
	tool:   texts{claudeToolName("tool_name")},
	callID: texts{attrText("tool_use_id"), attrText("gen_ai.tool.call.id")},
	arguments: values{
		attrValue("tool_input"),
		eventValue("tool.output", "tool_input"),
		claudeFields("file_path", "full_command", "skill_name", "subagent_type"),
	},
	result:   values{eventValue("tool.output", "output"), eventValue("tool.output", "content")},
	agent:    texts{attrText("agent_id"), resourceText("service.name")},
	session:  texts{attrText("session.id")},
	workflow: texts{attrText("workflow.run_id"), attrText("prompt.id")},
}

// claudeToolName reads the tool's name; mcp_tool stands where the name of a
// user's MCP tool was not captured.
func claudeToolName(key string) textSource {
	return textSource{"attr:" + key, func(v *view) string {
		if name := v.text(key); name != "mcp_tool" {
			return name
		}
		return ""
	}}
}

// claudeFields collects the single arguments that are shown when the whole
// input is not.
func claudeFields(keys ...string) valueSource {
	return valueSource{"attrs", func(v *view) reported {
		fields := map[string]any{}
		for _, key := range keys {
			if text := v.text(key); !argumentsSentinel(text) {
				fields[key] = cleaned(text)
			}
		}
		if len(fields) == 0 {
			return reported{}
		}
		return reportedBuilt(fields)
	}}
}

// claudeChild is what a child span says of its parent, a claude_code.tool.
func claudeChild(v *view) (Outcome, bool) {
	switch v.span.Name() {
	case claudeExecution:
		return claudeExecuted(v), true
	case claudeBlocked:
		if v.text("decision") == "reject" {
			return NotExecuted, true
		}
	}
	return "", false
}

func claudeExecuted(v *view) Outcome {
	if said, _ := (outcomes{statusError()}).outcome(v); said == Error {
		return Error
	}
	switch v.text("success") {
	case "true":
		return Success
	case "false":
		return Error
	default:
		return Unknown
	}
}
