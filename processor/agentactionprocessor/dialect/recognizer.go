package dialect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Recognizer finds tool calls in the dialects it was made for. It keeps
// nothing between calls and may be used by many goroutines at once.
type Recognizer struct {
	scanner  scanner
	spans    []spanMatcher
	logs     []*logDialect
	skips    []skipMatcher
	agents   clauses
	sessions clauses
	anySpan  clauses // of any dialect
	anyMark  marks   // without one of these a span is no tool call
	anyAgent marks   // without one of these it says nothing of an agent
}

type spanMatcher struct {
	*spanDialect
	when clauses
}

type skipMatcher struct {
	why  string
	when clauses
}

// skipRules are spans that look like tool calls and are none of the agent's.
var skipRules = []struct {
	why  string
	when condition
}{
	{
		"stands for several calls that have spans of their own",
		either(attrIs("gen_ai.tool.name", mergedTools), nameIs("execute_tool (merged)")),
	},
	{
		"server side of an MCP call: corroborates the caller's span",
		all(kindIs(ptrace.SpanKindServer), attrExists("mcp.method.name")),
	},
	{
		"hands over to another agent",
		all(attrIs("openinference.span.kind", "TOOL"), attrMissing("tool.name"), nameStarts("handoff to ")),
	},
	{
		"announces a span that is still running",
		attrIs("logfire.span_type", "pending_span"),
	},
}

// New makes a recognizer of the named dialects, or of those that are on by
// default. The order of names is of no consequence. An unknown name is an
// error that lists the known ones, the nearest first.
func New(enabled ...string) (*Recognizer, error) {
	wanted, err := choose(enabled)
	if err != nil {
		return nil, err
	}
	r := &Recognizer{}
	for _, d := range spanDialects {
		if wanted[d.Name] {
			when := r.scanner.compile(d.when)
			r.spans = append(r.spans, spanMatcher{d, when})
			r.anySpan = append(r.anySpan, when...)
		}
	}
	r.anyMark = r.anySpan.any()
	for _, d := range logDialects {
		if wanted[d.Name] {
			r.logs = append(r.logs, d)
		}
	}
	for _, rule := range skipRules {
		r.skips = append(r.skips, skipMatcher{rule.why, r.scanner.compile(rule.when)})
	}
	r.agents = r.scanner.compile(agentLike)
	r.sessions = r.scanner.compile(sessionBearing)
	r.anyAgent = r.agents.any() | r.sessions.any()
	return r, nil
}

func choose(enabled []string) (map[string]bool, error) {
	wanted := map[string]bool{}
	var unknown []string
	for _, name := range enabled {
		wanted[name] = true
		if !slices.ContainsFunc(Names(), func(i Info) bool { return i.Name == name }) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return nil, unknownError(unknown)
	}
	for _, info := range Names() {
		if len(enabled) == 0 && info.DefaultOn {
			wanted[info.Name] = true
		}
	}
	return wanted, nil
}

func unknownError(unknown []string) error {
	var texts []string
	for _, name := range unknown {
		known := make([]string, 0, len(spanDialects)+len(logDialects))
		for _, info := range Names() {
			known = append(known, info.Name)
		}
		slices.SortStableFunc(known, func(a, b string) int {
			return cmp.Compare(distance(name, a), distance(name, b))
		})
		texts = append(texts, fmt.Sprintf("unknown dialect %.64q: known are %s", name, strings.Join(known, ", ")))
	}
	return fmt.Errorf("%s", strings.Join(texts, "\n"))
}

// distance is the number of bytes to insert, delete or replace between two
// names; of a long name only the beginning counts.
func distance(a, b string) int {
	if len(a) > 64 {
		a = a[:64]
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Span recognises one span on its own. What only other spans of the batch
// know is missing, see Traces. A span that is no tool call costs no memory.
func (r *Recognizer) Span(resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) (*ToolCall, bool) {
	m := r.scanner.scope(scope) | r.scanner.span(span)
	if !r.isTool(m) || r.skipped(m) != "" {
		return nil, false
	}
	v := spanView(resource, scope, span)
	call := new(ToolCall)
	r.toolCall(m, &v, call)
	return call, true
}

func (r *Recognizer) isTool(m marks) bool {
	return m&r.anyMark != 0 && r.anySpan.hold(m)
}

// Agent recognises one agent-like span.
func (r *Recognizer) Agent(resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) (Context, bool) {
	return r.context(r.scanner.scope(scope)|r.scanner.span(span), resource, scope, span)
}

func (r *Recognizer) context(m marks, resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) (Context, bool) {
	if m&r.anyAgent == 0 {
		return Context{}, false
	}
	names := agentNames
	if !r.agents.hold(m) {
		if !r.sessions.hold(m) {
			return Context{}, false
		}
		names = agentNames[:1]
	}
	v := spanView(resource, scope, span)
	return contextOf(&v, names)
}

func (r *Recognizer) skipped(m marks) string {
	for i := range r.skips {
		if r.skips[i].when.hold(m) {
			return r.skips[i].why
		}
	}
	return ""
}

func spanView(resource pcommon.Resource, scope pcommon.InstrumentationScope, span ptrace.Span) view {
	return view{resource: resource, scope: scope, attrs: span.Attributes(), span: span, isSpan: true}
}

// toolCall lets every matching dialect speak, in order of precedence. The call is empty.
func (r *Recognizer) toolCall(m marks, v *view, call *ToolCall) {
	span := v.span
	call.TraceID, call.SpanID, call.ParentSpanID = span.TraceID(), span.SpanID(), span.ParentSpanID()
	call.SpanName, call.ServiceName, call.Scope = span.Name(), serviceName(v.resource), v.scope.Name()
	call.Start, call.End = span.StartTimestamp(), span.EndTimestamp()
	call.MCP = v.has("mcp.method.name")
	for i := range r.spans {
		if !r.spans[i].when.hold(m) {
			continue
		}
		if call.Dialect == "" {
			call.Dialect = r.spans[i].Name
		}
		r.spans[i].fill(v, call)
	}
}
