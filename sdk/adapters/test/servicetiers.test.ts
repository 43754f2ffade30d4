// Service tiers in each framework: a hold is at the dearest that a request can get, and the cost is that of the tier of the answer.
import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIProvider, Runner } from "@openai/agents";
import { generateText, streamText, wrapLanguageModel } from "ai";
import OpenAI from "openai";
import type { Session } from "@remit/sdk";
import { Prices } from "@remit/sdk/prices";
import { meteredMiddleware } from "@remit/adapters/ai";
import { MeteredCallbackHandler } from "@remit/adapters/langchain";
import { meteredModelProvider } from "@remit/adapters/openai-agents";
import { baseURL, newSession, settled } from "./reconcile.js";

(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

const prices = Prices.parse(JSON.stringify({
  x: { input_cost_per_token: 0, output_cost_per_token: 1e-3, output_cost_per_token_flex: 5e-4, input_cost_per_token_priority: 0, output_cost_per_token_priority: 3e-3, max_input_tokens: 1, max_output_tokens: 100 },
}));

type Api = "chat" | "responses" | "messages";
type Fetch = typeof globalThis.fetch;

const sse = (lines: readonly unknown[]) =>
  new Response(lines.map((line) => `data: ${typeof line === "string" ? line : JSON.stringify(line)}\n\n`).join(""), { headers: { "Content-Type": "text/event-stream" } });

// answered is an answer with one token of input and ten of output.
function answered(api: Api, service_tier: string | undefined, streamed: boolean): Response {
  const usage = { prompt_tokens: 1, completion_tokens: 10, total_tokens: 11 };
  if (api === "chat") {
    const chunk = (more: object) => ({ id: "x", object: "chat.completion.chunk", created: 1, model: "x", service_tier, ...more });
    const message = { role: "assistant", content: "x" };
    return streamed
      ? sse([chunk({ choices: [{ index: 0, delta: message }] }), chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }), chunk({ choices: [], usage }), "[DONE]"])
      : Response.json({ id: "x", object: "chat.completion", created: 1, model: "x", service_tier, usage, choices: [{ index: 0, message, finish_reason: "stop" }] });
  }
  const counts = { input_tokens: 1, output_tokens: 10, total_tokens: 11, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  if (api === "messages") {
    const said = { type: "message", id: "x", role: "assistant", model: "x", content: [{ type: "text", text: "x" }], stop_reason: "end_turn", usage: { ...counts, service_tier } };
    return streamed
      ? sse([{ type: "message_start", message: { ...said, content: [], stop_reason: null } }, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: counts }, { type: "message_stop" }])
      : Response.json(said);
  }
  const output = [{ type: "message", id: "m", role: "assistant", status: "completed", content: [{ type: "output_text", text: "x", annotations: [] }] }];
  const response = { id: "x", object: "response", created_at: 1, model: "x", status: "completed", output, usage: counts, service_tier };
  return streamed
    ? sse([{ type: "response.created", response: { ...response, status: "in_progress", output: [], usage: null, service_tier: "auto" } }, { type: "response.completed", response }])
    : Response.json(response);
}

type Make = (session: Session, fetch: Fetch, api: Api, asked: string | undefined, streamed: boolean) => Promise<unknown>;

const makes: Readonly<Record<string, Make>> = {
  ai: async (session, fetch, api, asked, streamed) => {
    const [openai, anthropic] = [createOpenAI({ baseURL, apiKey: "none", fetch }), createAnthropic({ baseURL, apiKey: "none", fetch })];
    const of = { chat: () => openai.chat("x"), responses: () => openai.responses("x"), messages: () => anthropic("x") };
    const model = wrapLanguageModel({ model: of[api](), middleware: meteredMiddleware(session, prices) });
    const providerOptions = asked === undefined ? {} : { openai: { serviceTier: asked } };
    const call = { model, prompt: "?", maxRetries: 0, maxOutputTokens: 10, providerOptions };
    return streamed ? streamText(call).text : generateText(call);
  },
  LangChain: async (session, fetch, api, asked, streamed) => {
    const callbacks = [new MeteredCallbackHandler(session, prices)];
    const tier = asked === undefined ? {} : { service_tier: asked as "auto" };
    const chat = new ChatOpenAI({ model: "x", apiKey: "none", maxTokens: 10, maxRetries: 0, useResponsesApi: api === "responses", callbacks, configuration: { baseURL, fetch }, ...tier });
    if (!streamed) {
      return chat.invoke("?");
    }
    for await (const _ of await chat.stream("?")) {}
    return undefined;
  },
  "the Agents SDK": async (session, fetch, api, asked, streamed) => {
    const openAIClient = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch }) as never;
    const runner = new Runner({ modelProvider: meteredModelProvider(session, prices, new OpenAIProvider({ useResponses: api === "responses", openAIClient })), tracingDisabled: true });
    const agent = new Agent({ name: "scout", model: "x", modelSettings: { maxTokens: 10, ...(asked !== undefined && { providerData: { service_tier: asked } }) } });
    return streamed ? (await runner.run(agent, "?", { stream: true })).completed : runner.run(agent, "?");
  },
};

// What is held, and what it costs if the framework tells the tier of the answer; 10,000 is the standard price.
const cases: readonly (readonly [asked: string | undefined, answered: string | undefined, held: bigint, cost: bigint])[] = [
  [undefined, "default", 30_000n, 10_000n], [undefined, undefined, 30_000n, 30_000n], ["auto", "priority", 30_000n, 30_000n],
  ["default", "default", 10_000n, 10_000n], ["default", undefined, 10_000n, 10_000n], ["priority", "default", 30_000n, 10_000n], ["flex", "flex", 10_000n, 5_000n],
];

for (const [name, make] of Object.entries(makes)) {
  for (const api of name === "ai" ? (["chat", "responses", "messages"] as const) : (["chat", "responses"] as const)) {
    test(`a call of ${api} by ${name} holds the dearest service tier that it can get, and costs the one that it got`, async () => {
      for (const [asked, answer, held, cost] of cases) {
        for (const streamed of [false, true]) {
          const session = await newSession();
          let hold = 0n;
          await make(session, async () => ((hold = (await session.get()).valueHeld), answered(api, answer, streamed)), api, asked, streamed);
          await settled(session);
          const isUntold = api === "chat" && ((name === "ai" && streamed) || (name === "LangChain" && !streamed)); // they keep it to themselves
          const isDropped = name === "ai" && asked === "flex"; // where the model is not known to have it
          const want = isDropped ? 30_000n : held;
          assert.deepEqual([hold, (await session.get()).valueUsed], [want, isUntold ? want : cost], `${asked}, ${answer}, ${streamed}`);
        }
      }
    });
  }
}
