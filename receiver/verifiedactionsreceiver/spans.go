package verifiedactionsreceiver

import (
	"crypto/sha256"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/receiver/verifiedactionsreceiver/internal/aevs"
)

// Domains keep ids of one kind from being those of another.
const (
	traceDomain   = "countersign verified_actions trace v1"
	receiptDomain = "countersign verified_actions receipt v1"
	actionDomain  = "countersign verified_actions action v1"
)

// digest hashes parts that hold no zero byte: ids with control characters are refused.
func digest(domain string, parts ...string) [sha256.Size]byte {
	text := []byte(domain)
	for _, part := range parts {
		text = append(append(text, 0), part...)
	}
	return sha256.Sum256(text)
}

// traceID is that of the session, so that all of a session is one trace; what
// has no session is a trace of its own.
func traceID(sessionID, referenceID string) pcommon.TraceID {
	parts := []string{sessionID}
	if sessionID == "" {
		parts = append(parts, referenceID)
	}
	sum := digest(traceDomain, parts...)
	return pcommon.TraceID(sum[:16])
}

func spanID(domain, sessionID, referenceID string) pcommon.SpanID {
	sum := digest(domain, sessionID, referenceID)
	return pcommon.SpanID(sum[:8])
}

// receiptScope is the instrumentation scope of spans made of receipts. It is
// not this package's: what stands under it was said by the SDK.
const receiptScope = "aevs"

// receiptTraces makes one span of each receipt, in order, grouped by agent and SDK.
func receiptTraces(keyID string, items []*item) ptrace.Traces {
	td := ptrace.NewTraces()
	var spans ptrace.SpanSlice
	var last *item
	for _, it := range items {
		if last == nil || last.agent != it.agent || last.receipt.SDKVersion != it.receipt.SDKVersion {
			resource := td.ResourceSpans().AppendEmpty()
			resource.Resource().Attributes().PutStr("service.name", it.agent)
			scope := resource.ScopeSpans().AppendEmpty()
			scope.Scope().SetName(receiptScope)
			scope.Scope().SetVersion(it.receipt.SDKVersion)
			spans = scope.Spans()
		}
		receiptSpan(spans.AppendEmpty(), keyID, it)
		last = it
	}
	return td
}

// maxAttributes is the largest number of attributes of a span.
const maxAttributes = 26

func receiptSpan(span ptrace.Span, keyID string, it *item) {
	r := it.receipt
	span.SetTraceID(traceID(r.SessionID, r.ReferenceID))
	span.SetSpanID(spanID(receiptDomain, r.SessionID, r.ReferenceID))
	span.SetName("execute_tool " + r.ToolName)
	span.SetKind(ptrace.SpanKindInternal)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(r.Started))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(r.Ended))

	a := span.Attributes()
	a.EnsureCapacity(maxAttributes)
	a.PutStr("gen_ai.operation.name", "execute_tool")
	a.PutStr("gen_ai.tool.name", r.ToolName)
	putText(a, "gen_ai.conversation.id", r.SessionID)
	a.PutStr("gen_ai.agent.id", r.AgentID)
	a.PutStr("gen_ai.agent.name", it.agent)
	a.PutStr(verifiedactions.ReferenceKey, r.ReferenceID)
	putText(a, "gen_ai.tool.call.arguments", string(r.Inputs))
	putText(a, "gen_ai.tool.call.result", aevs.Text(r.Output))
	if r.Status == aevs.Failure {
		a.PutStr("error.type", "_OTHER") // the receipt names no type
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(r.Error)
	}
	putReceipt(a, keyID, it)
}

// putReceipt writes what only receipts have.
func putReceipt(a pcommon.Map, keyID string, it *item) {
	r := it.receipt
	a.PutStr("aevs.key_id", keyID)
	a.PutInt("aevs.seq", int64(r.Seq))
	a.PutStr("aevs.receipt_hash", r.Hash)
	a.PutStr("aevs.prev_hash", r.PrevHash)
	a.PutStr("aevs.chain_status", string(it.standing.Status))
	a.PutStr("aevs.receipt_visibility", r.Visibility)
	a.PutInt("aevs.duration_ms", r.DurationMS)
	putText(a, "aevs.input_hash", r.InputHash)
	putText(a, "aevs.output_hash", r.OutputHash)
	if r.Truncated {
		a.PutBool("aevs.truncated", true)
	}
	putText(a, "aevs.run_id", r.RunID)
	putText(a, "aevs.parent_run_id", r.ParentRunID)
	putText(a, "aevs.invocation_id", r.InvocationID)
	putText(a, "aevs.framework", r.Framework)
	putText(a, "aevs.framework_version", r.FrameworkVersion)
}

func putText(a pcommon.Map, key, text string) {
	if text != "" {
		a.PutStr(key, text)
	}
}
