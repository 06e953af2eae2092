package processors

import (
	"context"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/countersign-otel/countersign/processor/agentactionprocessor"
)

// What both processors are told to do: write on a refund's span the action
// that it is. The transform processor is asked in its cheapest way: one
// condition for all statements, the arguments parsed once, and their text
// copied as it came. It recognises one way of writing a tool call, and checks
// nothing.
var settings = map[string]map[string]any{
	"agent_action": {"rules": []any{map[string]any{
		"tool": "refund_order", "contract": "refund_workflow", "subject_id": `ToolArgument("order_id")`, "subject_kind": "order",
	}}},
	"transform": {"trace_statements": []any{map[string]any{
		"context":    "span",
		"conditions": []any{`span.attributes["gen_ai.operation.name"] == "execute_tool" and span.attributes["gen_ai.tool.name"] == "refund_order"`},
		"statements": []any{
			`set(span.attributes["countersign.action_id"], Concat([span.trace_id.string, span.attributes["gen_ai.tool.call.id"]], "-"))`,
			`set(span.attributes["countersign.contract_id"], "refund_workflow")`,
			`set(span.attributes["countersign.agent_id"], span.attributes["gen_ai.agent.name"])`,
			`set(span.cache["arguments"], ParseJSON(span.attributes["gen_ai.tool.call.arguments"]))`,
			`set(span.attributes["countersign.subject_id"], span.cache["arguments"]["order_id"])`,
			`set(span.attributes["countersign.subject_kind"], "order")`,
			`set(span.attributes["countersign.requested_at"], FormatTime(span.start_time, "%Y-%m-%dT%H:%M:%SZ"))`,
			`set(span.attributes["countersign.started_nanos"], span.start_time_unix_nano)`,
			`set(span.attributes["countersign.params"], span.attributes["gen_ai.tool.call.arguments"])`,
			`set(span.attributes["countersign.trace_id"], span.trace_id.string)`,
			`set(span.attributes["countersign.span_id"], span.span_id.string)`,
			`set(span.attributes["countersign.tool"], span.attributes["gen_ai.tool.name"])`,
			`set(span.attributes["countersign.reported_outcome"], "success") where span.status.code != STATUS_CODE_ERROR`,
		},
	}}},
}

// BenchmarkToolSpan compares what a tool span costs, in batches of a thousand.
// The processors take turns, so that what else the machine does meets both.
func BenchmarkToolSpan(b *testing.B) {
	batch := refunds(1000)
	ours := start(b, agentactionprocessor.NewFactory(), settings["agent_action"], batch)
	theirs := start(b, transformprocessor.NewFactory(), settings["transform"], batch)
	var a, t cost
	for b.Loop() {
		a.add(b, ours, batch)
		t.add(b, theirs, batch)
	}
	spans := float64(b.N) * turn * float64(batch.SpanCount())
	b.ReportMetric(float64(a.cpu.Nanoseconds())/spans, "agent-action-cpu-ns/span")
	b.ReportMetric(float64(t.cpu.Nanoseconds())/spans, "transform-cpu-ns/span")
	b.ReportMetric(float64(a.allocations)/spans, "agent-action-allocs/span")
	b.ReportMetric(float64(t.allocations)/spans, "transform-allocs/span")
	b.ReportMetric(float64(a.bytes)/spans, "agent-action-B/span")
	b.ReportMetric(float64(t.bytes)/spans, "transform-B/span")
	b.ReportMetric(float64(a.cpu)/float64(t.cpu), "cpu-ratio")
}

// turn is how many batches a processor gets before it is the other's turn.
const turn = 20

// cost is what a processor used so far.
type cost struct {
	cpu                time.Duration
	allocations, bytes uint64
}

// add hands over copies of a batch that nobody has seen before. Each turn ends
// with a collection, so that everybody pays for what they leave behind.
func (c *cost) add(b *testing.B, to consumer.Traces, batch ptrace.Traces) {
	b.Helper()
	fresh := make([]ptrace.Traces, turn)
	for i := range fresh {
		fresh[i] = ptrace.NewTraces()
		batch.CopyTo(fresh[i])
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	started := cpuTime(b)
	for _, td := range fresh {
		if err := to.ConsumeTraces(context.Background(), td); err != nil {
			b.Fatal(err)
		}
	}
	runtime.GC()
	c.cpu += cpuTime(b) - started
	runtime.ReadMemStats(&after)
	c.allocations += after.Mallocs - before.Mallocs
	c.bytes += after.TotalAlloc - before.TotalAlloc
}

// cpuTime is what this process has computed so far, the garbage collector's
// share with it. It holds still while other programs have the processor.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// start makes the processor and checks, with a batch, that it writes on every span.
func start(b *testing.B, factory processor.Factory, settings map[string]any, batch ptrace.Traces) consumer.Traces {
	b.Helper()
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(settings).Unmarshal(config); err != nil {
		b.Fatal(err)
	}
	if v, ok := config.(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			b.Fatal(err)
		}
	}
	made := func(next consumer.Traces) consumer.Traces {
		p, err := factory.CreateTraces(b.Context(), processortest.NewNopSettings(factory.Type()), config, next)
		if err != nil {
			b.Fatal(err)
		}
		return p
	}
	td := ptrace.NewTraces()
	batch.CopyTo(td)
	sink := new(consumertest.TracesSink)
	if err := made(sink).ConsumeTraces(b.Context(), td); err != nil {
		b.Fatal(err)
	}
	for i, span := range sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		before := batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i).Attributes().Len()
		if span.Attributes().Len() == before {
			b.Fatalf("nothing is written on span %s", span.SpanID())
		}
	}
	return made(consumertest.NewNop())
}

// refunds are tool calls as the GenAI conventions write them, each below a span of its agent.
func refunds(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	scope := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty()
	for i := range n {
		span := scope.Spans().AppendEmpty()
		span.SetName("execute_tool refund_order")
		span.SetTraceID(pcommon.TraceID{1, byte(i >> 3)})
		span.SetSpanID(pcommon.SpanID{2, byte(i >> 8), byte(i)})
		span.SetParentSpanID(pcommon.SpanID{3})
		span.SetStartTimestamp(1790592120900000000)
		span.SetEndTimestamp(1790592122900000000)
		a := span.Attributes()
		a.PutStr("gen_ai.operation.name", "execute_tool")
		a.PutStr("gen_ai.tool.name", "refund_order")
		a.PutStr("gen_ai.tool.call.id", fmt.Sprintf("call_%d", i))
		a.PutStr("gen_ai.tool.call.arguments", `{"order_id":"order_10231","amount":180.50,"currency":"USD"}`)
		a.PutStr("gen_ai.agent.name", "whatsapp-support-agent")
	}
	return td
}
