import assert from "node:assert/strict";
import test from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, streamText, tool, wrapLanguageModel, type LanguageModel } from "ai";
import { z } from "zod";
import { LimitReached, USD } from "@remit/sdk";
import { UnboundedCall, UsageMissing } from "@remit/sdk/metering";
import { Prices } from "@remit/sdk/prices";
import { meteredMiddleware } from "@remit/adapters/ai";
import { baseURL, fakedFetch, models, newSession, prices, settled, testCalls, type Call } from "./reconcile.js";

(globalThis as { AI_SDK_LOG_WARNINGS?: boolean }).AI_SDK_LOG_WARNINGS = false;

type Wrapped = Parameters<typeof wrapLanguageModel>[0]["model"];
const openai = createOpenAI({ baseURL, apiKey: "none", fetch: fakedFetch });
const anthropic = createAnthropic({ baseURL, apiKey: "none", fetch: fakedFetch });
const providers: Readonly<Record<string, (model: string) => Wrapped>> = {
  chat: (model) => openai.chat(model), responses: (model) => openai.responses(model), messages: (model) => anthropic(model),
};
const tools = { lookup: tool({ inputSchema: z.object({ query: z.string() }), execute: async () => "found" }) };

async function call(model: LanguageModel, { streamed, parts, how }: Call): Promise<void> {
  const controller = new AbortController();
  const options = { model, tools, maxRetries: 0, maxOutputTokens: 60, prompt: "What is left? 🦉", abortSignal: controller.signal };
  if (!streamed) {
    if (parts !== Infinity) {
      setTimeout(() => controller.abort(), parts);
    }
    await generateText(options);
    return;
  }
  let failure: unknown;
  let count = 0;
  const { fullStream } = streamText({ ...options, onError: ({ error }) => { failure = error; } });
  for await (const _ of fullStream) {
    if (++count > parts) {
      if (how === "break") break;
      controller.abort();
    }
  }
  controller.abort(); // breaking off alone does not stop the SDK, which reads on in the background
  if (failure !== undefined) throw failure;
}

await testCalls(Object.entries(providers).map(([name, of]) => ({
  name: `${name} by ai`,
  make: (session, planned) => call(wrapLanguageModel({ model: of(planned.model), middleware: meteredMiddleware(session, prices, { models }) }), planned),
  // @ai-sdk/anthropic cannot read the first event of a stream if it has no usage, and streamText stops there.
  breaksOff: ({ streamed, fake }) => name === "messages" && streamed && fake.includes("usage=missing"),
})));

test("what nothing bounds and what does not fit is refused before it is sent", async () => {
  const session = await newSession(1_000n);
  const model = wrapLanguageModel({ model: openai.chat("never-sent"), middleware: meteredMiddleware(session, prices, { models }) });
  const unknown = wrapLanguageModel({ model: openai.chat("never-sent"), middleware: meteredMiddleware(session, prices) });
  await assert.rejects(generateText({ model, maxRetries: 0, maxOutputTokens: 60, prompt: "?" }), LimitReached);
  await assert.rejects(generateText({ model, maxRetries: 0, prompt: "?" }), /the call may cost up to 0\.\d+ USD \(200 tokens of output\): set maxOutputTokens$/);
  await assert.rejects(generateText({ model: unknown, maxRetries: 0, prompt: "?" }), /no prices for model "never-sent"/);
  const endless = generateText({ model, maxRetries: 0, maxOutputTokens: 2 ** 53 - 1, prompt: "?" });
  await assert.rejects(endless, UnboundedCall);
  const { actionCount } = await session.get();
  assert.equal(actionCount, 0);
});

test("files and references count as the most input of the model", async () => {
  const session = await newSession(USD);
  let held = 0n;
  const fetch = async () => ((held = (await session.get()).valueHeld), Response.json({ error: { message: "no" } }, { status: 400 }));
  const model = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch }).responses("x"), middleware: meteredMiddleware(session, prices, { models }) });
  const worst = prices.worst("priced", 100_000, 60);
  const image = { type: "file" as const, mediaType: "image/png", data: new URL("https://images.example/1.png") };
  for (const call of [
    { messages: [{ role: "user" as const, content: [image] }] },
    { prompt: "?", providerOptions: { openai: { previousResponseId: "r" } } },
    ...["previous_response_id", "mcp_servers", "webSearchOptions", "web_search_options", "plugins"].map((name) => ({ prompt: "?", providerOptions: { x: { [name]: [{}] } } })),
    { prompt: "?", tools: { search: openai.tools.webSearch({}) } },
  ]) {
    await assert.rejects(generateText({ model, maxRetries: 0, maxOutputTokens: 60, ...call }));
    assert.equal(held, worst);
  }
  await settled(session);
  assert.equal((await session.get()).valueUsed, 0n);
});

test("the hold has room for every byte of the request", async () => {
  const session = await newSession(USD);
  let [sent, held] = [0, 0n];
  const fetch = async (_: unknown, init?: RequestInit) => {
    [sent, held] = [Buffer.byteLength(String(init?.body)), (await session.get()).valueHeld];
    return Response.json({ error: { message: "no" } }, { status: 400 });
  };
  const model = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch }).chat("x"), middleware: meteredMiddleware(session, prices, { models }) });
  for (const tools of [{}, { clock: tool({ inputSchema: z.object({}), execute: async () => "12:00" }) }]) {
    await assert.rejects(async () => streamText({ model, maxRetries: 0, maxOutputTokens: 60, prompt: "?", tools, onError: () => undefined }).text);
    assert.ok(sent > 0 && held >= prices.worst("priced", sent, 60), `${sent} bytes, ${held} held`);
  }
});

test("a maximum that a provider raises counts in the hold", async () => {
  const session = await newSession(USD);
  let sent = 0;
  let held = 0n;
  const fetch = async (_: unknown, init?: RequestInit) => {
    const { max_tokens, max_completion_tokens = max_tokens } = JSON.parse(String(init?.body)) as { max_tokens?: number; max_completion_tokens?: number };
    [sent, held] = [max_completion_tokens!, (await session.get()).valueHeld];
    return Response.json({ error: { message: "no" } }, { status: 400 });
  };
  const raising: readonly (readonly [Wrapped, object])[] = [
    [createAnthropic({ baseURL, apiKey: "none", fetch })("x"), { providerOptions: { anthropic: { thinking: { type: "enabled", budgetTokens: 5_000 } } } }],
    [createOpenAI({ baseURL, apiKey: "none", fetch }).chat("x"), { providerOptions: { openai: { maxCompletionTokens: 5_000 } } }],
  ];
  for (const [model, options] of raising) {
    const wrapped = wrapLanguageModel({ model, middleware: meteredMiddleware(session, prices, { models }) });
    await assert.rejects(generateText({ model: wrapped, maxRetries: 0, maxOutputTokens: 60, prompt: "?", ...options }));
    assert.ok(sent >= 5_000 && held >= prices.worst("priced", 1, sent), `${sent} tokens at most, ${held} held`);
  }
  const thinking = wrapLanguageModel({ model: raising[0]![0], middleware: meteredMiddleware(session, prices, { models }) });
  await assert.rejects(generateText({ model: thinking, maxRetries: 0, maxOutputTokens: 60, prompt: "?", reasoning: "high" }));
  assert.ok(held >= prices.worst("priced", 1, 200), `${held} held, although the provider chooses how much the model thinks`);
  assert.equal((await session.get()).valueHeld, 0n);
});

test("maxima and answers that options name as a request does count in the hold, and those that are no counts are refused", async () => {
  const session = await newSession(1_000n * USD);
  const held: bigint[] = [];
  const fetch = async () => (held.push((await session.get()).valueHeld), Response.json({ error: { message: "no" } }, { status: 400 }));
  const model = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch }).chat("x"), middleware: meteredMiddleware(session, prices, { models }) });
  const call = (x: object) => generateText({ model, maxRetries: 0, maxOutputTokens: 60, prompt: "?", providerOptions: { x: x as Record<string, never> } });
  for (const [options, output] of [
    [{ max_tokens: 50_000, n: 4 }, 200_000], [{ max_completion_tokens: 500, best_of: 3, n: 2 }, 1_500], [{ maxTokens: 500, bestOf: 3 }, 1_500], [{ n: null }, 60],
  ] as const) {
    await assert.rejects(call(options));
    assert.ok(held.at(-1)! >= prices.worst("priced", 1, output) && held.at(-1)! < prices.worst("priced", 2_000, output), `${JSON.stringify(options)}: ${held.at(-1)} held`);
  }
  for (const options of [{ n: 1.5 }, { best_of: "2" }, { max_tokens: -1 }]) {
    await assert.rejects(call(options), UnboundedCall, JSON.stringify(options));
  }
  assert.equal(held.length, 4);
});

test("a usage without output of an answer that has some costs the hold", async () => {
  const session = await newSession(USD);
  const counts = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 };
  const message = { role: "assistant", content: "hi" };
  const lines = [{ choices: [{ index: 0, delta: message }] }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, { choices: [], usage: counts }];
  const fetch = async (_: unknown, init?: RequestInit) => (JSON.parse(String(init?.body)) as { stream?: boolean }).stream
    ? new Response(`${lines.map((line) => `data: ${JSON.stringify(line)}\n\n`).join("")}data: [DONE]\n\n`, { headers: { "Content-Type": "text/event-stream" } })
    : Response.json({ choices: [{ index: 0, message, finish_reason: "stop" }], usage: counts });
  const model = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch }).chat("x"), middleware: meteredMiddleware(session, prices, { models }) });
  await assert.rejects(generateText({ model, maxRetries: 0, prompt: "?" }), UsageMissing);
  const errors: unknown[] = [];
  await Promise.resolve(streamText({ model, prompt: "?", onError: ({ error }) => void errors.push(error) }).text).catch(() => undefined);
  assert.ok(errors[0] instanceof UsageMissing, String(errors[0]));
  assert.ok((await session.get()).valueUsed >= 2n * prices.worst("priced", 1, 200));
});

test("tokens that cost more than the table says are refused before they are sent", async () => {
  const session = await newSession();
  const model = wrapLanguageModel({ model: openai.chat("never-sent"), middleware: meteredMiddleware(session, prices, { models }) });
  const hour = { anthropic: { cacheControl: { type: "ephemeral", ttl: "1h" } } };
  for (const call of [
    { prompt: "?", providerOptions: { openai: { serviceTier: "priority" } } },
    { prompt: "?", providerOptions: { a: { serviceTier: "scale" }, b: { serviceTier: "default" } } },
    { prompt: "?", providerOptions: { someone: { model: "another" } } },
    { prompt: "?", providerOptions: hour },
    { messages: [{ role: "user" as const, content: [{ type: "text" as const, text: "?", providerOptions: hour }] }] },
  ]) {
    await assert.rejects(generateText({ model, maxRetries: 0, maxOutputTokens: 60, ...call }), UnboundedCall);
  }
  assert.equal((await session.get()).actionCount, 0);
});

test("a model of any origin that reports no usage throws UsageMissing", async () => {
  const session = await newSession();
  const answer = { content: [{ type: "text", text: "x" }], finishReason: { unified: "stop", raw: undefined }, warnings: [] };
  const model = { specificationVersion: "v4", provider: "own", modelId: "x", supportedUrls: {}, doGenerate: async () => answer } as unknown as Wrapped;
  const wrapped = wrapLanguageModel({ model, middleware: meteredMiddleware(session, prices, { models }) });
  await assert.rejects(generateText({ model: wrapped, maxRetries: 0, prompt: "?" }), UsageMissing);
  const { actionCount, valueUsed, valueHeld } = await session.get();
  assert.deepEqual([actionCount, valueUsed > 0n, valueHeld], [1, true, 0n]);
});

test("a stream without usage ends with UsageMissing as an error part", async () => {
  const session = await newSession();
  const lines = [{ choices: [{ index: 0, delta: { content: "x" } }] }, { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }];
  const body = `${lines.map((line) => `data: ${JSON.stringify(line)}\n\n`).join("")}data: [DONE]\n\n`;
  const fetch = async () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const model = wrapLanguageModel({ model: createOpenAI({ baseURL, apiKey: "none", fetch }).chat("x"), middleware: meteredMiddleware(session, prices, { models }) });
  const errors: unknown[] = [];
  const { text } = streamText({ model, prompt: "?", onError: ({ error }) => void errors.push(error) });
  assert.equal(await Promise.resolve(text).catch(() => "x"), "x");
  assert.ok(errors[0] instanceof UsageMissing, String(errors[0]));
  assert.ok((await session.get()).valueUsed >= prices.worst("priced", 1, 200));
});

const text = (words: number) => Array.from({ length: words }, (_, i) => ({ choices: [{ index: 0, delta: { content: `word ${i} ` } }] }));
const usage = { prompt_tokens: 20, completion_tokens: 8 };
const endings = [{ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }, { choices: [], usage }];

// streaming returns a provider that streams these chunks and then hangs, and whether it was stopped.
function streaming(chunks: readonly object[]): { readonly openai: ReturnType<typeof createOpenAI>; isStopped(): boolean } {
  const left = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`);
  let stopped = false;
  const body = () => new ReadableStream<Uint8Array>({
    pull: (controller) => (left.length === 0 ? new Promise(() => {}) : controller.enqueue(new TextEncoder().encode(left.shift()))),
    cancel: () => void (stopped = true),
  }, { highWaterMark: 0 });
  const fetch = async () => new Response(body(), { headers: { "Content-Type": "text/event-stream" } });
  return { openai: createOpenAI({ baseURL, apiKey: "none", fetch }), isStopped: () => stopped };
}

test("a stream whose reader breaks off is read to its end, and costs what the provider counted", async () => {
  for (const name of ["textStream", "fullStream"] as const) {
    const session = await newSession();
    const answer = [...text(200), ...endings].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("");
    const openai = createOpenAI({ baseURL, apiKey: "none", fetch: async () => new Response(answer, { headers: { "Content-Type": "text/event-stream" } }) });
    const model = wrapLanguageModel({ model: openai.chat("x"), middleware: meteredMiddleware(session, prices, { models }) });
    let parts = 0;
    for await (const _ of streamText({ model, prompt: "?", maxOutputTokens: 200 })[name]) {
      if (++parts > 4) break;
    }
    await settled(session);
    assert.equal((await session.get()).valueUsed, prices.cost("priced", { input: 20, output: 8 }), name);
  }
});

test("a stream that is cancelled costs what has come of it, or the hold if more can have been produced", async () => {
  const entry = { input_cost_per_token: 1e-6, output_cost_per_token: 1e-5, max_input_tokens: 1_000_000, max_output_tokens: 100_000 };
  const table = Prices.parse(JSON.stringify({ plain: entry, thinker: { ...entry, supports_reasoning: true }, counter: { ...entry, output_cost_per_reasoning_token: 2e-5 } }));
  const cases: readonly (readonly [string, object, readonly object[], boolean])[] = [
    ["plain", {}, text(200), false],
    ["plain", { openai: { reasoningEffort: "none" } }, text(200), false],
    ["thinker", { openai: { reasoningEffort: "none" } }, text(200), false],
    ["plain", { openai: { reasoningEffort: "high" } }, text(200), true],
    ["plain", { anthropic: { thinking: { type: "adaptive" } } }, text(200), true],
    ...[{ reasoning: { enabled: true } }, { reasoning: { max_tokens: 2_000 } }, { thinkingConfig: { thinkingBudget: 2_000 } }, { thinking: { type: "disabled", x: 1 } }]
      .map((x) => ["plain", { x }, text(200), true] as const),
    ["thinker", { x: { reasoning: { effort: "none", enabled: null } } }, text(200), false],
    ["thinker", {}, text(200), true],
    ["counter", {}, text(200), true],
  ];
  for (const [name, providerOptions, chunks, isAll] of cases) {
    const session = await newSession();
    const { openai, isStopped } = streaming(chunks);
    const model = wrapLanguageModel({ model: openai.chat(name), middleware: meteredMiddleware(session, table) });
    const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "?" }] }];
    const { stream } = await model.doStream({ prompt, maxOutputTokens: 50_000, providerOptions: providerOptions as never });
    const reader = stream.getReader();
    for (let parts = 0; parts < 5; parts++) await reader.read();
    const { valueHeld } = await session.get();
    await reader.cancel();
    await settled(session);
    const { valueUsed } = await session.get();
    assert.ok(isStopped(), name);
    assert.ok(isAll ? valueUsed === valueHeld : valueUsed > 0n && valueUsed < valueHeld / 2n, `${name} ${JSON.stringify(providerOptions)}: ${valueUsed} of ${valueHeld}`);
  }
});
