package dialect

// spanDialect is how one instrumentation writes tool calls on spans. Sources
// are tried in order; the first that has something supplies the field.
type spanDialect struct {
	Info
	when condition

	tool, callID             texts
	arguments, result        values
	agent, session, workflow texts
	mcpSession, mcpServer    texts
	outcome                  outcomes

	// envelopes that this instrumentation puts around the arguments; nil for
	// most. It may depend on the instrumentation's scope.
	envelopes func(*view) envelopes
	// langchain: the result may be a ToolMessage. It is the tool's own answer,
	// so it is looked at only where the instrumentation is known to write one.
	langchain func(*view) bool
	// neither reports that arguments and result stand there as placeholders
	// of a switched-off capture.
	neither func(*view) bool
	// serviceIsAgent: without an agent above it, the service is the agent.
	serviceIsAgent bool
}

// labelled writes the dialect's name into all labels, so that filling a call
// joins no strings.
func labelled(dialects ...*spanDialect) []*spanDialect {
	for _, d := range dialects {
		for _, list := range []texts{d.tool, d.callID, d.agent, d.session, d.workflow, d.mcpSession, d.mcpServer} {
			list.prefix(d.Name)
		}
		d.arguments.prefix(d.Name)
		d.result.prefix(d.Name)
		for i := range d.outcome {
			d.outcome[i].label = d.Name + ":" + d.outcome[i].label
		}
	}
	return dialects
}

func (t texts) prefix(name string) {
	for i := range t {
		t[i].label = name + ":" + t[i].label
	}
}

func (s values) prefix(name string) {
	for i := range s {
		s[i].label = name + ":" + s[i].label
	}
}

// fill supplies the fields of the call that are still empty.
func (d *spanDialect) fill(v *view, call *ToolCall) {
	d.fillValues(v, call)
	call.fillText(v, fieldTool, &call.Tool, d.tool, toolSentinel)
	call.fillText(v, fieldCallID, &call.CallID, d.callID, callIDSentinel)
	call.fillText(v, fieldAgent, &call.Agent, d.agent, nil)
	call.fillText(v, fieldSession, &call.Session, d.session, nil)
	call.fillText(v, fieldWorkflow, &call.Workflow, d.workflow, nil)
	call.fillText(v, fieldMCPSession, &call.MCPSession, d.mcpSession, nil)
	call.fillText(v, fieldMCPServer, &call.MCPServer, d.mcpServer, nil)
	if call.Outcome == "" {
		said, label := d.outcome.outcome(v)
		call.Outcome = said
		call.sourced(fieldOutcome, label)
	}
}

// fillValues reads arguments and result before the names, because call ids
// are sometimes found inside them. It parses nothing that is not needed.
func (d *spanDialect) fillValues(v *view, call *ToolCall) {
	v.arguments, v.result, v.message = understood{}, understood{}, message{}
	if d.neither != nil && d.neither(v) {
		return
	}
	var open envelopes
	if d.envelopes != nil {
		open = d.envelopes(v)
	}
	if call.Arguments.State == NotCaptured || call.CallID == "" && open != nil {
		d.fillArguments(v, call, open)
	}
	langchain := d.langchain != nil && d.langchain(v)
	if call.Result.State == NotCaptured || call.CallID == "" && langchain {
		d.fillResult(v, call, langchain)
	}
}

func (d *spanDialect) fillArguments(v *view, call *ToolCall, open envelopes) {
	var from string
	v.arguments, from = d.arguments.find(v, func(r reported) understood { return understandArguments(r, open) })
	if call.Arguments.State == NotCaptured && v.arguments.State == Present {
		call.Arguments = v.arguments.Captured
		call.sourced(fieldArguments, from)
	}
}

func (d *spanDialect) fillResult(v *view, call *ToolCall, langchain bool) {
	var from string
	v.result, from = d.result.find(v, understandResult)
	if v.result.State == NotCaptured {
		return
	}
	answer := v.result.Captured
	if langchain {
		if m, ok := toolMessage(v.result.outer); ok {
			v.message, answer.Value = m, m.answer()
		}
	}
	if call.Result.State == NotCaptured {
		call.Result = answer
		call.sourced(fieldResult, from)
	}
}

func (s values) find(v *view, understand func(reported) understood) (understood, string) {
	for i := range s {
		if u := understand(s[i].read(v)); u.State == Present {
			return u, s[i].label
		}
	}
	return understood{}, ""
}

// fillText supplies one name or id, unless it is there already.
func (c *ToolCall) fillText(v *view, f field, into *string, from texts, sentinel func(string) bool) {
	if *into != "" {
		return
	}
	for i := range from {
		text := from[i].read(v)
		if textSentinel(text) || sentinel != nil && sentinel(text) {
			continue
		}
		if problem := textProblem(text); problem != "" {
			c.problem(from[i].label, problem)
			continue
		}
		*into = text
		c.sourced(f, from[i].label)
		return
	}
}

func (c *ToolCall) sourced(f field, label string) {
	if label != "" {
		c.Sources[f] = label
	}
}
