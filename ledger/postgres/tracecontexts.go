package postgres

import (
	"context"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/ledger"
)

var recordContexts = named("RecordContexts")

// RecordTraceContexts implements ledger.AgentSide.
func (t *tx) RecordTraceContexts(ctx context.Context, tenant string, contexts []ledger.TraceContext, now engine.Instant) error {
	contexts = firstContexts(contexts)
	if len(contexts) == 0 {
		return nil
	}
	if err := t.enter(ctx, tenant, now); err != nil {
		return err
	}
	n := len(contexts)
	traces, spans := make([]string, n), make([]string, n)
	starts, ends := make([]int64, n), make([]int64, n)
	agents, sessions := make([]*string, n), make([]*string, n)
	for i, c := range contexts {
		traces[i], spans[i], starts[i], ends[i] = c.TraceID, c.SpanID, c.StartNanos, c.EndNanos
		agents[i], sessions[i] = null(c.Agent), null(c.Session)
	}
	if _, err := t.execute(ctx, recordContexts, tenant, now, traces, spans, starts, ends, agents, sessions); err != nil {
		return err
	}
	completed, err := t.completeClaims(ctx, tenant, nil, traces)
	if err != nil {
		return err
	}
	var due []string
	for _, c := range completed {
		if c.wake {
			due = append(due, c.claimID)
		}
	}
	return t.makeDue(ctx, tenant, due, now, "action")
}

// firstContexts keeps the first context of each span, with texts that can be
// stored: names come from telemetry and hold what they please.
func firstContexts(contexts []ledger.TraceContext) []ledger.TraceContext {
	type key struct{ trace, span string }
	seen := make(map[key]bool, len(contexts))
	var first []ledger.TraceContext
	for _, c := range contexts {
		c.TraceID, c.SpanID, c.Agent, c.Session = printable(c.TraceID), printable(c.SpanID), printable(c.Agent), printable(c.Session)
		k := key{c.TraceID, c.SpanID}
		if !seen[k] {
			seen[k] = true
			first = append(first, c)
		}
	}
	return first
}
