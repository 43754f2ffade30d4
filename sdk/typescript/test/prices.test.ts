import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { InvalidPrices, Prices, UnknownModel, type TokenUsage } from "@remit/sdk/prices";

// The vectors that the tests of every SDK read.
const text = (name: string) => readFileSync(new URL(`../../testdata/prices/${name}`, import.meta.url), "utf8");
const rows = <T>(name: string) => JSON.parse(text(name)) as T[];
const table = Prices.parse(text("table.json"));

type Outcome = { readonly name: string; readonly cost_micro_usd?: number; readonly error?: string };
const errors: Readonly<Record<string, new (...args: any[]) => Error>> = { UnknownModel, InvalidUsage: RangeError };

function check({ name, cost_micro_usd: cost, error }: Outcome, call: () => bigint): void {
  if (error === undefined) {
    assert.equal(call(), BigInt(cost!), name);
  } else {
    assert.throws(call, errors[error]!, name);
  }
}

test("the cost of a call is exact and rounded up once", () => {
  type Counts = { readonly [kind in "input" | "cached_input" | "cache_creation_input" | "hour_cache_creation_input" | "output" | "reasoning"]?: number };
  for (const row of rows<Outcome & { readonly model: string; readonly usage: Counts }>("cases.json")) {
    const { cached_input: cachedInput = 0, cache_creation_input: cacheCreationInput = 0, hour_cache_creation_input: hourCacheCreationInput = 0, ...rest } = row.usage;
    check(row, () => table.cost(row.model, { ...rest, cachedInput, cacheCreationInput, hourCacheCreationInput }));
  }
});

test("the worst case is of the dearest kinds and tier", () => {
  type Row = Outcome & { readonly model: string; readonly input_tokens: number; readonly output_tokens: number; readonly hour_cache?: boolean };
  for (const row of rows<Row>("worst.json")) {
    check(row, () => table.worst(row.model, row.input_tokens, row.output_tokens, undefined, row.hour_cache));
  }
});

test("no call costs more than the worst case", () => {
  for (let i = 0; i < 1_000; i++) {
    const some = () => Math.floor(Math.random() * 200_000);
    const usage = { input: some(), cachedInput: some(), cacheCreationInput: some(), output: some(), reasoning: some() };
    for (const model of ["full", "two-tiers", "exact"]) {
      const worst = table.worst(model, usage.input + usage.cachedInput + usage.cacheCreationInput, usage.output + usage.reasoning);
      assert.ok(table.cost(model, usage) <= worst, `${model}: ${JSON.stringify(usage)}`);
    }
  }
});

test("the limits of a model are positive whole numbers, or unknown", () => {
  type Row = { readonly name: string; readonly model: string; readonly max_input_tokens: number | null; readonly max_output_tokens: number | null };
  for (const row of rows<Row>("limits.json")) {
    const { maxInputTokens, maxOutputTokens } = table.limits(row.model);
    assert.deepEqual([maxInputTokens ?? null, maxOutputTokens ?? null], [row.max_input_tokens, row.max_output_tokens], row.name);
  }
  assert.throws(() => table.limits("gpt-unheard-of"), UnknownModel);
});

test("an invalid table is refused, and the error names model and member", () => {
  for (const row of rows<{ readonly name: string; readonly text: string; readonly model: string | null; readonly member: string | null }>("invalid.json")) {
    const fits = (error: unknown) =>
      error instanceof InvalidPrices && (error.model ?? null) === row.model && (error.member ?? null) === row.member &&
      error.message.includes(row.model ?? "") && error.message.includes(row.member ?? "");
    assert.throws(() => Prices.parse(row.text), fits, row.name);
  }
  assert.throws(() => Prices.parse(" ".repeat(16 * 2 ** 20) + "{}"), InvalidPrices);
  assert.throws(() => Prices.parse(`{"m":{"about":"${"a".repeat(15 * 2 ** 20)}","input_cost_per_token":-1}}`), InvalidPrices); // of a long text
});

test("a misspelled kind of token is refused", () => {
  assert.throws(() => table.cost("plain", { cached_input: 1 } as TokenUsage), /^TypeError: .*it is cachedInput/);
});

test("a table of LiteLLM's size is read in a moment", () => {
  const entry = JSON.stringify({ input_cost_per_token: 2e-6, output_cost_per_token: 8e-6, note: 'a "quoted" \\ 1e-9 text'.repeat(20) });
  const models = Array.from({ length: 3_000 }, (_, i) => `"model-${i}":${entry}`);
  const large = Prices.parse(`{${models.join(",")}}`);
  assert.equal(large.cost("model-2999", { input: 1_000, output: 500 }), 6_000n);
});
