package agentactionprocessor

import (
	"context"
	"strings"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/countersign-otel/countersign/internal/record"
	"github.com/countersign-otel/countersign/processor/agentactionprocessor/dialect"
)

// traces annotates one batch of spans.
func (p *annotator) traces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	scan := newScanner(&p.metadata)
	scan.traces(td)
	found := p.recognizer.Traces(td)
	defer found.Release()
	if len(found.Calls) == 0 && len(found.Contexts) == 0 && len(scan.found) == 0 {
		p.counters.add(ctx, &tally{removed: int64(scan.stripped)})
		return td, nil
	}
	b := p.begin(ctx)
	b.removed = int64(scan.stripped)
	for i := range found.Calls {
		p.annotateSpan(b, td, &found.Calls[i])
	}
	for _, m := range scan.found {
		at := spanAt(td, m.Position)
		if m.marks&mayBeFact != 0 {
			b.annotateFact(at.span)
		}
		if m.marks&hasMetadata != 0 {
			p.annotateVerified(b, at)
		}
	}
	b.annotateContexts(td, found.Contexts)
	p.counters.add(ctx, &b.tally)
	return td, nil
}

// spanPlace is a span with what stands above it.
type spanPlace struct {
	resource ptrace.ResourceSpans
	scope    ptrace.ScopeSpans
	span     ptrace.Span
}

func spanAt(td ptrace.Traces, at dialect.Position) spanPlace {
	resource := td.ResourceSpans().At(at.Resource)
	scope := resource.ScopeSpans().At(at.Scope)
	return spanPlace{resource, scope, scope.Spans().At(at.Item)}
}

func (p *annotator) annotateSpan(b *batch, td ptrace.Traces, found *dialect.Call) {
	if strings.HasPrefix(found.Scope, ownScope) {
		return
	}
	at := spanAt(td, found.At)
	tc := ottlspan.NewTransformContext(at.resource, at.scope, at.span)
	defer tc.Close()
	b.scratch.call = ofSpan(found.ToolCall, at.span.Attributes())
	annotate(b, p.spanRules, tc, &b.scratch.call, at.span.Attributes())
}

// annotateVerified records the VerifiedActions that a span or its events carry.
func (p *annotator) annotateVerified(b *batch, at spanPlace) {
	calls, errs := p.metadata.callsOfSpan(at)
	b.reportMetadata(at.span.Attributes(), errs)
	if len(calls) == 0 {
		return
	}
	tc := ottlspan.NewTransformContext(at.resource, at.scope, at.span)
	defer tc.Close()
	for i := range calls {
		annotate(b, p.spanRules, tc, &calls[i], at.span.Attributes())
	}
}

// reportMetadata marks a carrier of metadata that does not read.
func (b *batch) reportMetadata(carrier pcommon.Map, errs []error) {
	for i, err := range errs {
		b.call(verifiedDialect, invalid)
		if i < maxReported {
			record.PutError(carrier, "verified actions: "+err.Error())
		}
	}
}

// maxReported bounds what hostile metadata makes us write on its span.
const maxReported = 8

// annotateContexts writes on agent-like spans who acts in them. Contexts come
// in the order of the spans that they were read from.
func (b *batch) annotateContexts(td ptrace.Traces, contexts []dialect.Context) {
	if len(contexts) == 0 || b.noTenant != nil {
		return
	}
	for _, resource := range td.ResourceSpans().All() {
		for _, scope := range resource.ScopeSpans().All() {
			own := isOwn(scope.Scope())
			for _, span := range scope.Spans().All() {
				c := &contexts[0]
				if span.SpanID() != c.SpanID || span.TraceID() != c.TraceID {
					continue
				}
				if !own {
					record.PutContext(span.Attributes(), b.tenant, c.Agent, c.Session)
					b.contexts++
				}
				if contexts = contexts[1:]; len(contexts) == 0 {
					return
				}
			}
		}
	}
}
