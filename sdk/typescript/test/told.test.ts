// Tests of API keys, usage, the events of all agents, and webhooks.
import assert from "node:assert/strict";
import test from "node:test";
import { NotFound, OutcomeUnknown, RemitError, Unauthorized, Unavailable, type Organization } from "@remit/sdk";
import { newNetwork, type Fate } from "./network.js";
import { collect, failure } from "./service.js";

const moment = "2026-11-21T09:19:32.859Z";
const says = (body: unknown, status = 200, headers: Record<string, string> = {}): Fate => ({ status, headers, body: JSON.stringify(body) });
const refuses = (status: number, code: string, more: object = {}): Fate =>
  says({ status, code, detail: "words", request_id: "r-1", ...more }, status);
const gone = refuses(404, "not_found");
const away = refuses(503, "unavailable");
const inTurn = (fates: readonly Fate[]) => ({ nth }: { nth: number }) => fates[Math.min(nth, fates.length) - 1]!;

const event = (seq: number) => ({
  id: `a1:1-${seq}`, type: "agent.changed", occurred_at: moment, agent_id: "a1", actor: { type: "api_key", id: "k1" }, seq,
  previous_hash: "5f", of_tomorrow: [1], data: { max_value_usd: 0.5 },
});
const page = (numbers: readonly number[], next?: number): Fate =>
  says(numbers.map(event), 200, next === undefined ? {} : { Link: `<http://127.0.0.1:9/v1/events?after=${next}&limit=1>; rel="next"` });

test("a deletion whose response is lost succeeds", async (t) => {
  const outcomes: [fates: Fate[], error: (new (...args: never[]) => RemitError) | undefined][] = [
    [["lose", gone], undefined],
    [[refuses(503, "outcome_unknown"), gone], undefined],
    [[gone], NotFound],
    [[away, gone], NotFound],
    [["lose", { status: 404, body: "<html>" }], OutcomeUnknown],
  ];
  for (const [fates, error] of outcomes) {
    for (const remove of [
      (o: Organization) => o.deleteApiKey("k1"), (o: Organization) => o.deleteWebhook("w1"), (o: Organization) => o.deleteBudget(),
    ]) {
      const network = await newNetwork(t);
      network.fate = inTurn(fates);
      const removing = remove(network.client().organization("rmk_1"));
      await (error === undefined ? removing : failure(removing, error as any));
    }
  }
});

test("usage is read exactly", async (t) => {
  const network = await newNetwork(t);
  const lines = '[{"day":"2026-11-01","session_id":null,"action_count":-2,"value_usd":-0.000001},' +
    '{"day":"2026-11-02","session_id":"s1","action_count":3,"value_usd":9007199254.740993,"of_tomorrow":{}}]';
  network.fate = inTurn([{ status: 200, body: lines }, says([{ action_count: 1, value_usd: 1.0000001 }]), { status: 200, body: "day\r\n" }]);
  const o = network.client().organization("rmk_1");
  const [back, large] = await o.usage({ firstDay: "2026-11-01", lastDay: "2026-11-02", groupBy: ["day", "session"], agentId: "a1" });
  assert.deepEqual([back?.day, back?.sessionId, back?.actionCount, back?.value], ["2026-11-01", undefined, -2, -1n]);
  assert.deepEqual([large?.sessionId, large?.actionType, large?.value], ["s1", undefined, 9_007_199_254_740_993n]);
  assert.equal(network.seen[0]?.query, "from=2026-11-01&to=2026-11-02&group_by=day,session&agent_id=a1&format=json");
  await failure(o.usage(), RemitError);
  assert.equal(await o.usageCsv({ groupBy: ["day"] }), "day\r\n");
  const sent = network.seen.length;
  for (const wrong of [() => o.usage({ groupBy: "day" } as any), () => o.usage({ from: "2026-11-01" } as any)]) {
    await assert.rejects(wrong, TypeError);
  }
  await assert.rejects(o.createWebhook({ url: "https://example.com/", types: "session.ended" } as any), TypeError);
  assert.throws(() => o.allEvents({ types: "session.ended" } as any), TypeError);
  assert.equal(network.seen.length, sent);
});

test("all events go on after the last one, however long the service is away", async (t) => {
  const network = await newNetwork(t);
  network.fate = ({ nth }) => (nth === 1 ? page([41, 42]) : nth < 6 ? away : nth < 8 ? "lose" : nth === 8 ? page([], 43) : page([44]));
  const seen: string[] = [];
  for await (const e of network.client().organization("rmk_1").allEvents({ after: 40 })) {
    assert.deepEqual([e.id, e.previousHash, e.actor.id, e.data], [`a1:1-${e.sequence}`, "5f", "k1", { max_value_usd: 500_000n }]);
    if (seen.push(e.id) === 3) break;
  }
  assert.deepEqual(seen, ["a1:1-41", "a1:1-42", "a1:1-44"]);
  const asked = network.seen.map((s) => s.query.replace("&limit=100", ""));
  assert.deepEqual(asked, ["after=40&wait=30", ...Array<string>(7).fill("after=42&wait=30"), "after=43&wait=30"]);
});

test("the events of an agent go on after the last one, however long the service is away, and ask at most once a second", async (t) => {
  const network = await newNetwork(t);
  const times: number[] = [];
  network.fate = ({ nth }) => {
    times.push(performance.now());
    return nth === 1 ? page([1]) : nth < 7 ? away : nth < 9 ? page([]) : page([2]);
  };
  const seen: string[] = [];
  for await (const e of network.client().organization("rmk_1").events("a1")) {
    if (seen.push(e.id) === 2) break;
  }
  assert.deepEqual(seen, ["a1:1-1", "a1:1-2"]);
  assert.deepEqual(network.seen.slice(1).map((s) => s.query), Array<string>(8).fill("after=a1:1-1&limit=100&wait=30"));
  assert.ok(times[8]! - times[7]! > 900, `it asks again after ${times[8]! - times[7]!} ms`);
});

test("all events end with a refusal, and with the signal", async (t) => {
  const network = await newNetwork(t);
  const o = network.client().organization("rmk_1");
  network.fate = () => refuses(401, "invalid_api_key");
  await failure(collect(o.allEvents()), Unauthorized);
  assert.equal(network.seen.length, 1);
  network.fate = () => away;
  await failure(collect(o.allEvents({ wait: false })), Unavailable);
  await assert.rejects(collect(o.allEvents({ signal: AbortSignal.timeout(100) })), { name: "TimeoutError" });
});
