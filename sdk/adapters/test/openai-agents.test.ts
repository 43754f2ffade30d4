import assert from "node:assert/strict";
import test from "node:test";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool, type Model, type ModelRequest } from "@openai/agents";
import OpenAI from "openai";
import { z } from "zod";
import { InsufficientScope, LimitReached, usd, type Session } from "@remit/sdk";
import { UsageMissing } from "@remit/sdk/metering";
import { chargedTool, explainRefusal, meteredModel, meteredModelProvider } from "@remit/adapters/openai-agents";
import { baseURL, exhaust, fakedFetch, models, newSession, organization, prices, reconcile, type Call } from "./reconcile.js";

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

for (const [name, useResponses] of [["chat", false], ["responses", true]] as const) {
  test(`the calls of ${name} by OpenAI Agents cost what the provider counted`, () => reconcile(call(useResponses)));
  test(`the calls of ${name} by OpenAI Agents stay within the budget`, () => exhaust(call(useResponses)));
}

test("a model that reports no usage throws UsageMissing, and one alone is metered", async () => {
  const session = await newSession();
  const fetch = async () => Response.json({ id: "x", choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }] });
  const model = await provider(false, fetch).getModel("x");
  const agent = new Agent({ name: "scout", model: meteredModel(session, prices, model, "x", { models }), modelSettings: { maxTokens: 60 } });
  await assert.rejects(new Runner().run(agent, "?"), UsageMissing);
  const { actionCount, valueUsed, valueHeld } = await session.get();
  assert.deepEqual([actionCount, valueUsed, valueHeld], [1, 0n, 0n]);
});

test("a streamed response that ends at its maximum commits its usage, and is rolled back without one", async () => {
  const session = await newSession();
  const request = { input: "?", modelSettings: { maxTokens: 60 }, tools: [], outputType: "text", handoffs: [], tracing: false } as ModelRequest;
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
    const read = async () => { for await (const _ of meteredModel(session, prices, model, "x", { models }).getStreamedResponse(request)) {} };
    await (cost === undefined ? assert.rejects(read(), UsageMissing) : read());
    used += cost ?? 0n;
    const { valueUsed, valueHeld } = await session.get();
    assert.deepEqual([valueUsed, valueHeld], [used, 0n]);
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
  assert.match(String(await wrapped.invoke({} as never, '{"fail":false}')), /^Refused: max_value_usd .* 0 of 0.3 USD are left .* ask whoever/);
  assert.equal((await organization.getSession(session.id)).valueHeld, 0n);
});
