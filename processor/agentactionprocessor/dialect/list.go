package dialect

// spanDialects in order of precedence: the first match is the primary one.
// genai is the most general and therefore after all that write gen_ai.* too.
var spanDialects = labelled(
	claudeCodeSpan,
	langfuse,
	vercelAILegacy,
	googleADK,
	strands,
	langsmith,
	traceloop,
	openinference,
	pydanticAI,
	dify,
	n8n,
	genai,
	agentAction,
)

var logDialects = labelledLogs(
	claudeCodeLogs,
	codexLogs,
)

// Names lists all dialects in order of precedence, spans before logs.
func Names() []Info {
	infos := make([]Info, 0, len(spanDialects)+len(logDialects))
	for _, d := range spanDialects {
		infos = append(infos, d.Info)
	}
	for _, d := range logDialects {
		infos = append(infos, d.Info)
	}
	return infos
}
