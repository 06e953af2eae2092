// An agent as its users write them: the AI SDK with a refund tool, and OpenTelemetry JS that sends traces to
// OTEL_EXPORTER_OTLP_ENDPOINT. Nothing of Countersign is in it. The model is scripted, so that no key is needed.
import { NodeTracerProvider, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-node';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { generateText, stepCountIs, tool } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { z } from 'zod';

const [order, amount] = process.argv.slice(2);

const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'support-desk' }),
  spanProcessors: [new SimpleSpanProcessor(new OTLPTraceExporter())],
});
provider.register();

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 10, text: 10, reasoning: 0 },
};
const steps = [
  {
    content: [{ type: 'tool-call', toolCallId: `call_${order}`, toolName: 'refund_order', input: JSON.stringify({ order_id: order, amount: Number(amount) }) }],
    finishReason: { unified: 'tool-calls', raw: 'tool_calls' }, usage, warnings: [],
  },
  {
    content: [{ type: 'text', text: `I have refunded ${order}.` }],
    finishReason: { unified: 'stop', raw: 'stop' }, usage, warnings: [],
  },
];

const { text } = await generateText({
  model: new MockLanguageModelV3({ doGenerate: async () => steps.shift() }),
  prompt: `Please refund my order ${order}.`,
  stopWhen: stepCountIs(3),
  tools: {
    refund_order: tool({
      description: 'Refund an order',
      inputSchema: z.object({ order_id: z.string(), amount: z.number() }),
      execute: async () => ({ refunded: true }),
    }),
  },
  experimental_telemetry: { isEnabled: true, functionId: 'support-agent' },
});

await provider.shutdown();
console.log(text);
