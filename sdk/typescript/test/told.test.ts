// Tests of API keys, usage, the events of all agents, and webhooks.
import assert from "node:assert/strict";
import test from "node:test";
import {
  InsufficientRole, LastAdminKey, NotFound, OutcomeUnknown, RemitError, Unauthorized, Unavailable, type Organization,
} from "@remit/sdk";
import { newNetwork, type Fate } from "./network.js";
import { acme, collect, failure, newSession, remit } from "./service.js";

const moment = "2026-11-21T09:19:32.859Z";
const rotated = { api_key: "rmk_2", secret: "whsec_2", previous_expires_at: moment };
const key = { id: "k1", name: "dashboard", role: "viewer", hint: "wxyz", created_at: moment, expires_at: null, last_used_at: null };
const webhook = { id: "w1", url: "https://example.com/", types: [], description: "", missed_events: 0, created_at: moment };
const delivery = { id: "d1", webhook_id: "w1", type: "webhook.test", status: "pending", attempt_count: 0, created_at: moment };

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

type Case = [call: (o: Organization) => Promise<unknown>, place: string, body: string, keyed: boolean, said: unknown];

const cases: Case[] = [
  [(o) => o.createApiKey({ name: "dashboard", role: "viewer", expiresInSeconds: 1.5 }), "POST /v1/api-keys",
    '{"name":"dashboard","role":"viewer","expires_in_seconds":2}', true, { ...key, api_key: "rmk_2" }],
  [(o) => o.rotateApiKey("k/1", { graceSeconds: 0 }), "POST /v1/api-keys/k%2F1/rotate", '{"grace_seconds":0}', true, rotated],
  [(o) => o.deleteApiKey("k1"), "DELETE /v1/api-keys/k1", "", false, {}],
  [(o) => o.createWebhook({ url: "https://example.com/", types: ["session.ended"] }), "POST /v1/webhooks",
    '{"url":"https://example.com/","types":["session.ended"]}', true, { ...webhook, secret: "whsec_2" }],
  [(o) => o.updateWebhook("w1", { types: [], description: "" }), "PATCH /v1/webhooks/w1", '{"types":[],"description":""}', false, webhook],
  [(o) => o.rotateWebhookSecret("w1"), "POST /v1/webhooks/w1/rotate", "{}", true, rotated],
  [(o) => o.testWebhook("w1"), "POST /v1/webhooks/w1/test", "{}", true, delivery],
  [(o) => o.retryDelivery("w1", "d1"), "POST /v1/webhooks/w1/deliveries/d1/retry", "", false, delivery],
  [(o) => o.deleteWebhook("w1"), "DELETE /v1/webhooks/w1", "", false, {}],
];

test("each call about keys and webhooks is one request, and a retry reuses its key unless the request is idempotent", async (t) => {
  for (const [call, place, body, keyed, said] of cases) {
    const network = await newNetwork(t);
    network.fate = inTurn([{ status: 503, body: "<html>" }, { status: 503, body: "<html>" }, says(said)]);
    await call(network.client().organization("rmk_1"));
    assert.deepEqual(network.seen.map((s) => [s.place, s.body]), [[place, body], [place, body], [place, body]]);
    const keys = new Set(network.seen.map((s) => s.key));
    assert.ok(keys.size === 1 && keys.has(undefined) !== keyed, `${place} has the keys ${[...keys]}`);
  }
});

test("a deletion whose response is lost succeeds", async (t) => {
  const outcomes: [fates: Fate[], error: (new (...args: never[]) => RemitError) | undefined][] = [
    [["lose", gone], undefined],
    [[refuses(503, "outcome_unknown"), gone], undefined],
    [[gone], NotFound],
    [[away, gone], NotFound],
    [["lose", { status: 404, body: "<html>" }], OutcomeUnknown],
  ];
  for (const [fates, error] of outcomes) {
    for (const remove of [(o: Organization) => o.deleteApiKey("k1"), (o: Organization) => o.deleteWebhook("w1")]) {
      const network = await newNetwork(t);
      network.fate = inTurn(fates);
      const removing = remove(network.client().organization("rmk_1"));
      await (error === undefined ? removing : failure(removing, error as any));
    }
  }
});

test("the errors of keys have types", async (t) => {
  const network = await newNetwork(t);
  network.fate = inTurn([refuses(403, "insufficient_role", { required_role: "admin" }), refuses(409, "last_admin_key")]);
  const o = network.client().organization("rmk_1");
  assert.equal((await failure(o.deleteApiKey("k1"), InsufficientRole)).requiredRole, "admin");
  await failure(o.deleteApiKey("k1"), LastAdminKey);
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

test("all events of some types go over empty pages", async (t) => {
  const network = await newNetwork(t);
  network.fate = ({ query }) => (query.startsWith("after=0&") ? page([], 1000) : query.startsWith("after=1000&") ? page([1007], 1900) : page([]));
  const found = await collect(network.client().organization("rmk_1").allEvents({ types: ["agent.changed", "agent.created"], wait: false }));
  assert.deepEqual(found.map((e) => e.sequence), [1007]);
  assert.ok(network.seen.every((s) => s.query.includes("types=agent.changed,agent.created")));
  assert.match(network.seen[2]!.query, /^after=1900&/);
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

test("all events of the service are yielded in order", async () => {
  const made = await remit.createOrganization({ name: "told" });
  const o = remit.organization(made.apiKey!);
  const scout = await o.createAgent({ name: "scout" });
  const session = await o.createSession({ agentId: scout.id });
  await o.endSession(session.id);
  const seen: [number, string][] = [];
  for await (const e of o.allEvents()) {
    seen.push([e.sequence, e.type]);
    if (e.type === "session.ended") break;
  }
  assert.deepEqual(seen, [[1, "agent.created"], [2, "session.created"], [3, "session.ended"]]);
  const rest = await collect(o.allEvents({ after: 1, types: ["session.ended", "agent.created"], wait: false }));
  assert.deepEqual(rest.map((e) => [e.sequence, e.sessionId]), [[3, session.id]]);
  assert.match(await o.checkpoint(), /^[\w-]+\.[\w-]+\.[\w-]+$/);
});

test("keys do what their roles allow", async () => {
  const made = await remit.createOrganization({ name: "told" });
  const o = remit.organization(made.apiKey!);
  const desk = await o.createApiKey({ name: "desk", role: "operator", expiresInSeconds: 86_400 });
  assert.deepEqual([desk.expiresAt!.getTime() - desk.createdAt.getTime(), desk.hint], [86_400_000, desk.apiKey.reveal().slice(-4)]);
  const operator = remit.organization(desk.apiKey);
  assert.equal((await failure(operator.createAgent({ name: "scout" }), InsufficientRole)).requiredRole, "admin");
  const [own, first] = await operator.apiKeys();
  assert.deepEqual([own?.id, "apiKey" in own!, first?.role, first?.expiresAt], [desk.id, false, "admin", undefined]);
  await failure(o.deleteApiKey(first!.id), LastAdminKey);
  const renewed = remit.organization((await o.rotateApiKey(desk.id, { graceSeconds: 0 })).apiKey);
  await failure(operator.apiKeys(), Unauthorized);
  assert.equal((await renewed.apiKeys()).length, 2);
  await o.deleteApiKey(desk.id);
  await failure(renewed.apiKeys(), Unauthorized);
});

test("usage adds up to what the session shows", async () => {
  const session = await newSession();
  await session.charge({ actionType: "llm.call", value: 125_000n, count: 2 });
  await session.charge({ value: 1n });
  const [calls, rest] = await session.usage();
  const { valueUsed, agentId } = await session.get();
  assert.deepEqual([calls?.actionType, calls?.actionCount, calls?.value], ["llm.call", 2, 125_000n]);
  assert.deepEqual([rest?.actionType, calls!.value + rest!.value], [undefined, valueUsed]);
  const [line] = await acme.usage({ groupBy: ["session"], agentId });
  assert.deepEqual([line?.sessionId, line?.actionCount, line?.value], [session.id, 3, valueUsed]);
  assert.equal(await acme.usageCsv({ groupBy: ["action_type"], agentId }), "action_type,action_count,value_usd\r\n,1,0.000001\r\nllm.call,2,0.125\r\n");
});

test("a webhook is created, tested and deleted", async () => {
  const made = await acme.createWebhook({ url: "https://127.0.0.1/remit", description: "on call" }); // to which the service refuses to connect
  assert.deepEqual([made.types, made.description, made.failingSince, made.secret.reveal().slice(0, 6)], [[], "on call", undefined, "whsec_"]);
  assert.deepEqual([(await acme.getWebhook(made.id)).url, (await acme.webhooks()).map((w) => w.id)], [made.url, [made.id]]);
  const sent = await acme.testWebhook(made.id);
  assert.deepEqual([sent.type, sent.status, sent.eventSequence, sent.webhookId], ["webhook.test", "pending", undefined, made.id]);
  const pending = await collect(acme.deliveries(made.id, { status: "pending" })); // the test that the service sends by itself may be there too
  assert.equal(pending.filter((d) => d.id === sent.id).length, 1);
  assert.equal((await acme.retryDelivery(made.id, sent.id)).id, sent.id);
  await acme.deleteWebhook(made.id);
  await failure(acme.testWebhook(made.id), NotFound);
});
