package dialect

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// httpSpan is what most spans of an agent's traces are: a client request.
func httpSpan() (pcommon.Resource, pcommon.InstrumentationScope, ptrace.Span) {
	td := ptrace.NewTraces()
	resource := td.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "support-bot")
	scope := resource.ScopeSpans().AppendEmpty()
	scope.Scope().SetName("go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp")
	span := scope.Spans().AppendEmpty()
	span.SetName("POST")
	span.SetKind(ptrace.SpanKindClient)
	attrs := span.Attributes()
	attrs.PutStr("http.request.method", "POST")
	attrs.PutStr("url.full", "https://api.example.com/v1/refunds")
	attrs.PutStr("server.address", "api.example.com")
	attrs.PutInt("server.port", 443)
	attrs.PutInt("http.response.status_code", 200)
	attrs.PutStr("network.protocol.version", "1.1")
	attrs.PutStr("user_agent.original", "python-httpx/0.27")
	attrs.PutInt("http.request.body.size", 120)
	return resource.Resource(), scope.Scope(), span
}

// chatSpan is a model call, whose attributes look most like a tool's.
func chatSpan() (pcommon.Resource, pcommon.InstrumentationScope, ptrace.Span) {
	resource, scope, span := httpSpan()
	scope.SetName("opentelemetry.instrumentation.openai")
	span.SetName("chat gpt-4o")
	attrs := span.Attributes()
	attrs.Clear()
	for _, key := range []string{
		"gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.system", "gen_ai.request.model", "gen_ai.response.model",
		"gen_ai.response.id", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.conversation.id", "session.id",
	} {
		attrs.PutStr(key, "chat")
	}
	return resource, scope, span
}

func BenchmarkSpanNotATool(b *testing.B) {
	r := everything(b)
	for name, make := range map[string]func() (pcommon.Resource, pcommon.InstrumentationScope, ptrace.Span){"http": httpSpan, "chat": chatSpan} {
		resource, scope, span := make()
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := r.Span(resource, scope, span); ok {
					b.Fatal("no tool call")
				}
			}
		})
	}
}

func BenchmarkRecordNotATool(b *testing.B) {
	r := everything(b)
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr("request served")
	record.Attributes().PutStr("http.request.method", "POST")
	record.Attributes().PutInt("http.response.status_code", 200)
	b.ReportAllocs()
	for b.Loop() {
		if len(r.Logs(ld).Calls) > 0 {
			b.Fatal("a request's record is no tool call")
		}
	}
}

// TestSpanThatIsNoToolCallCostsNoMemory keeps what the benchmarks show.
func TestSpanThatIsNoToolCallCostsNoMemory(t *testing.T) {
	r := everything(t)
	for _, make := range []func() (pcommon.Resource, pcommon.InstrumentationScope, ptrace.Span){httpSpan, chatSpan} {
		resource, scope, span := make()
		if allocs := testing.AllocsPerRun(100, func() {
			r.Span(resource, scope, span)
			r.Agent(resource, scope, span)
		}); allocs != 0 {
			t.Errorf("%s: %v allocations, expected none", span.Name(), allocs)
		}
	}
}

func BenchmarkSpanTool(b *testing.B) {
	r := everything(b)
	for _, name := range []string{
		"claude-code-traces", "langfuse", "vercel-ai-v6", "google-adk", "strands", "langsmith-otel",
		"traceloop-langchain-py", "openinference-langchain-py", "pydantic-ai-v5", "dify", "n8n", "genai-semconv",
	} {
		benchmarkFirstCall(b, r, sampleTraces(b, name))
	}
	benchmarkFirstCall(b, r, tracesOf(b, testSpan{name: "send_refund", attrs: object{
		"agent.action.type": "tool_call", "agent.tool.name": "send_refund", "agent.id": "support-agent",
		"agent.tool.parameters": `{"order_id":"A-1001","amount":12.5}`,
	}}))
}

func benchmarkFirstCall(b *testing.B, r *Recognizer, td ptrace.Traces) {
	first := r.Traces(td).Calls[0]
	scopeSpans := td.ResourceSpans().At(first.At.Resource).ScopeSpans().At(first.At.Scope)
	resource, scope, span := td.ResourceSpans().At(first.At.Resource).Resource(), scopeSpans.Scope(), scopeSpans.Spans().At(first.At.Item)
	b.Run(first.Dialect, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, ok := r.Span(resource, scope, span); !ok {
				b.Fatal("not recognised")
			}
		}
	})
}
