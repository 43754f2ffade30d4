import assert from "node:assert/strict";
import test from "node:test";
import { formatUSD, usd, USD } from "@remit/sdk";
import { parse, write } from "../dist/json.js";
import { newNetwork } from "./network.js";
import { acme, newAgent, newSession } from "./service.js";

test("amounts are read by their exact value and written in the shortest form", () => {
  for (const [text, amount, written] of [
    ["0", 0n, "0"],
    ["-0.0", 0n, "0"],
    ["0e99", 0n, "0"],
    ["0.000001", 1n, "0.000001"],
    ["0.37", 370_000n, "0.37"],
    ["5.0", 5_000_000n, "5"],
    ["0.5e1", 5_000_000n, "5"],
    ["1E+2", 100_000_000n, "100"],
    ["1200e-3", 1_200_000n, "1.2"],
    ["0.3700000000", 370_000n, "0.37"],
    ["999999999.999999", 999_999_999_999_999n, "999999999.999999"],
    ["1000000000", 1_000_000_000_000_000n, "1000000000"],
  ] as const) {
    assert.equal(usd(text), amount, text);
    assert.equal(formatUSD(amount), written);
  }
  assert.equal(formatUSD(-1n), "-0.000001"); // differences may be negative
  assert.equal((37n * USD) / 100n, usd("0.37"));
});

test("an invalid amount is refused", () => {
  for (const text of ["", "-1", "0.0000001", "1000000000.000001", "1e10", "1e400", "1e-400", "NaN", ".5", "5.", " 5", "0x1", "1_0", "$5"]) {
    assert.throws(() => usd(text), RangeError, text);
  }
});

test("only the service's own amounts are read as amounts", () => {
  const text = String.raw`{"a_usd" : 999999999.999999,"limit":"max_value_usd","n":1.5,"s":"\"x_usd\": 7 {","list_usd":[1,2],
    "metadata":{"a_usd":0.1,"deep":[{"b_usd":2}]},"body":{"b_usd":-0,"pre_state":{"c_usd":3},"d_usd":1e3}}`;
  assert.deepEqual(parse(text), {
    a_usd: "999999999.999999", limit: "max_value_usd", n: 1.5, s: `"x_usd": 7 {`, list_usd: [1, 2],
    metadata: { a_usd: 0.1, deep: [{ b_usd: 2 }] }, body: { b_usd: "-0", pre_state: { c_usd: 3 }, d_usd: "1e3" },
  });
  for (const broken of [`{"a_usd":1`, `{"a_usd":01x}`, `{a_usd:1}`, ""]) {
    assert.throws(() => parse(broken), SyntaxError, broken);
  }
});

test("text that is not JSON is refused as fast as valid JSON is read", () => {
  const text = `{"a_usd":1,"s":"${String.raw`\"`.repeat(80_000)}`; // a string without an end
  const begun = performance.now();
  assert.throws(() => parse(text), SyntaxError);
  assert.equal((parse(`${text}"}`) as { s: string }).s.length, 80_000);
  assert.ok(performance.now() - begun < 2_000);
});

test("amounts are written as exact numbers, and other types are refused", () => {
  assert.equal(write({ a_usd: 999_999_999_999_999n, b: undefined, c: ["x"], d: { e_usd: 1 } }), `{"a_usd":999999999.999999,"c":["x"],"d":{"e_usd":1}}`);
  assert.throws(() => write({ a_usd: 0.37 }), /a_usd must be a bigint/);
  assert.throws(() => write({ a_usd: "0.37" }), /a_usd must be a bigint/);
  assert.throws(() => write({ metadata: () => 1 }), /metadata cannot be written/);
});

// A JavaScript number would round it to 1000000000.
test("999999999.999999 survives the round trip to the service", async (t) => {
  const network = await newNetwork(t);
  const most = usd("999999999.999999");
  const { agent } = await newAgent([], network.client());
  const made = await acme.createSession({ agentId: agent.id, maxValue: most, metadata: { price_usd: 0.25 } });
  assert.equal(made.maxValue, most);
  assert.deepEqual(made.metadata, { price_usd: 0.25 });

  const session = agent.session(made.id);
  const left = await session.charge({ value: usd("999999999.999998") });
  assert.equal(left.valueUsed, 999_999_999_999_998n);
  assert.equal(left.remainingValue, 1n);
  assert.match(network.seen.at(-1)!.body, /"value_usd":999999999\.999998}/);
  const [last, over] = await session.chargeMany([{ value: 1n }, { value: 1n }]);
  assert.ok(last?.ok && last.usage.valueUsed === most && last.usage.remainingValue === 0n);
  assert.equal(over?.ok, false);
  assert.equal((await session.get()).valueUsed, most);
});

test("amounts in the data of events are exact too", async () => {
  const session = await newSession({ maxValue: 1n });
  await acme.updateSession(session.id, { maxValue: usd("999999999.999999") });
  const { agentId } = await session.get();
  for await (const event of acme.events(agentId)) {
    if (event.type === "session.limits_changed") {
      assert.equal(event.data?.["max_value_usd"], 999_999_999_999_999n);
      return;
    }
  }
});

test("a number where an amount belongs is refused before anything is sent", async () => {
  const session = await newSession();
  await assert.rejects(session.charge({ value: 0.37 as unknown as bigint }), TypeError);
  assert.equal((await session.get()).actionCount, 0);
});
