// Makes calls with an adapter until it is killed: node victim.js ADAPTER NAME. Their models are NAME-0, NAME-1 and so on.
import { createOpenAI } from "@ai-sdk/openai";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIProvider, Runner, setTracingDisabled } from "@openai/agents";
import { streamText, wrapLanguageModel } from "ai";
import OpenAI from "openai";
import { Session } from "@remit/sdk";
import { meteredFetch, type Fetch } from "@remit/sdk/fetch";
import { Prices } from "@remit/sdk/prices";
import { meteredMiddleware } from "@remit/adapters/ai";
import { MeteredCallbackHandler } from "@remit/adapters/langchain";
import { meteredModelProvider } from "@remit/adapters/openai-agents";

const [, , adapter = "", name = ""] = process.argv;
const { REMIT_FAKE_PROVIDER, REMIT_PRICES } = process.env;
const baseURL = `${REMIT_FAKE_PROVIDER}/v1`;
const session = Session.fromEnv();
const prices = Prices.parse(REMIT_PRICES!);
const options = { expiresInSeconds: 2, models: new Proxy({}, { getOwnPropertyDescriptor: () => ({ value: "priced", configurable: true }), get: () => "priced" }) };
const prompt = "What is left? 🦉";

const faked: Fetch = async (input, init = {}) => {
  const { model } = JSON.parse(String(init.body)) as { model: string };
  const headers = new Headers(init.headers);
  headers.set("X-Fake", `seed=${model.split("-").at(-1)},pace=3`);
  headers.set("X-Call", model);
  return fetch(input, { ...init, headers });
};
const client = (fetch: Fetch) => new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch });

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream) {}
}

(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;
setTracingDisabled(true);
const handler = new MeteredCallbackHandler(session, prices, options);
const runner = new Runner({ modelProvider: meteredModelProvider(session, prices, new OpenAIProvider({ useResponses: false, openAIClient: client(faked) as never }), options) });
const adapters: Readonly<Record<string, (model: string) => Promise<unknown>>> = {
  fetch: async (model) => {
    const { chat } = client(meteredFetch(session, prices, { ...options, fetch: faked }));
    await drain(await chat.completions.create({ model, max_tokens: 60, stream: true, messages: [{ role: "user", content: prompt }] }));
  },
  ai: async (model) => {
    const wrapped = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch: faked }).chat(model), middleware: meteredMiddleware(session, prices, options) });
    await drain(streamText({ model: wrapped, maxRetries: 0, maxOutputTokens: 60, prompt, onError: () => {} }).fullStream);
  },
  langchain: async (model) => {
    const chat = new ChatOpenAI({ model, apiKey: "none", maxTokens: 60, maxRetries: 0, configuration: { baseURL, fetch: faked }, callbacks: [handler] });
    await drain(await chat.stream(prompt));
  },
  agents: async (model) => {
    await drain(await runner.run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60 } }), prompt, { stream: true }));
  },
};

let calls = 0;
async function work(): Promise<never> {
  for (;;) {
    const model = `${name}-${calls++}`;
    await adapters[adapter]!(model).catch(() => {}); // the budget may be spent
    console.log(model);
  }
}
await Promise.all(Array.from({ length: 8 }, work));
