package emit

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/engine"
	"github.com/countersign-otel/countersign/engine/report"
	"github.com/countersign-otel/countersign/ledger"
)

// spans adds the verdict span, in child mode with one child of zero length per
// check, so that a waterfall shows them.
func (w writer) spans(list ptrace.SpanSlice, i *item) {
	span := list.AppendEmpty()
	own := verdictTraceID(i)
	actionTrace, actionSpan := traceID(i.Action.Action.TraceID), spanID(i.Action.Action.SpanID)
	child := w.config.SpanMode == Child && !actionTrace.IsEmpty()
	if child {
		own = actionTrace
		span.SetParentSpanID(actionSpan)
	}
	span.SetTraceID(own)
	span.SetSpanID(deterministicSpanID(i, "verdict"))
	span.SetName("verify_action " + i.Run.Contract.ID)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetStartTimestamp(stamp(i.Action.Action.RequestedAt))
	span.SetEndTimestamp(stamp(max(i.Run.ComputedAt, i.Action.Action.RequestedAt)))
	if i.Run.Policy.Raw == engine.NotVerified {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(i.view.Summary.Headline)
	}
	attributes := span.Attributes()
	w.about(attributes, i)
	w.pair(attributes, i)
	attributes.PutStr("countersign.headline", i.view.Summary.Headline)
	putText(attributes, "countersign.action.trace_id", i.Action.Action.TraceID)
	putText(attributes, "countersign.action.span_id", i.Action.Action.SpanID)
	if !child {
		link(span, actionTrace, actionSpan, "action")
	}
	if i.Previous != nil && i.Previous.Status == ledger.Settled {
		was := *i
		was.Run = *i.Previous // its span was told with ids of its own verdicts
		trace := own
		if !child {
			trace = verdictTraceID(&was)
		}
		link(span, trace, deterministicSpanID(&was, "verdict"), "previous")
	}
	if !child {
		return
	}
	parent := span.SpanID() // span is not valid any more once the list has grown
	for n, check := range i.view.Checks {
		checkSpan(list.AppendEmpty(), i, own, parent, n, check)
	}
}

// link leads from the verdict to the action's span, or to that of the verdict it replaces.
func link(span ptrace.Span, trace pcommon.TraceID, id pcommon.SpanID, what string) {
	if trace.IsEmpty() || id.IsEmpty() {
		return
	}
	to := span.Links().AppendEmpty()
	to.SetTraceID(trace)
	to.SetSpanID(id)
	to.Attributes().PutStr("countersign.link", what)
}

func checkSpan(span ptrace.Span, i *item, trace pcommon.TraceID, parent pcommon.SpanID, n int, check report.Check) {
	span.SetTraceID(trace)
	span.SetParentSpanID(parent)
	span.SetSpanID(deterministicSpanID(i, "check "+strconv.Itoa(n)))
	span.SetName("check " + check.Code)
	span.SetKind(ptrace.SpanKindInternal)
	at := stamp(max(i.Run.ComputedAt, i.Action.Action.RequestedAt))
	span.SetStartTimestamp(at)
	span.SetEndTimestamp(at)
	attributes := span.Attributes()
	attributes.PutStr("countersign.check.section", string(check.Section))
	attributes.PutStr("countersign.check.code", check.Code)
	attributes.PutStr("countersign.check.description", check.Description)
	attributes.PutBool("countersign.check.ok", check.OK)
	switch value := check.Value.(type) {
	case string:
		attributes.PutStr("countersign.check.value", value)
	case map[string]any:
		attributes.PutStr("countersign.check.expected", fmt.Sprint(value["expected"]))
		attributes.PutStr("countersign.check.observed", fmt.Sprint(value["observed"]))
	}
	if check.Evidence != nil {
		attributes.PutStr("countersign.check.evidence", check.Evidence.RawRef)
	}
	if check.OK {
		return
	}
	span.Status().SetCode(ptrace.StatusCodeError)
	message := check.Description
	if check.Message != nil {
		message = *check.Message
	}
	span.Status().SetMessage(message)
}

// digest is the SHA-256 of a domain tag and parts, each ended by a zero byte,
// which none of them holds.
func digest(tag string, parts ...string) [32]byte {
	h := sha256.New()
	h.Write([]byte(tag))
	h.Write([]byte{0})
	for _, part := range parts {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return [32]byte(h.Sum(nil))
}

func hashes(i *item) (outcome, policy string) {
	return hex.EncodeToString(i.Run.Outcome.Hash[:]), hex.EncodeToString(i.Run.Policy.Hash[:])
}

// verdictTraceID is a function of the verdict pair: sending a verdict twice shows once.
func verdictTraceID(i *item) pcommon.TraceID {
	outcome, policy := hashes(i)
	sum := digest("countersign.verdict.trace.v1", outcome, policy)
	return pcommon.TraceID(sum[:16])
}

func deterministicSpanID(i *item, part string) pcommon.SpanID {
	outcome, policy := hashes(i)
	sum := digest("countersign.verdict.span.v1", outcome, policy, part)
	return pcommon.SpanID(sum[:8])
}

// eventID tells a repeated log event from a new one, which log records have no
// field for. A later run of the same verdict is another event.
func eventID(i *item, name, part string) string {
	outcome, policy := hashes(i)
	sum := digest("countersign.event.v1", i.Tenant, i.Run.ID, outcome, policy, name, part)
	return hex.EncodeToString(sum[:16])
}

// traceID and spanID read the action's ids; what is none is left empty.
func traceID(text string) pcommon.TraceID {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != 16 {
		return pcommon.TraceID{}
	}
	return pcommon.TraceID(decoded)
}

func spanID(text string) pcommon.SpanID {
	decoded, err := hex.DecodeString(text)
	if err != nil || len(decoded) != 8 {
		return pcommon.SpanID{}
	}
	return pcommon.SpanID(decoded)
}
