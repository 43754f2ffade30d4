// Service tiers: a hold is at the dearest that a request can get, and the cost is that of the tier that the answer says.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { USD } from "@remit/sdk";
import { meteredFetch, UnboundedCall } from "@remit/sdk/fetch";
import { Prices } from "@remit/sdk/prices";
import { address, answer, events, recording, stream } from "./provider.js";
import { failure, newSession } from "./service.js";

const price = (more: object) => ({ input_cost_per_token: 0, output_cost_per_token: 1e-3, max_input_tokens: 1, max_output_tokens: 1_000, ...more });
const prices = Prices.parse(JSON.stringify({
  one: price({}),
  three: price({ output_cost_per_token_flex: 5e-4, input_cost_per_token_priority: 0, output_cost_per_token_priority: 3e-3 }),
}));

type Row = { readonly name: string; readonly model: string; readonly requested?: string; readonly served?: string; readonly cost_micro_usd: number };
type Vectors = {
  readonly prices: object;
  readonly worst: readonly (Row & { readonly input_tokens: number; readonly output_tokens: number })[];
  readonly cost: readonly (Row & { readonly usage: Readonly<Record<string, number>> })[];
  readonly tiers: readonly { readonly name: string; readonly model: string; readonly tier: "flex" | "priority"; readonly has: boolean }[];
};

test("the prices of service tiers are those of the shared vectors", () => {
  const vectors = JSON.parse(readFileSync(new URL("../../testdata/prices/tiers.json", import.meta.url), "utf8")) as Vectors;
  const table = Prices.parse(JSON.stringify(vectors.prices));
  for (const { name, model, requested, input_tokens, output_tokens, cost_micro_usd } of vectors.worst) {
    assert.equal(table.worst(model, input_tokens, output_tokens, requested), BigInt(cost_micro_usd), name);
  }
  for (const { name, model, requested, served, usage, cost_micro_usd } of vectors.cost) {
    const { cached_input: cachedInput = 0, cache_creation_input: cacheCreationInput = 0, hour_cache_creation_input: hourCacheCreationInput = 0, ...rest } = usage;
    assert.equal(table.cost(model, { ...rest, cachedInput, cacheCreationInput, hourCacheCreationInput }, { requested, served }), BigInt(cost_micro_usd), name);
  }
  for (const { name, model, tier, has } of vectors.tiers) {
    assert.equal(table.hasTier(model, tier), has, name);
  }
});

test("a price of a service tier is checked like any other", () => {
  const seventeen = Array.from({ length: 17 }, (_, i) => [`input_cost_per_token_above_${i + 1}k_tokens_flex`, 1e-6]);
  assert.throws(() => Prices.parse(JSON.stringify({ m: price(Object.fromEntries(seventeen)) })), /seventeenth/);
  assert.throws(() => Prices.parse(JSON.stringify({ m: price({ output_cost_per_token_priority: "ask" }) })), /output_cost_per_token_priority/);
});

const usages = {
  "/chat/completions": { prompt_tokens: 1, completion_tokens: 10 }, "/responses": { input_tokens: 1, output_tokens: 10 }, "/messages": { input_tokens: 1, output_tokens: 10 },
} as const;
type Path = keyof typeof usages;

function replyOf(path: Path, tier: string | undefined, streamed: boolean): Response {
  const [usage, service_tier] = [usages[path], tier];
  if (path === "/messages") {
    const told = { ...usage, service_tier };
    return streamed
      ? stream(...events({ type: "message_start", message: { usage: told } }, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage }, { type: "message_stop" }))
      : answer([JSON.stringify({ usage: told })]);
  }
  if (!streamed) {
    return answer([JSON.stringify({ usage, service_tier })]);
  }
  return path === "/responses"
    ? stream(...events({ type: "response.created", response: { service_tier: "auto" } }, { type: "response.completed", response: { usage, service_tier } }))
    : stream(...events({ choices: [{ delta: {} }], service_tier }, { choices: [], usage, service_tier }, "[DONE]"));
}

// What is held for 10 tokens of output and what they cost, in micro-dollars; 10,000 is the standard price.
const cases: readonly (readonly [model: string, asked: string | undefined, answered: string | undefined, held: bigint, cost: bigint])[] = [
  ["three", undefined, "default", 30_000n, 10_000n], ["three", undefined, "priority", 30_000n, 30_000n], ["three", undefined, "flex", 30_000n, 5_000n],
  ["three", undefined, undefined, 30_000n, 30_000n], ["three", "auto", "standard", 30_000n, 10_000n],
  ["three", "default", undefined, 10_000n, 10_000n], ["three", "standard_only", "standard", 10_000n, 10_000n], ["three", "flex", "flex", 10_000n, 5_000n],
  ["three", "flex", undefined, 10_000n, 10_000n], ["three", "priority", "default", 30_000n, 10_000n], ["three", "priority", "priority", 30_000n, 30_000n],
  ["one", "auto", "default", 10_000n, 10_000n], ["one", "flex", "flex", 10_000n, 10_000n],
  ["one", undefined, "priority", 10_000n, 10_000n], ["three", undefined, "unheard-of", 30_000n, 30_000n],
];

for (const path of Object.keys(usages) as Path[]) {
  test(`a call of ${path} holds the dearest tier that it can get, and costs the one that it got`, async () => {
    for (const [model, asked, answered, held, cost] of cases) {
      for (const streamed of [false, true]) {
        const session = await newSession({ maxValue: USD });
        let hold = 0n;
        const { fetch } = recording(async () => ((hold = (await session.get()).valueHeld), replyOf(path, answered, streamed)));
        const body = { model, max_tokens: 10, max_output_tokens: 10, stream: streamed, messages: [], ...(asked !== undefined && { service_tier: asked }) };
        await (await meteredFetch(session, prices, { fetch })(address + path, { method: "POST", body: JSON.stringify(body) })).text();
        const { valueUsed, valueHeld } = await session.get();
        const about = `${model}, ${asked}, ${answered}, ${streamed}`;
        assert.deepEqual([hold, valueUsed, valueHeld], [held, cost, 0n], about);
      }
    }
  });
}

test("priority without a price, and a tier that is not known, are refused", async () => {
  const { fetch, sent } = recording(() => answer(["{}"]));
  for (const [model, service_tier] of [["one", "priority"], ["three", "scale"], ["three", 1], ["three", ["default"]]] as const) {
    const body = JSON.stringify({ model, max_tokens: 10, messages: [], service_tier });
    await failure(meteredFetch(await newSession(), prices, { fetch })(`${address}/chat/completions`, { method: "POST", body }), UnboundedCall);
  }
  assert.deepEqual(sent, []);
});
