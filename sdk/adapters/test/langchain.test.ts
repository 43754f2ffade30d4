import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import test from "node:test";
import { InMemoryCache } from "@langchain/core/caches";
import { HumanMessage } from "@langchain/core/messages";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { ChatOpenAI } from "@langchain/openai";
import { LimitReached, USD, type Session } from "@remit/sdk";
import { UnboundedCall, UsageMissing } from "@remit/sdk/metering";
import { MeteredCallbackHandler } from "@remit/adapters/langchain";
import { baseURL, fakedFetch, ledger, models, newSession, prices, settled, testCalls, type Call } from "./reconcile.js";

console.error = () => {}; // LangChain writes what handlers throw

type Settings = NonNullable<ConstructorParameters<typeof ChatOpenAI>[0]>;

function chatModel(session: Session, model: string, more: Partial<Settings> = {}): ChatOpenAI {
  const callbacks = [new MeteredCallbackHandler(session, prices, { models })];
  return new ChatOpenAI({ model, apiKey: "none", maxTokens: 60, maxRetries: 0, configuration: { baseURL, fetch: fakedFetch }, callbacks, ...more });
}

const call = (more: Partial<Settings>) => async (session: Session, { model, streamed, parts }: Call): Promise<void> => {
  const controller = new AbortController();
  const chat = chatModel(session, model, more);
  if (!streamed) {
    if (parts !== Infinity) {
      setTimeout(() => controller.abort(), parts);
    }
    await chat.invoke("What is left? 🦉", { signal: controller.signal });
    return;
  }
  let count = 0;
  for await (const _ of await chat.stream("What is left? 🦉", { signal: controller.signal })) {
    if (++count > parts) {
      controller.abort();
    }
  }
};

await testCalls(Object.entries({ chat: {}, responses: { useResponsesApi: true } }).map(([name, more]) => ({ name: `${name} by LangChain`, make: call(more) })));

test("if one prompt of many does not fit, none is sent and nothing is held", async () => {
  const session = await newSession(5_000n);
  const chat = chatModel(session, "never-sent");
  const prompts = Array.from({ length: 5 }, () => [new HumanMessage("?")]);
  await assert.rejects(chat.generate(prompts), LimitReached);
  await assert.rejects(chat.generate(prompts), /the call may cost up to 0\.\d+ USD \(60 tokens of output\): lower maxTokens, or send less$/);
  await settled(session);
  assert.equal((await session.get()).valueUsed, 0n);
  assert.equal((await ledger()).has("never-sent"), false);
});

test("an answer from a cache costs nothing", async () => {
  const session = await newSession();
  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
  const fetch = async () => Response.json({ choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }], usage });
  const chat = chatModel(session, "x", { cache: new InMemoryCache(), configuration: { baseURL, fetch } });
  for (let i = 0; i < 2; i++) {
    assert.equal((await chat.invoke("?")).content, "x");
    const { actionCount, valueUsed, valueHeld } = await session.get();
    assert.deepEqual([actionCount, valueUsed, valueHeld], [i + 1, 60n, 0n]);
  }
});

test("tokens that cost more than the table says are refused before they are sent", async () => {
  const session = await newSession();
  await assert.rejects(chatModel(session, "never-sent", { service_tier: "priority" }).invoke("?"), UnboundedCall);
  const content = [{ type: "text", text: "?", cache_control: { type: "ephemeral", ttl: "1h" } }];
  await assert.rejects(chatModel(session, "never-sent").invoke([new HumanMessage({ content })]), UnboundedCall);
  assert.equal((await session.get()).actionCount, 0);
});

test("a stream that was broken off without a signal's help leaves nothing behind once it is settled", async () => {
  const session = await newSession();
  const handler = new MeteredCallbackHandler(session, prices, { models, expiresInSeconds: 1 });
  const chunk = { id: "x", object: "chat.completion.chunk", created: 1, model: "x", choices: [{ index: 0, delta: { content: "x" } }] };
  const fetch = async () => new Response(`data: ${JSON.stringify(chunk)}\n\n`.repeat(3), { headers: { "Content-Type": "text/event-stream" } });
  const chat = chatModel(session, "x", { callbacks: [handler], configuration: { baseURL, fetch } });
  const { signal } = new AbortController(); // which lives longer than the call
  for await (const _ of await chat.stream("?", { signal })) break;
  const ours = () => getEventListeners(signal, "abort").filter(({ name }) => name === "abort").length;
  assert.equal(ours(), 1);
  await settled(session);
  await assert.rejects(chatModel(session, "x", { callbacks: [handler], service_tier: "priority" }).invoke("?"), UnboundedCall); // the next call
  assert.equal(ours(), 0);
});

test("a handler that a model and its chain were given charges once", async () => {
  const session = await newSession();
  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
  const fetch = async () => Response.json({ choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }], usage });
  const callbacks = [new MeteredCallbackHandler(session, prices, { models })];
  const chat = chatModel(session, "x", { callbacks, configuration: { baseURL, fetch } });
  await chat.invoke("?", { callbacks });
  const { actionCount, valueUsed, valueHeld } = await session.get();
  assert.deepEqual([actionCount, valueUsed, valueHeld], [1, 60n, 0n]);
});

test("a model that reports no usage, and one without a name or a bound, is refused", async () => {
  const session = await newSession();
  const fake = new FakeListChatModel({ responses: ["x"], callbacks: [new MeteredCallbackHandler(session, prices, { models })] });
  await assert.rejects(fake.invoke("?"), UnboundedCall);
  const handler = new MeteredCallbackHandler(session, prices, { models });
  await assert.rejects(handler.handleLLMStart({} as never, ["?"], "run", undefined, {}, [], { ls_model_name: "x" }), UnboundedCall); // without its parameters
  await assert.rejects(fake.invoke("?", { metadata: { ls_model_name: "x" } }), UsageMissing);
  await assert.rejects(chatModel(session, "x", { callbacks: [new MeteredCallbackHandler(session, prices)] }).invoke("?"), /no prices for model "x"/);
  const { valueUsed, valueHeld } = await session.get();
  assert.deepEqual([valueUsed > 0n, valueHeld], [true, 0n]); // the call that was answered
});

test("the hold has room for every byte of the request", async () => {
  const session = await newSession(USD);
  let [sent, held] = [0, 0n];
  const fetch = async (_: unknown, init?: RequestInit) => {
    [sent, held] = [Buffer.byteLength(String(init?.body)), (await session.get()).valueHeld];
    return Response.json({ error: { message: "no" } }, { status: 400 });
  };
  await assert.rejects(chatModel(session, "x", { streaming: true, configuration: { baseURL, fetch } }).invoke("?"));
  assert.ok(sent > 0 && held >= prices.worst("priced", sent, 60), `${sent} bytes, ${held} held`);
});

test("an image elsewhere counts as the most input of the model", async () => {
  const session = await newSession(USD);
  let held = 0n;
  const fetch = async () => ((held = (await session.get()).valueHeld), Response.json({ error: { message: "no" } }, { status: 400 }));
  const content = [{ type: "image_url", image_url: { url: "https://images.example/1.png" } }];
  await assert.rejects(chatModel(session, "x", { configuration: { baseURL, fetch } }).invoke([new HumanMessage({ content })]));
  assert.equal(held, prices.worst("priced", 100_000, 60));
});

test("the highest of n and best_of counts in the hold, plugins as the most input, and what is no count is refused", async () => {
  const session = await newSession(100n * USD);
  const handler = new MeteredCallbackHandler(session, prices, { models });
  const held = async (more: object) => {
    const run = JSON.stringify(more);
    await handler.handleLLMStart({} as never, ["?"], run, undefined, { invocation_params: { model: "x", max_tokens: 60, ...more } });
    const { valueHeld } = await session.get();
    await handler.handleLLMError(Object.assign(new Error("no"), { status: 400 }), run);
    return valueHeld;
  };
  for (const more of [{ n: 1, best_of: 5 }, { n: 5, best_of: 2 }]) {
    const value = await held(more);
    assert.ok(value >= prices.worst("priced", 1, 300) && value < prices.worst("priced", 2_000, 300), `${JSON.stringify(more)}: ${value}`);
  }
  assert.equal(await held({ plugins: [{ id: "web" }] }), prices.worst("priced", 100_000, 60));
  for (const more of [{ n: 1.5 }, { n: "2" }, { best_of: 0 }]) {
    await assert.rejects(held(more), UnboundedCall, JSON.stringify(more));
  }
});

test("a hold that does not fit names the maximum as the model takes it", async () => {
  const handler = new MeteredCallbackHandler(await newSession(1_000n), prices, { models });
  for (const [name, says] of [["maxOutputTokens", "maxOutputTokens"], ["max_completion_tokens", "maxTokens"]] as const) {
    const call = handler.handleLLMStart({} as never, ["?"], name, undefined, { invocation_params: { model: "x", [name]: 90, max_tokens: 60 } });
    await assert.rejects(call, (error: Error) => error.message.endsWith(`(90 tokens of output): lower ${says}, or send less`), name);
  }
});

test("a usage without output of an answer that has some costs the hold", async () => {
  const session = await newSession(USD);
  const handler = new MeteredCallbackHandler(session, prices, { models });
  const ends = async (text: string, message?: object) => {
    await handler.handleLLMStart({} as never, ["?"], "run", undefined, { invocation_params: { model: "x", max_tokens: 60 } });
    const generation = message === undefined ? { text } : { text, message: { ...message, usage_metadata: { input_tokens: 7, output_tokens: 0 } } };
    await handler.handleLLMEnd({ generations: [[generation]], llmOutput: { tokenUsage: { promptTokens: 7, completionTokens: 0 } } }, "run");
  };
  for (const [text, message] of [["hi"], ["hi", { content: "hi" }], ["", { content: "", tool_calls: [{}] }], ["", { content: [{ type: "text", text: "hi" }] }]] as const) {
    await assert.rejects(ends(text, message), UsageMissing, JSON.stringify(message));
  }
  assert.ok((await session.get()).valueUsed >= 4n * prices.worst("priced", 1, 60));
  await ends("", { content: "", tool_calls: [] }); // has none
});
