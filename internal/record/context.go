package record

import (
	"errors"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
)

// Context is an agent-like span: who acted in which interval of a trace (decision D31).
type Context struct {
	// Tenant is empty where the processor was given none; the exporter's own holds then.
	Tenant string
	// TraceID and SpanID are lowercase hex.
	TraceID, SpanID      string
	StartNanos, EndNanos int64
	// Agent or Session may be empty, never both.
	Agent, Session string
}

// PutContext says on a span who acts in it.
func PutContext(attributes pcommon.Map, tenant, agent, session string) {
	m := attributes.PutEmptyMap(ContextKey)
	m.EnsureCapacity(3)
	putText(m, tenantField, tenant)
	putText(m, agentField, agent)
	putText(m, sessionField, session)
}

var (
	errContextNames = errors.New("neither agent nor session is set")
	errContextIDs   = errors.New("the span has no trace id or no span id")
	errContextTimes = errors.New("the span ends before it starts, or has a time after the year 2262")
)

func readContext(m pcommon.Map, span ptrace.Span) (Context, error) {
	var r reader
	c := Context{
		TraceID:    span.TraceID().String(),
		SpanID:     span.SpanID().String(),
		StartNanos: int64(span.StartTimestamp()), // what does not fit is negative, and refused below
		EndNanos:   int64(span.EndTimestamp()),
	}
	for key, value := range m.All() {
		switch key {
		case tenantField:
			c.Tenant = r.text(key, value)
		case agentField:
			c.Agent = r.text(key, value)
		case sessionField:
			c.Session = r.text(key, value)
		}
	}
	if r.err != nil {
		return Context{}, r.err
	}
	return c, c.check()
}

func (c *Context) check() error {
	switch {
	case c.Agent == "" && c.Session == "":
		return errContextNames
	case c.TraceID == "" || c.SpanID == "":
		return errContextIDs
	case c.StartNanos < 0 || c.EndNanos < c.StartNanos:
		return errContextTimes
	}
	if c.Agent != "" {
		if err := engine.CheckOpaque(agentField, c.Agent); err != nil {
			return err
		}
	}
	if c.Session == "" {
		return nil
	}
	return engine.CheckOpaque(sessionField, c.Session)
}
