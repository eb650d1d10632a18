// The Vercel AI SDK with its telemetry, over the OpenTelemetry SDK for Node.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { NodeSDK, tracing } from "@opentelemetry/sdk-node";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const sdk = new NodeSDK({ spanProcessors: [new tracing.BatchSpanProcessor(new OTLPTraceExporter())] });
sdk.start();
const with_key = (apiKey) => createOpenAICompatible({ name: "house", baseURL: process.env.MODEL_URL, apiKey })("small-1");
const telemetry = {
  isEnabled: true,
  functionId: "answer question",
  metadata: { sessionId: "conversation-1", userId: "ada" },
};
const population = tool({
  description: "How many people live in a city",
  inputSchema: z.object({ city: z.string() }),
  execute: async () => 2100000,
});
await generateText({
  model: with_key("right"),
  system: "Be brief.",
  prompt: "What is the capital of France?",
  tools: { population },
  stopWhen: stepCountIs(3),
  experimental_telemetry: telemetry,
});
try {
  await generateText({ model: with_key("wrong"), prompt: "What is the capital of France?", maxRetries: 0, experimental_telemetry: telemetry });
} catch (error) {
  console.log(error.name);
}
await sdk.shutdown();
