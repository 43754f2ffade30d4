import assert from "node:assert/strict";
import test from "node:test";
import { Agent, getDefaultModel, ModelBehaviorError, OpenAIProvider, Runner, setTracingDisabled, tool, type Model, type ModelRequest } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { InsufficientScope, LimitReached, USD, usd, type Session } from "@remit/sdk";
import { UnboundedCall, UnknownModel, UsageMissing } from "@remit/sdk/metering";
import { chargedTool, explainRefusal, meteredModel, meteredModelProvider } from "@remit/adapters/openai-agents";
import { baseURL, fakedFetch, ledger, models, newSession, organization, prices, testCalls, type Call } from "./reconcile.js";

setTracingDisabled(true);

const provider = (useResponses: boolean, fetch: typeof fakedFetch = fakedFetch) =>
  new OpenAIProvider({ useResponses, openAIClient: new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch }) as never });
const lookup = tool({ name: "lookup", description: "Looks up", parameters: z.object({ query: z.string() }), execute: async () => "found" });

const call = (useResponses: boolean) => async (session: Session, { model, streamed, parts, how }: Call): Promise<void> => {
  const controller = new AbortController();
  const runner = new Runner({ modelProvider: meteredModelProvider(session, prices, provider(useResponses), { models }) });
  const agent = new Agent({ name: "scout", model, modelSettings: { maxTokens: 60 }, tools: [lookup] });
  const options = { maxTurns: 2, signal: controller.signal };
  if (!streamed) {
    if (parts !== Infinity) {
      setTimeout(() => controller.abort(), parts);
    }
    await runner.run(agent, "What is left? 🦉", options);
    return;
  }
  const run = await runner.run(agent, "What is left? 🦉", { ...options, stream: true });
  let count = 0;
  for await (const _ of run) {
    if (++count > parts) {
      controller.abort();
      if (how === "break") break;
    }
  }
  await run.completed;
};

await testCalls(([["chat", false], ["responses", true]] as const).map(([name, useResponses]) => ({
  name: `${name} by OpenAI Agents`,
  make: call(useResponses),
  // The Agents SDK refuses a response that is not streamed and ends at its maximum, and keeps its usage to itself.
  breaksOff: ({ streamed }, [record]) => useResponses && !streamed && record !== undefined && record.usage.output + record.usage.reasoning === 60,
})));

test("a model that reports no usage throws UsageMissing, and one alone is metered", async () => {
  const session = await newSession();
  const fetch = async () => Response.json({ id: "x", choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }] });
  const model = await provider(false, fetch).getModel("x");
  const agent = new Agent({ name: "scout", model: meteredModel(session, prices, model, "x", { models }), modelSettings: { maxTokens: 60 } });
  await assert.rejects(new Runner().run(agent, "?"), UsageMissing);
  const { actionCount, valueUsed, valueHeld } = await session.get();
  assert.deepEqual([actionCount, valueUsed > 0n, valueHeld], [1, true, 0n]);
});

const request = { input: "?", modelSettings: { maxTokens: 60 }, tools: [], outputType: "text", handoffs: [], tracing: false } as ModelRequest;

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of events) {}
}

test("a model without a price and a hold that does not fit are refused before they are sent", async () => {
  const session = await newSession(1_000n);
  const model = await provider(false).getModel("never-sent");
  const [unknown, dear] = [meteredModel(session, prices, model, "never-sent"), meteredModel(session, prices, model, "never-sent", { models })];
  await assert.rejects(unknown.getResponse(request), UnknownModel);
  await assert.rejects(drain(unknown.getStreamedResponse(request)), UnknownModel);
  await assert.rejects(dear.getResponse(request), LimitReached);
  await assert.rejects(dear.getResponse(request), /the call may cost up to 0\.\d+ USD \(60 tokens of output\): lower modelSettings\.maxTokens, or send less$/);
  await assert.rejects(drain(dear.getStreamedResponse(request)), LimitReached);
  const free = meteredModel(await newSession(), prices, model, "never-sent", { models });
  for (const providerData of [{ service_tier: "priority" }, { extra_body: { service_tier: "priority" } }, { model: "another" }, { extraBody: { model: "another" } }, { extra_body: "?" }]) {
    await assert.rejects(free.getResponse({ ...request, modelSettings: { maxTokens: 60, providerData } }), UnboundedCall, JSON.stringify(providerData));
  }
  await assert.rejects(free.getResponse({ ...request, prompt: { promptId: "p" } }), UnboundedCall); // which says the model
  assert.equal((await session.get()).actionCount, 0);
  assert.equal((await ledger()).has("never-sent"), false);
});

test("a model of any origin that reports no usage throws UsageMissing", async () => {
  const session = await newSession();
  const model = { getResponse: async () => ({ output: [] }) } as unknown as Model;
  await assert.rejects(meteredModel(session, prices, model, "x", { models }).getResponse(request), UsageMissing);
  const { valueUsed, valueHeld } = await session.get();
  assert.deepEqual([valueUsed > 0n, valueHeld], [true, 0n]);
});

test("a provider is asked for the model by the name of its price, also for the default", async () => {
  const asked: unknown[] = [];
  const models = meteredModelProvider(await newSession(), prices, { getModel: (name) => (asked.push(name), {} as Model) });
  for (const name of ["x", "", undefined]) {
    await models.getModel(name);
  }
  assert.deepEqual(asked, ["x", getDefaultModel(), getDefaultModel()]);
});

test("the hold has room for every byte of the request", async () => {
  const session = await newSession(USD);
  let [sent, held] = [0, 0n];
  const fetch = async (_: unknown, init?: RequestInit) => {
    [sent, held] = [Buffer.byteLength(String(init?.body)), (await session.get()).valueHeld];
    return Response.json({ error: { message: "no" } }, { status: 400 });
  };
  const clock = tool({ name: "clock", description: "Tells the time.", parameters: z.object({}), execute: async () => "12:00" });
  for (const responses of [false, true]) {
    const model = meteredModel(session, prices, await provider(responses, fetch).getModel("x"), "x", { models });
    await assert.rejects(new Runner().run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60 }, tools: [clock] }), "?"));
    assert.ok(sent > 0 && held >= prices.worst("priced", sent, 60), `${sent} bytes, ${held} held`);
  }
});

test("what the settings add to a request counts in the hold", async () => {
  const session = await newSession(10n * USD);
  let held = 0n;
  const fetch = async () => ((held = (await session.get()).valueHeld), Response.json({ error: { message: "no" } }, { status: 400 }));
  const model = meteredModel(session, prices, await provider(false, fetch).getModel("x"), "x", { models });
  const added = { max_completion_tokens: 5_000, n: 2, web_search_options: {} };
  for (const providerData of [added, { extra_body: added }, { extraBody: added }]) {
    await assert.rejects(new Runner().run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60, providerData } }), "?"));
    assert.equal(held, prices.worst("priced", 100_000, 10_000));
  }
  for (const [providerData, input, output] of [[{ n: 2, best_of: 3, plugins: [{}] }, 100_000, 180], [{ container: {} }, 100_000, 60], [{ mcp_servers: [{}] }, 100_000, 60]] as const) {
    await assert.rejects(new Runner().run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60, providerData } }), "?"));
    assert.equal(held, prices.worst("priced", input, output), JSON.stringify(providerData));
  }
  await assert.rejects(model.getResponse({ ...request, modelSettings: { maxTokens: 60, providerData: { n: "2" } } }), UnboundedCall);
  assert.equal((await session.get()).valueHeld, 0n);
});

test("a usage without output of an answer that has some costs the hold", async () => {
  const session = await newSession();
  const counts = { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 };
  const fetch = async () => Response.json({ id: "x", choices: [{ index: 0, message: { role: "assistant", content: "hi" }, finish_reason: "stop" }], usage: counts });
  const model = meteredModel(session, prices, await provider(false, fetch).getModel("x"), "x", { models });
  await assert.rejects(new Runner().run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60 } }), "?"), UsageMissing);
  assert.ok((await session.get()).valueUsed >= prices.worst("priced", 1, 60));
});

test("an answer that was nothing but reasoning costs its usage when it was streamed", async () => {
  const session = await newSession();
  const usage = { prompt_tokens: 10, completion_tokens: 50, total_tokens: 60, completion_tokens_details: { reasoning_tokens: 50 } };
  const chunk = (more: object) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "x", ...more })}\n\n`;
  const body = chunk({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }) + chunk({ choices: [], usage }) + "data: [DONE]\n\n";
  const fetch = async () => new Response(body, { headers: { "Content-Type": "text/event-stream" } });
  const model = meteredModel(session, prices, await provider(false, fetch).getModel("x"), "x", { models });
  await assert.rejects(drain(model.getStreamedResponse(request)), ModelBehaviorError);
  const { valueUsed, valueHeld } = await session.get();
  assert.deepEqual([valueUsed, valueHeld], [prices.cost("priced", { input: 10, reasoning: 50 }), 0n]);
});

test("a response that ends at its maximum and is not streamed is committed at its hold: the Agents SDK keeps its usage to itself", async () => {
  const session = await newSession();
  let held = 0n;
  const answer = { id: "x", object: "response", status: "incomplete", output: [], usage: { input_tokens: 10, output_tokens: 60, total_tokens: 70 } };
  const fetch = async () => ((held = (await session.get()).valueHeld), Response.json(answer));
  const model = meteredModel(session, prices, await provider(true, fetch).getModel("x"), "x", { models });
  await assert.rejects(new Runner().run(new Agent({ name: "scout", model, modelSettings: { maxTokens: 60 } }), "?"), ModelBehaviorError);
  const { valueUsed, valueHeld } = await session.get();
  assert.deepEqual([valueUsed, valueHeld], [held, 0n]);
  assert.ok(held > 0n);
});

test("a streamed response that ends at its maximum commits its usage, and its hold without one", async () => {
  const session = await newSession();
  const usages: readonly (readonly [object | undefined, bigint | undefined])[] = [
    [{ input_tokens: 10, output_tokens: 2 }, 60n], [{ input_tokens: -1, output_tokens: 2 }, undefined], [undefined, undefined],
  ];
  let used = 0n;
  for (const [usage, cost] of usages) {
    const model: Model = {
      getResponse: () => Promise.reject(new Error("it is streamed")),
      async *getStreamedResponse() {
        yield { type: "model", event: { type: "response.output_text.delta", delta: "x" } };
        yield { type: "model", event: { type: "response.incomplete", response: { usage } } };
      },
    };
    const read = () => drain(meteredModel(session, prices, model, "x", { models }).getStreamedResponse(request));
    await (cost === undefined ? assert.rejects(read(), UsageMissing) : read());
    used += cost ?? 0n;
    const { valueUsed, valueHeld } = await session.get();
    assert.ok(valueHeld === 0n && (cost === undefined ? valueUsed > used : valueUsed === used), `${valueUsed} used of ${used}`);
    used = valueUsed;
  }
});

test("a tool whose price is negative or no amount is refused at once", () => {
  for (const value of [-1n, 0.01, undefined] as bigint[]) {
    assert.throws(() => chargedTool({} as Session, "search", { value }, () => "x"), /^RangeError: .*"search" must be an amount/);
  }
});

test("a tool is charged before it runs, and its refusal reaches the model", async () => {
  const session = await newSession(usd("0.3"), ["search"]);
  const price = { value: usd("0.1"), scope: "search" };
  let runs = 0;
  const search = chargedTool(session, "search", price, async ({ fail }: { fail: boolean }) => {
    runs++;
    if (fail) throw new Error("no network");
    return "found";
  });
  assert.equal(await search({ fail: false }), "found");
  await assert.rejects(search({ fail: true }), /no network/);
  assert.equal((await session.get()).valueUsed, usd("0.1"));
  await chargedTool(session, "search", { ...price, charge: "always" }, async () => { throw new Error("no"); })().catch(() => {});
  await search({ fail: false });
  await assert.rejects(search({ fail: false }), LimitReached);
  await assert.rejects(chargedTool(session, "delete", { value: 0n, scope: "delete" }, () => "x")(), InsufficientScope);
  assert.equal(runs, 3);
  const wrapped = tool({ name: "search", description: "Searches", parameters: z.object({ fail: z.boolean() }), execute: search, errorFunction: explainRefusal });
  assert.match(String(await wrapped.invoke({} as never, '{"fail":false}')), /^Refused: max_value_usd .* 0 of 0.3 USD are left .* ask the owner/);
  assert.equal((await organization.getSession(session.id)).valueHeld, 0n);
});
