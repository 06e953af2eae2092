// A tool call as OpenTelemetry's GenAI conventions say it, with nothing but OpenTelemetry JS: what an agent
// without a framework does. Traces go to OTEL_EXPORTER_OTLP_ENDPOINT.
import { SpanKind, trace } from '@opentelemetry/api';
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';

const [order, amount] = process.argv.slice(2);
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const tracer = trace.getTracer('desk');

await tracer.startActiveSpan('invoke_agent desk', {
  attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.agent.name': 'desk', 'gen_ai.conversation.id': 'chat-1' },
}, async (agent) => {
  tracer.startActiveSpan('execute_tool refund_order', {
    kind: SpanKind.INTERNAL,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'refund_order',
      'gen_ai.tool.call.id': `call_${order}`,
      'gen_ai.tool.call.arguments': JSON.stringify({ order_id: order, amount: Number(amount) }),
    },
  }, (span) => span.end());
  agent.end();
});

await provider.shutdown();
console.log(`I have refunded ${order}.`);
