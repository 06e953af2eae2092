package dialect

import "strings"

// genai is OpenTelemetry's conventions for generative AI and MCP, with the
// names of older releases. mcp.session.id is a transport's session, not the
// agent's.
var genai = &spanDialect{
	Info: Info{Name: "genai", Signal: Spans, DefaultOn: true},
	when: either(
		attrIs("gen_ai.operation.name", "execute_tool"),
		attrIs("mcp.method.name", "tools/call"),
		all(
			attrExists("gen_ai.tool.name"),
			attrMissing("gen_ai.operation.name"),
			either(attrExists("gen_ai.tool.call.id"), attrExists("gen_ai.tool.call.arguments")),
		),
	),
	tool: texts{
		attrText("gen_ai.tool.name"),
		attrText("mcp.tool.name"),
		nameAfter("execute_tool "),
		nameAfter("tools/call "),
	},
	callID:     texts{attrText("gen_ai.tool.call.id")},
	arguments:  values{attrValue("gen_ai.tool.call.arguments"), codeParameters()},
	result:     values{attrValue("gen_ai.tool.call.result")},
	agent:      texts{attrText("gen_ai.agent.name")},
	session:    texts{attrText("gen_ai.conversation.id"), attrText("session.id")},
	workflow:   texts{attrText("gen_ai.workflow.name")},
	mcpSession: texts{attrText("mcp.session.id")},
	mcpServer:  texts{mcpServer()},
	outcome:    outcomes{errorType(), exception(), statusError(), resultSaysError(), otherwise(Success)},
}

// codeParameters collects code.function.parameters.<name>.value, in which
// contrib's google-genai instrumentation writes the arguments.
func codeParameters() valueSource {
	const prefix, suffix = "code.function.parameters.", ".value"
	return valueSource{"attrs:" + prefix + "*" + suffix, func(v *view) reported {
		var parameters map[string]any
		for key, value := range v.attrs.All() {
			name, ok := strings.CutPrefix(key, prefix)
			if !ok {
				continue
			}
			name, ok = strings.CutSuffix(name, suffix)
			c := capture(reportedValue(value, true), argumentsSentinel)
			if !ok || !storable(name) || c.State == NotCaptured || c.Truncated {
				continue
			}
			if text, ok := c.Value.(string); ok {
				c.Value = cleaned(text)
			}
			if parameters == nil {
				parameters = map[string]any{}
			}
			parameters[name] = c.Value
		}
		if parameters == nil {
			return reported{}
		}
		return reportedBuilt(parameters)
	}}
}
