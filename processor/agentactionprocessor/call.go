package agentactionprocessor

import (
	"math"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// call is a tool call of any dialect, or one of VerifiedActions.
type call struct {
	*dialect.ToolCall
	// verified is the type of a verified action; empty for a dialect's call.
	verified verifiedactions.Type
	// reference is the reference id of a receipt.
	reference string
	// traceText is the trace id in hex, once somebody asked for it.
	traceText string
	// missed says why an argument that was read last is not there, though it
	// was sent. Who reads arguments sets it to nil before.
	missed error
}

func (c *call) trace() string {
	if c.traceText == "" {
		c.traceText = c.TraceID.String()
	}
	return c.traceText
}

// ofSpan is a dialect's call with the reference id of the receipt that a
// receiver made its span of. One that is no id is as good as none.
func ofSpan(found *dialect.ToolCall, attributes pcommon.Map) call {
	c := call{ToolCall: found}
	reference, ok := attributes.Get(verifiedactions.ReferenceKey)
	if ok && reference.Type() == pcommon.ValueTypeStr && engine.CheckOpaque("reference_id", reference.Str()) == nil {
		c.reference = reference.Str()
	}
	return c
}

// actionID is decision D13: only what stands on the span or record itself
// makes it. It is empty when nothing does.
func (c *call) actionID() string {
	if c.reference != "" {
		return c.reference
	}
	run := c.Session
	if !c.TraceID.IsEmpty() {
		run = c.trace()
	}
	// A call id that leaves no room for its run is no use as an id.
	// One with characters that were lost would make one id of several calls.
	if c.CallID != "" && !replaced(c.CallID) && !replaced(run) && run != "" && len(run)+1+len(c.CallID) <= engine.MaxOpaque {
		return run + "-" + c.CallID
	}
	if c.TraceID.IsEmpty() || c.SpanID.IsEmpty() {
		return ""
	}
	return c.trace() + "-" + c.SpanID.String()
}

// startedNanos is the start of the call, else when it was observed; 0 for neither.
func (c *call) startedNanos() pcommon.Timestamp {
	if c.Start != 0 {
		return c.Start
	}
	return c.Observed
}

// started is the start of the call as the ledger finds its agent by (decision D31).
func (c *call) started() int64 {
	if c.Start > math.MaxInt64 {
		return 0
	}
	return int64(c.Start)
}

// fromVerified is a verified action as a call of the span or record that carries it.
func fromVerified(carrier *dialect.ToolCall, payload *verifiedactions.Payload, a *verifiedactions.Action) call {
	made := *carrier
	made.Tool = a.ToolName()
	made.Arguments = dialect.Captured{State: dialect.Present, Value: a.Fields}
	made.Outcome = verifiedOutcome(a.Status)
	if payload.SessionID != "" {
		made.Session = payload.SessionID
	}
	if !payload.SentAt.IsZero() && payload.SentAt.UnixNano() > 0 {
		made.Start = pcommon.NewTimestampFromTime(payload.SentAt)
	}
	return call{ToolCall: &made, verified: a.Type, reference: a.ReferenceID}
}

// verifiedDialect is what metrics and tools call VerifiedActions among the dialects.
const verifiedDialect = "verified_actions"

func verifiedOutcome(status string) dialect.Outcome {
	switch engine.Fold(status) {
	case "success", "ok", "completed":
		return dialect.Success
	case "error", "failed", "failure", "timeout":
		return dialect.Error
	}
	return dialect.Unknown
}
