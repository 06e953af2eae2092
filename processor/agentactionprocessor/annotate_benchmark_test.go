package agentactionprocessor

import (
	"fmt"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/contexts/ottlspan"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/ottl/ottlfuncs"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// plainSpans are spans of an HTTP service: nothing in them is an agent's.
func plainSpans(spans, attributes int) ptrace.Traces {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	scope.Scope().SetName("example.com/http")
	for i := range spans {
		span := scope.Spans().AppendEmpty()
		span.SetName("GET /orders/{id}")
		span.SetTraceID(pcommon.TraceID{1, byte(i >> 8), byte(i)})
		span.SetSpanID(pcommon.SpanID{2, byte(i >> 8), byte(i)})
		for j := range attributes {
			span.Attributes().PutStr(fmt.Sprintf("http.attribute.%d", j), "value")
		}
	}
	return td
}

func BenchmarkTracesWithoutCalls(b *testing.B) {
	const spans = 1000
	p := benchmarkAnnotator(b)
	td := plainSpans(spans, 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.traces(b.Context(), td); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
}

func BenchmarkTracesWithCalls(b *testing.B) {
	p := benchmarkAnnotator(b)
	benchmarkCalls(b, func(td ptrace.Traces) error {
		_, err := p.traces(b.Context(), td)
		return err
	})
}

// BenchmarkSameWritesByOTTL writes what the rule of BenchmarkTracesWithCalls
// writes with statements of OTTL, as the transform processor runs them: the
// measure for the cost of a rule. It recognises nothing and checks nothing.
func BenchmarkSameWritesByOTTL(b *testing.B) {
	parser, err := ottlspan.NewParser(ottlfuncs.StandardFuncs[spanContext](), componenttest.NewNopTelemetrySettings(), ottlspan.EnablePathContextNames())
	if err != nil {
		b.Fatal(err)
	}
	statements, err := parser.ParseStatements([]string{
		`set(span.attributes["countersign.action_id"], Concat([span.trace_id.string, span.attributes["gen_ai.tool.call.id"]], "-")) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.contract_id"], "refund_workflow") where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.agent_id"], span.attributes["gen_ai.agent.name"]) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.subject_id"], ParseJSON(span.attributes["gen_ai.tool.call.arguments"])["order_id"]) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.subject_kind"], "order") where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.requested_at"], FormatTime(span.start_time, "%Y-%m-%dT%H:%M:%SZ")) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.started_nanos"], span.start_time_unix_nano) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.params"], ParseJSON(span.attributes["gen_ai.tool.call.arguments"])) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.trace_id"], span.trace_id.string) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.span_id"], span.span_id.string) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.tool"], span.attributes["gen_ai.tool.name"]) where span.attributes["gen_ai.tool.name"] == "refund_order"`,
		`set(span.attributes["countersign.reported_outcome"], "success") where span.attributes["gen_ai.tool.name"] == "refund_order" and span.status.code != STATUS_CODE_ERROR`,
	})
	if err != nil {
		b.Fatal(err)
	}
	sequence := ottlspan.NewStatementSequence(statements, componenttest.NewNopTelemetrySettings())
	benchmarkCalls(b, func(td ptrace.Traces) error {
		for _, resource := range td.ResourceSpans().All() {
			for _, scope := range resource.ScopeSpans().All() {
				for _, span := range scope.Spans().All() {
					tc := ottlspan.NewTransformContext(resource, scope, span)
					err := sequence.Execute(b.Context(), tc)
					tc.Close()
					if err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// benchmarkCalls runs over batches of refund calls that nobody has seen before.
func benchmarkCalls(b *testing.B, process func(ptrace.Traces) error) {
	b.Helper()
	const spans = 1000
	made := ptrace.NewTraces()
	scope := made.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i := range spans {
		span := scope.Spans().AppendEmpty()
		refundSpan(span, fmt.Sprintf("call_%d", i))
		span.SetSpanID(pcommon.SpanID{1, byte(i >> 8), byte(i)})
	}
	fresh := make([]ptrace.Traces, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		if len(fresh) == 0 {
			b.StopTimer()
			for range cap(fresh) {
				td := ptrace.NewTraces()
				made.CopyTo(td)
				fresh = append(fresh, td)
			}
			b.StartTimer()
		}
		td := fresh[len(fresh)-1]
		fresh = fresh[:len(fresh)-1]
		if err := process(td); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
}

func BenchmarkLogsWithoutCalls(b *testing.B) {
	const entries = 1000
	p := benchmarkAnnotator(b)
	ld := plog.NewLogs()
	scope := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for range entries {
		entry := scope.LogRecords().AppendEmpty()
		entry.Body().SetStr("GET /orders/10231 200 12ms")
		for j := range 10 {
			entry.Attributes().PutStr(fmt.Sprintf("http.attribute.%d", j), "value")
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.logs(b.Context(), ld); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/record")
}

func benchmarkAnnotator(b *testing.B) *annotator {
	b.Helper()
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{refundRule()}
	p, err := newBareAnnotator(config)
	if err != nil {
		b.Fatal(err)
	}
	return p
}
