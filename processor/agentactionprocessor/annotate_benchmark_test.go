package agentactionprocessor

import (
	"fmt"
	"testing"

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
	const spans = 1000
	p := benchmarkAnnotator(b)
	made := ptrace.NewTraces()
	scope := made.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i := range spans {
		refundSpan(scope.Spans().AppendEmpty(), fmt.Sprintf("call_%d", i))
	}
	batches := make([]ptrace.Traces, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		if len(batches) == 0 {
			b.StopTimer()
			for range cap(batches) {
				td := ptrace.NewTraces()
				made.CopyTo(td)
				batches = append(batches, td)
			}
			b.StartTimer()
		}
		td := batches[len(batches)-1]
		batches = batches[:len(batches)-1]
		if _, err := p.traces(b.Context(), td); err != nil {
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
