package dialect

import (
	"bytes"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Complete returns the batch with agent and session taken from trace context,
// as the ledger will take them (D31): of the contexts of the same trace whose
// interval contains the start of the call, the one that started last. For
// tools that show one input; a processor records calls as they stand.
func (b Batch) Complete() Batch {
	contexts := byTrace(b.Contexts)
	b.Calls = slices.Clone(b.Calls)
	for i := range b.Calls {
		own := *b.Calls[i].ToolCall
		call := &own
		b.Calls[i].ToolCall = call
		candidates := contexts[call.TraceID]
		call.complete(fieldAgent, &call.Agent, candidates, func(c *Context) string { return c.Agent })
		call.complete(fieldSession, &call.Session, candidates, func(c *Context) string { return c.Session })
		if call.Agent == "" && serviceIsAgent(call.Dialect) && call.ServiceName != "" {
			call.Agent = call.ServiceName
			call.sourced(fieldAgent, call.Dialect+":resource:service.name")
		}
	}
	return b
}

// byTrace sorts contexts so that the first that fits is the one meant.
func byTrace(contexts []Context) map[pcommon.TraceID][]*Context {
	sorted := map[pcommon.TraceID][]*Context{}
	for i := range contexts {
		c := &contexts[i]
		sorted[c.TraceID] = append(sorted[c.TraceID], c)
	}
	for _, list := range sorted {
		slices.SortStableFunc(list, compareContexts)
	}
	return sorted
}

// compareContexts puts the one that started last first, then the one that
// ended first, then by span id: two that cover the same call never depend on
// the order they came in.
func compareContexts(a, b *Context) int {
	switch {
	case a.Start != b.Start && a.Start > b.Start, a.Start == b.Start && a.End < b.End:
		return -1
	case a.Start != b.Start, a.End != b.End:
		return 1
	default:
		return bytes.Compare(a.SpanID[:], b.SpanID[:])
	}
}

func (c *ToolCall) complete(f field, into *string, from []*Context, read func(*Context) string) {
	if *into != "" {
		return
	}
	for _, context := range from {
		text := read(context)
		if text == "" || context.SpanID == c.SpanID || c.Start < context.Start || c.Start > context.End {
			continue
		}
		*into = text
		c.sourced(f, "context of span "+context.SpanID.String())
		return
	}
}

func serviceIsAgent(name string) bool {
	return slices.ContainsFunc(spanDialects, func(d *spanDialect) bool {
		return d.Name == name && d.serviceIsAgent
	})
}
