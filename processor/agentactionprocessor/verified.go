package agentactionprocessor

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/countersign-otel/countersign/internal/record/verifiedactions"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// metadataReader collects the verified actions of one span or log record, in order.
type metadataReader struct {
	keys    *metadataKeys
	carrier dialect.ToolCall
	calls   []call
	errs    []error
}

// carrierOfSpan is what a span says of every verified action on it.
func carrierOfSpan(at spanPlace) dialect.ToolCall {
	return dialect.ToolCall{
		Dialect: verifiedDialect,
		TraceID: at.span.TraceID(), SpanID: at.span.SpanID(), ParentSpanID: at.span.ParentSpanID(),
		SpanName: at.span.Name(), Scope: at.scope.Scope().Name(),
		Start: at.span.StartTimestamp(), End: at.span.EndTimestamp(),
	}
}

// carrierOfLog is the same of a log record.
func carrierOfLog(at logPlace) dialect.ToolCall {
	return dialect.ToolCall{
		Dialect: verifiedDialect,
		TraceID: at.entry.TraceID(), SpanID: at.entry.SpanID(),
		SpanName: at.entry.EventName(), Scope: at.scope.Scope().Name(),
		Start: at.entry.Timestamp(), Observed: at.entry.ObservedTimestamp(),
	}
}

// callsOfSpan are the verified actions on a span and its events, as calls of that span.
func (k *metadataKeys) callsOfSpan(at spanPlace) ([]call, []error) {
	r := metadataReader{keys: k, carrier: carrierOfSpan(at)}
	r.attributes(at.span.Attributes(), "")
	for _, event := range at.span.Events().All() {
		r.attributes(event.Attributes(), "")
	}
	return r.calls, r.errs
}

// callsOfLog are the verified actions on a log record and in its body.
func (k *metadataKeys) callsOfLog(at logPlace) ([]call, []error) {
	r := metadataReader{keys: k, carrier: carrierOfLog(at)}
	switch body := at.entry.Body(); body.Type() {
	case pcommon.ValueTypeStr:
		r.attributes(at.entry.Attributes(), body.Str())
		r.message(body.Str())
	case pcommon.ValueTypeMap:
		r.attributes(at.entry.Attributes(), "")
		r.bodyMap(body.Map())
	default:
		r.attributes(at.entry.Attributes(), "")
	}
	return r.calls, r.errs
}

// attributes reads metadata whose entries are attributes. The body of a log
// record may be the payload that its version attribute announces.
func (r *metadataReader) attributes(attributes pcommon.Map, body string) {
	if _, ok := attributes.Get(r.keys.Version); ok {
		if payload, ok := attributes.Get(r.keys.Payload); ok {
			body = payload.AsString()
		}
		if body != "" {
			r.payload(body, time.Time{})
		}
	}
	for _, key := range r.keys.messages {
		if message, ok := attributes.Get(key); ok {
			r.message(message.AsString())
		}
	}
}

// bodyMap reads a body that is metadata, or a chat message, as a structure.
func (r *metadataReader) bodyMap(body pcommon.Map) {
	sent := time.Time{}
	if at, ok := body.Get("timestamp"); ok {
		sent, _ = time.Parse(time.RFC3339Nano, at.AsString()) // without one: zero
	}
	r.metadata(body, sent)
	content, ok := body.Get("content")
	if !ok || content.Type() != pcommon.ValueTypeSlice {
		return
	}
	for _, item := range content.Slice().All() {
		if item.Type() != pcommon.ValueTypeMap {
			continue
		}
		kind, _ := item.Map().Get("type")
		metadata, ok := item.Map().Get("metadata")
		if ok && kind.AsString() == "metadata" && metadata.Type() == pcommon.ValueTypeMap {
			r.metadata(metadata.Map(), sent)
		}
	}
}

func (r *metadataReader) metadata(entries pcommon.Map, sent time.Time) {
	if _, ok := entries.Get(r.keys.Version); !ok {
		return
	}
	if payload, ok := entries.Get(r.keys.Payload); ok {
		r.payload(payload.AsString(), sent)
	}
}

func (r *metadataReader) message(text string) {
	payloads, errs := r.keys.FromMessage(text)
	r.errs = append(r.errs, errs...)
	for i := range payloads {
		r.take(&payloads[i])
	}
}

func (r *metadataReader) payload(text string, sent time.Time) {
	payload, err := verifiedactions.Parse(text)
	if err != nil {
		r.errs = append(r.errs, err)
		return
	}
	payload.SentAt = sent
	r.take(&payload)
}

func (r *metadataReader) take(payload *verifiedactions.Payload) {
	for i := range payload.Actions {
		r.calls = append(r.calls, fromVerified(&r.carrier, payload, &payload.Actions[i]))
	}
	for _, bad := range payload.Invalid {
		r.errs = append(r.errs, bad)
	}
}
