package agentactionprocessor

import (
	"fmt"
	"syscall"
	"testing"
	"time"

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
	cpu := -cpuTime(b)
	for b.Loop() {
		if _, err := p.traces(b.Context(), td); err != nil {
			b.Fatal(err)
		}
	}
	report(b, cpu+cpuTime(b), spans, "span")
}

// report gives the cost of one of the items of a batch: as time passed, and as
// the processor's time, which holds still while other programs have it.
func report(b *testing.B, cpu time.Duration, items int, name string) {
	b.Helper()
	all := float64(b.N) * float64(items)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/all, "ns/"+name)
	b.ReportMetric(float64(cpu.Nanoseconds())/all, "cpu-ns/"+name)
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkTracesWithCalls has its measure in internal/benchpeers/processors:
// the transform processor with the same writes.
func BenchmarkTracesWithCalls(b *testing.B) {
	p := benchmarkAnnotator(b)
	benchmarkCalls(b, func(td ptrace.Traces) error {
		_, err := p.traces(b.Context(), td)
		return err
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
	cpu := -cpuTime(b)
	for b.Loop() {
		if _, err := p.logs(b.Context(), ld); err != nil {
			b.Fatal(err)
		}
	}
	report(b, cpu+cpuTime(b), entries, "record")
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

// BenchmarkLogsWithCalls has Claude Code's results of a tool, each with its decision.
func BenchmarkLogsWithCalls(b *testing.B) {
	const calls = 500
	config := NewDefaultConfig()
	config.Rules = []RuleConfig{{Tool: "refund_order", Contract: "refund_workflow", SubjectID: `ToolArgument("order_id")`}}
	p, err := newBareAnnotator(config)
	if err != nil {
		b.Fatal(err)
	}
	made := plog.NewLogs()
	scope := made.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for i := range calls {
		for _, event := range []string{"tool_decision", "tool_result"} {
			entry := scope.LogRecords().AppendEmpty()
			entry.Body().SetStr("claude_code." + event)
			entry.SetTimestamp(testStart)
			a := entry.Attributes()
			a.PutStr("session.id", "s")
			a.PutStr("tool_name", "refund_order")
			a.PutStr("tool_use_id", fmt.Sprintf("call_%d", i))
			a.PutStr("decision", "accept")
			a.PutStr("success", "true")
			a.PutStr("tool_input", `{"order_id":"order_10231","amount":180.50}`)
		}
	}
	cpu := time.Duration(0)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		ld := plog.NewLogs()
		made.CopyTo(ld)
		b.StartTimer()
		cpu -= cpuTime(b)
		if _, err := p.logs(b.Context(), ld); err != nil {
			b.Fatal(err)
		}
		cpu += cpuTime(b)
	}
	report(b, cpu, calls, "call")
}
