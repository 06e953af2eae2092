package dialect

import (
	"cmp"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// Position says where in a batch a span or log record stands.
type Position struct{ Resource, Scope, Item int }

// Call is a tool call and the span or record it is recorded on.
type Call struct {
	*ToolCall
	At Position
	// Merged are further spans or records of the same call (D32).
	Merged []Position
}

// Skipped is a span that looks like a tool call and is none, or is part of
// one that is recorded elsewhere.
type Skipped struct {
	At     Position
	SpanID pcommon.SpanID
	Why    string
}

// Batch is what was found in one batch of telemetry, in its order.
type Batch struct {
	Calls    []Call
	Contexts []Context
	Skipped  []Skipped
	// chunks hold the calls of spans.
	chunks []*chunk
}

// chunk is memory for calls, which many batches use one after the other: a
// call is large, and next to nothing of it outlives its batch.
type chunk struct {
	calls [16]ToolCall
	used  int
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

func (b *Batch) newCall() *ToolCall {
	if n := len(b.chunks); n == 0 || b.chunks[n-1].used == len(b.chunks[n-1].calls) {
		b.chunks = append(b.chunks, chunks.Get().(*chunk))
	}
	last := b.chunks[len(b.chunks)-1]
	last.used++
	return &last.calls[last.used-1]
}

// Release gives memory back for the next batch. The calls must not be used
// any more; who keeps them does not call it.
func (b *Batch) Release() {
	for _, c := range b.chunks {
		clear(c.calls[:c.used])
		c.used = 0
		chunks.Put(c)
	}
	*b = Batch{}
}

// Traces recognises all tool calls of a batch: skipped and merged as D32 says,
// and with what only child spans know.
func (r *Recognizer) Traces(td ptrace.Traces) Batch {
	var b Batch
	claude := false
	var v *view // one for all calls, and none for a batch without
	eachSpan(td, r.scanner.scope, func(m marks, p place) {
		m |= r.scanner.span(p.span)
		if c, ok := r.context(m, p.resource, p.scope, p.span); ok {
			b.Contexts = append(b.Contexts, c)
		}
		if !r.isTool(m) {
			return
		}
		if why := r.skipped(m); why != "" {
			b.Skipped = append(b.Skipped, Skipped{p.Position, p.span.SpanID(), why})
			return
		}
		if v == nil {
			v = new(view)
		}
		*v = spanView(p.resource, p.scope, p.span)
		call := b.newCall()
		r.toolCall(m, v, call)
		claude = claude || call.Dialect == claudeCodeSpan.Name
		b.Calls = append(b.Calls, Call{ToolCall: call, At: p.Position})
	})
	if claude {
		b.hearClaudeChildren(td)
	}
	if len(b.Calls) > 1 {
		b.merge(td, r)
	}
	return b
}

// place is a span and where it stands.
type place struct {
	Position
	resource pcommon.Resource
	scope    pcommon.InstrumentationScope
	span     ptrace.Span
}

func eachSpan(td ptrace.Traces, scopeMarks func(pcommon.InstrumentationScope) marks, visit func(marks, place)) {
	for i, resource := range td.ResourceSpans().All() {
		for j, scope := range resource.ScopeSpans().All() {
			m := scopeMarks(scope.Scope())
			for k, span := range scope.Spans().All() {
				visit(m, place{Position{i, j, k}, resource.Resource(), scope.Scope(), span})
			}
		}
	}
}

func noMarks(pcommon.InstrumentationScope) marks { return 0 }

// spanKey names a span: span ids alone are unique only inside one trace.
type spanKey struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

// hearClaudeChildren gives Claude Code's calls the outcome that their child
// spans report. An execution says more than a decision about it.
func (b *Batch) hearClaudeChildren(td ptrace.Traces) {
	said := map[spanKey]Outcome{}
	eachSpan(td, noMarks, func(_ marks, p place) {
		v := view{attrs: p.span.Attributes(), span: p.span, isSpan: true}
		outcome, ok := claudeChild(&v)
		key := spanKey{p.span.TraceID(), p.span.ParentSpanID()}
		if ok && (outcome != NotExecuted || said[key] == "") {
			said[key] = outcome
		}
	})
	for i := range b.Calls {
		call := b.Calls[i].ToolCall
		outcome, ok := said[spanKey{call.TraceID, call.SpanID}]
		if !ok || call.Dialect != claudeCodeSpan.Name {
			continue
		}
		call.Outcome = outcome
		child := claudeExecution
		if outcome == NotExecuted {
			child = claudeBlocked
		}
		call.sourced(fieldOutcome, call.Dialect+":child:"+child)
	}
}

// node is a span in the tree of a batch.
type node struct {
	parent pcommon.SpanID
	call   int // index in Calls, -1 for none
	agent  bool
}

// maxAncestors bounds how far up a call is looked for; it also ends a walk
// through spans that are each other's parents.
const maxAncestors = 128

// tree indexes the spans of those traces that hold calls.
type tree map[spanKey]node

func (b *Batch) tree(td ptrace.Traces, r *Recognizer) tree {
	traces := map[pcommon.TraceID]bool{}
	for i := range b.Calls {
		traces[b.Calls[i].TraceID] = true
	}
	t := tree{}
	next := 0 // of the calls, which stand in the order of their spans
	eachSpan(td, r.scanner.scope, func(m marks, p place) {
		call := -1
		if next < len(b.Calls) && b.Calls[next].At == p.Position {
			call = next
			next++
		}
		if call < 0 && !traces[p.span.TraceID()] {
			return
		}
		agent := r.agents.hold(m | r.scanner.span(p.span))
		t[spanKey{p.span.TraceID(), p.span.SpanID()}] = node{p.span.ParentSpanID(), call, agent}
	})
	return t
}

// haveParents says whether a span of the batch is the parent of a call: mostly
// it is not, because a parent ends, and is sent, after its children.
func (b *Batch) haveParents(td ptrace.Traces) bool {
	parents := map[spanKey]bool{}
	var last spanKey
	for i := range b.Calls {
		key := spanKey{b.Calls[i].TraceID, b.Calls[i].ParentSpanID}
		if i == 0 || key != last {
			parents[key], last = true, key
		}
	}
	for _, resource := range td.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			for _, span := range scope.Spans().All() {
				if parents[spanKey{span.TraceID(), span.SpanID()}] {
					return true
				}
			}
		}
	}
	return false
}

// merge makes one call of a call and those inside it that report it again.
func (b *Batch) merge(td ptrace.Traces, r *Recognizer) {
	if !b.haveParents(td) {
		return
	}
	t := b.tree(td, r)
	order, depths := make([]int, len(b.Calls)), make([]int, len(b.Calls))
	for i := range b.Calls {
		order[i], depths[i] = i, t.depth(b.Calls[i].ToolCall)
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(depths[a], depths[b]) })

	into := make([]int, len(b.Calls)) // the call that another became part of
	done := make([]bool, len(b.Calls))
	for _, i := range order {
		into[i] = i
		if outer, ok := b.outer(t, i); ok && done[outer] {
			into[i] = into[outer]
			b.Calls[into[i]].absorb(&b.Calls[i])
		}
		done[i] = true
	}
	b.dropMerged(into)
}

func (b *Batch) dropMerged(into []int) {
	outer := make([]pcommon.SpanID, len(into))
	for i := range into {
		outer[i] = b.Calls[into[i]].SpanID
	}
	kept := b.Calls[:0]
	for i, call := range b.Calls {
		if into[i] == i {
			kept = append(kept, call)
			continue
		}
		why := "reports the same call as span " + outer[i].String()
		b.Skipped = append(b.Skipped, Skipped{call.At, call.SpanID, why})
	}
	b.Calls = kept
}

// outer finds the call that call i reports again, on the way up to the root.
func (b *Batch) outer(t tree, i int) (int, bool) {
	inner := b.Calls[i].ToolCall
	belowAgent := false
	parent := inner.ParentSpanID
	for range maxAncestors {
		n, ok := t[spanKey{inner.TraceID, parent}]
		if !ok {
			return 0, false
		}
		if n.call >= 0 && n.call != i {
			return n.call, sameCall(b.Calls[n.call].ToolCall, inner, belowAgent)
		}
		belowAgent = belowAgent || n.agent
		parent = n.parent
	}
	return 0, false
}

// depth is the number of spans above the call in this batch.
func (t tree) depth(call *ToolCall) int {
	parent := call.ParentSpanID
	for depth := range maxAncestors {
		n, ok := t[spanKey{call.TraceID, parent}]
		if !ok {
			return depth
		}
		parent = n.parent
	}
	return maxAncestors
}

// sameCall tells a second report of a call from a call inside a call (D32).
// Without call ids the same tool of the same instrumentation is a recursion,
// and so is one that an agent below the outer call made.
func sameCall(outer, inner *ToolCall, belowAgent bool) bool {
	sameTool := outer.Tool == inner.Tool
	secondHand := outer.Scope != inner.Scope || inner.MCP
	if outer.CallID != "" && inner.CallID != "" {
		return outer.CallID == inner.CallID && (sameTool || secondHand)
	}
	return sameTool && outer.Tool != "" && secondHand && !belowAgent
}

// absorb fills what the outer call does not have. The call id is not taken
// over: the action's id must not depend on what came in the same batch (D13).
func (c *Call) absorb(inner *Call) {
	c.Merged = append(append(c.Merged, inner.At), inner.Merged...)
	if c.Arguments.State == NotCaptured && inner.Arguments.State == Present {
		c.Arguments = inner.Arguments
		c.takeSource(fieldArguments, inner)
	}
	if c.Result.State == NotCaptured && inner.Result.State == Present {
		c.Result = inner.Result
		c.takeSource(fieldResult, inner)
	}
	if c.Outcome == Unknown && inner.Outcome != Unknown {
		c.Outcome = inner.Outcome
		c.takeSource(fieldOutcome, inner)
	}
	for _, f := range []struct {
		field      field
		into, from *string
	}{
		{fieldTool, &c.Tool, &inner.Tool},
		{fieldAgent, &c.Agent, &inner.Agent},
		{fieldSession, &c.Session, &inner.Session},
		{fieldWorkflow, &c.Workflow, &inner.Workflow},
		{fieldMCPSession, &c.MCPSession, &inner.MCPSession},
		{fieldMCPServer, &c.MCPServer, &inner.MCPServer},
	} {
		if *f.into == "" && *f.from != "" {
			*f.into = *f.from
			c.takeSource(f.field, inner)
		}
	}
}

// takeSource says which span or record of the batch supplied the field.
func (c *Call) takeSource(f field, inner *Call) {
	from := " of span " + inner.SpanID.String()
	if inner.SpanID.IsEmpty() || inner.SpanID == c.SpanID {
		from = " of " + inner.SpanName
	}
	c.sourced(f, inner.Sources[f]+from)
}
