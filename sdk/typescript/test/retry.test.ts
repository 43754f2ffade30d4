import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import test from "node:test";
import {
  IdempotencyKeyReused, LimitReached, OutcomeUnknown, RateLimited, Client, RemitError, Unavailable, USD,
} from "@remit/sdk";
import { TimeIsUp } from "../dist/abort.js";
import { backoff, conclude, Ended } from "../dist/retry.js";
import { newNetwork, type Fate, type Seen } from "./network.js";
import { apiKey, failure, newAgent, newSession, sessionOf } from "./service.js";

const problem = (status: number, code: string, headers: Record<string, string> = {}) => ({
  status, headers, body: JSON.stringify({ actionType: "about:blank", title: "x", status, code, detail: "x", request_id: "r-1" }),
});
// Math.random returns 0 so that there is no backoff, except in tests of backoff, and on Node 18, which needs it for keys.
if (globalThis.crypto !== undefined) {
  Math.random = () => 0;
}

const unavailable = problem(503, "unavailable", { "Retry-After": "0" });

test("a charge whose response is lost is charged once", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const charge = `POST /v1/sessions/${session.id}/actions`;
  network.fate = (seen) => (seen.place === charge && seen.nth <= 2 ? "lose" : "pass");
  const left = await session.charge({ value: USD });
  assert.equal(left.actionCount, 1);
  assert.deepEqual([(await session.get()).actionCount, (await session.get()).valueUsed], [1, USD]);
  const sent = network.seen.filter((s) => s.place === charge);
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent.map((s) => s.key)).size, 1);
  await session.charge(); // another charge has another key
  assert.equal(new Set(network.seen.filter((s) => s.place === charge).map((s) => s.key)).size, 2);
});

test("503 and 429 are retried with the same key after Retry-After", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const charge = `POST /v1/sessions/${session.id}/actions`;
  const fates = [unavailable, problem(503, "outcome_unknown"), problem(429, "rate_limited", { "Retry-After": "0" })];
  network.fate = (seen) => (seen.place === charge ? (fates[seen.nth - 1] ?? "pass") : "pass");
  assert.equal((await session.charge()).actionCount, 1);
  const keys = network.seen.filter((s) => s.place === charge).map((s) => s.key);
  assert.deepEqual([keys.length, new Set(keys).size], [4, 1]);
});

test("a Retry-After is waited for, unless it is too long", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const charge = `POST /v1/sessions/${session.id}/actions`;
  network.fate = (seen) => (seen.place === charge && seen.nth === 1 ? problem(429, "rate_limited", { "Retry-After": "1" }) : "pass");
  const begun = performance.now();
  await session.charge();
  assert.ok(performance.now() - begun > 990); // timers may be early by a millisecond

  for (const [header, least, most] of [["31", 31, 31], ["1".repeat(11), 31, Infinity], ["9".repeat(400), 31, Infinity], [new Date(Date.now() + 90_000).toUTCString(), 60, 90]] as const) {
    network.fate = (seen) => (seen.place === charge ? problem(429, "rate_limited", { "Retry-After": header }) : "pass");
    const sent = network.count(charge);
    const limited = await failure(session.charge(), RateLimited);
    assert.ok(limited.retryAfter! >= least && limited.retryAfter! <= most, String(limited.retryAfter));
    assert.equal(network.count(charge), sent + 1);
  }
});

test("backoff is random below a bound that doubles", (t) => {
  const most = [100, 200, 400, 800, 1600, 3200, 5000, 5000];
  for (const [chance, bounds] of [[0, most.map(() => 0)], [0.5, most.map((m) => m / 2)], [1, most]] as const) {
    t.mock.method(Math, "random", () => chance);
    assert.deepEqual(most.map((_, i) => backoff(i + 1)), bounds);
    assert.equal(backoff(10_000), 5000 * chance);
    t.mock.restoreAll();
  }
});

test("a refusal is not retried", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({ maxActions: 1 }, [], network.client());
  const charge = `POST /v1/sessions/${session.id}/actions`;
  await session.charge({}, { idempotencyKey: "mine" });
  assert.equal((await session.charge({}, { idempotencyKey: "mine" })).actionCount, 1);
  await failure(session.charge(), LimitReached);
  await failure(session.charge({ value: 1n }, { idempotencyKey: "mine" }), IdempotencyKeyReused);
  assert.equal(network.count(charge), 4);
  await assert.rejects(session.charge({}, { idempotencyKey: "no spaces" }), TypeError);
  for (const status of [202, 500, 502, 504, 403, 408, 302]) {
    network.fate = (seen) => (seen.place === charge ? { status, body: "<html>", headers: { Location: "http://127.0.0.1:9/" } } : "pass");
    const sent = network.count(charge);
    const error = await failure(session.charge(), RemitError);
    assert.deepEqual([error.status, error.code], [status, ""]);
    assert.equal(error instanceof OutcomeUnknown, status >= 500 || status === 202, `${status}`);
    assert.equal(network.count(charge), sent + 1);
  }
});

test("attempts are bounded, and the error says whether the write may have happened", async (t) => {
  const network = await newNetwork(t);
  const { agent } = await newAgent([], network.client({ maxAttempts: 2 }));
  const session = await sessionOf(agent);
  const charge = `POST /v1/sessions/${session.id}/actions`;
  const endings: [(seen: Seen) => Fate, new (...all: any[]) => Error][] = [
    [() => "lose", OutcomeUnknown],
    [() => unavailable, Unavailable],
    [() => problem(503, "outcome_unknown"), OutcomeUnknown],
    [(seen) => (seen.nth % 2 === 1 ? "lose" : unavailable), OutcomeUnknown], // the outcome of the lost one stays unknown
    [(seen) => (seen.nth % 2 === 1 ? unavailable : "lose"), OutcomeUnknown],
  ];
  for (const [fate, type] of endings) {
    network.fate = (seen) => (seen.place === charge ? fate(seen) : "pass");
    const sent = network.count(charge);
    const error = await failure(session.charge(), type);
    assert.equal(error instanceof Unavailable, type === Unavailable);
    assert.equal(network.count(charge), sent + 2);
  }
  const reads = `GET /v1/sessions/${session.id}`;
  network.fate = (seen) => (seen.place === reads ? "lose" : "pass");
  await failure(session.get(), Unavailable); // a read has no unknown outcome
});

test("a refusal after a lost response says that nothing happened", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({ maxActions: 1 }, [], network.client());
  await session.charge();
  network.fate = (seen) => (seen.place.endsWith("/actions") && seen.nth === 2 ? "lose" : "pass");
  await failure(session.charge(), LimitReached);
  assert.equal(network.count(`POST /v1/sessions/${session.id}/actions`), 3);
});

test("a proxy's refusal leaves the outcome unknown", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const charge = `POST /v1/sessions/${session.id}/actions`;
  const bodies = ["default backend - 404", "", "{}", '{"message":"no route"}'];
  for (const [before, body] of bodies.entries()) {
    const sent = network.count(charge);
    network.fate = (seen) => (seen.place !== charge ? "pass" : seen.nth === sent + 1 ? "lose" : { status: 404, body });
    assert.equal((await failure(session.charge(), OutcomeUnknown)).status, 404);
    assert.equal(network.count(charge), sent + 2);
    assert.equal((await session.get()).actionCount, before + 1); // it was charged
  }
});

test("an unreadable response leaves the outcome of a write unknown", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  for (const answer of ["", "null", "[]", "{", `{"action_count":1}`, `"${"x".repeat(1 << 20)}"`]) {
    network.fate = (seen) => (seen.place.endsWith("/actions") ? { status: 200, body: answer } : "pass");
    const sent = network.seen.length;
    const error = await failure(session.charge(), OutcomeUnknown);
    assert.match(error.message, /unreadable answer/);
    assert.ok(error.message.length < 300);
    assert.ok(network.seen.length <= sent + 2);
  }
});

test("a write without a key is retried only if it cannot have happened", async (t) => {
  const network = await newNetwork(t);
  const remit = network.client({ idempotencyKeys: false });
  const acme = remit.organization(apiKey);
  const { agent } = await newAgent([]);
  const calls: [string, () => Promise<unknown>][] = [
    ["POST /v1/organizations", () => remit.createOrganization({ name: "twice" })],
    ["POST /v1/agents", () => acme.createAgent({ name: "twice" })],
    [`POST /v1/agents/${agent.id}/secret/rotate`, () => acme.rotateAgentSecret(agent.id)],
  ];
  for (const [place, call] of calls) {
    network.fate = () => "lose";
    await failure(call(), OutcomeUnknown);
    assert.equal(network.count(place), 1);
    network.fate = () => problem(503, "outcome_unknown");
    await failure(call(), OutcomeUnknown);
    assert.equal(network.count(place), 2);
    network.fate = (seen) => [unavailable, problem(429, "rate_limited")][seen.nth - 3] ?? "pass";
    await call();
    assert.equal(network.count(place), 5);
    assert.ok(network.seen.every((s) => s.key === undefined));
  }
});

test("without keys a write with an unknown outcome is not retried, unless it has the caller's key", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, ["admin"], network.client({ idempotencyKeys: false }));
  const charge = `POST /v1/sessions/${session.id}/actions`;
  network.fate = (seen) => (seen.place === charge && seen.nth !== 3 ? "lose" : "pass");
  await failure(session.charge(), OutcomeUnknown);
  assert.equal(network.count(charge), 1);
  await session.charge({}, { idempotencyKey: "mine" });
  network.fate = (seen) => (seen.nth === 1 && /^POST .*(transactions|commit|rollback)$/.test(seen.place) ? unavailable : "pass");
  for (const settle of ["commit", "rollback"] as const) {
    const tx = await session.begin({ actionType: "payment", preState: {} });
    await tx[settle](); // it did not happen, so the SDK retries it without a key too
    assert.equal(network.count(`POST /v1/transactions/${tx.id}/${settle}`), 2);
  }
  await session.chargeMany([{}]);
  const keys = network.seen.filter((s) => s.place.startsWith("POST") && !s.place.includes("/auth/")).map((s) => s.key);
  assert.deepEqual([...new Set(keys)], [undefined, "mine"]);
  assert.equal((await session.get()).actionCount, 5);
});

test("without a connection nothing happened", async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  for (const url of [`http://127.0.0.1:${port}`, "http://nowhere.invalid"]) {
    let sent = 0;
    const counted: typeof fetch = (...all) => (sent++, fetch(...all));
    const nowhere = new Client(url, { fetch: counted, maxAttempts: 2 });
    const error = await failure(nowhere.createOrganization({ name: "x" }), Unavailable);
    assert.ok(error.cause instanceof TypeError);
    assert.equal(sent, 2);
  }
  t.diagnostic("two addresses without a listener");
});

test("a timeout of the SDK is Unavailable or OutcomeUnknown, not the caller's reason", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client({ timeout: 1000, maxAttempts: 1 }));
  await session.get();
  network.fate = () => "hang";
  assert.equal((await failure(session.get(), Unavailable)).message, `remit: GET /v1/sessions/${session.id}: no answer within 1 s`);
  assert.match((await failure(session.charge(), OutcomeUnknown)).message, /the outcome is unknown: no answer within 1 s$/);
  const late = AbortSignal.abort(new TimeIsUp("no answer within 30 s")); // the limit of an exchange, all attempts included
  assert.ok(conclude("POST /v1/auth/token", false, new Ended(late.reason), late) instanceof Unavailable);
});

test("a timeout beyond the range of timers does not fire at once", async () => {
  for (const timeout of [3e9, Infinity]) {
    const slow: typeof fetch = async (_, init) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      init?.signal?.throwIfAborted();
      return Response.json({ active: false });
    };
    const patient = new Client("http://127.0.0.1:9", { fetch: slow, timeout, maxAttempts: 1 });
    assert.deepEqual(await patient.organization(apiKey).introspect("x"), { active: false });
  }
  for (const timeout of [0, NaN]) {
    assert.throws(() => new Client("http://127.0.0.1:9", { timeout }), RangeError);
  }
});

test("a signal ends a call in every phase", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const reason = new Error("enough");
  await assert.rejects(session.charge({}, { signal: AbortSignal.abort(reason) }), reason); // before it is sent
  assert.equal(network.seen.length, 0);
  await session.get();

  network.fate = () => "hang";
  for (const [call, check] of [
    [(signal: AbortSignal) => session.get({ signal }), (e: unknown) => e === reason],
    [(signal: AbortSignal) => session.charge({}, { signal }), (e: unknown) => e instanceof OutcomeUnknown && e.cause === reason],
  ] as const) {
    const controller = new AbortController();
    const sent: number = network.seen.length;
    network.fate = () => (setImmediate(() => controller.abort(reason)), "hang");
    await assert.rejects(call(controller.signal), check);
    assert.equal(network.seen.length, sent + 1);
  }

  const controller = new AbortController();
  // The answer has come by then on a busy machine too: else the outcome is unknown.
  network.fate = () => (setTimeout(() => controller.abort(reason), 500), problem(429, "rate_limited", { "Retry-After": "29" }));
  await assert.rejects(session.charge({}, { signal: controller.signal }), reason); // during the backoff
});

test("an attempt without a response ends after the timeout", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client({ timeout: 300 }));
  await session.get();
  network.fate = (seen) => (seen.place.endsWith("/actions") && seen.nth === 1 ? "hang" : "pass");
  assert.equal((await session.charge()).actionCount, 1);
  assert.ok(network.count(`POST /v1/sessions/${session.id}/actions`) >= 2); // a busy machine may need more than one retry
});

test("a single charge of a batch can have an unknown outcome", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const item = (code: string) => ({ status: 503, body: { type: "x", title: "x", status: 503, code, detail: "x", request_id: "r" } });
  const answer = JSON.stringify([item("unavailable"), item("outcome_unknown")]);
  network.fate = (seen) => (seen.place === "POST /v1/actions" ? { status: 200, body: answer } : "pass");
  const [first, second] = await session.chargeMany([{}, {}]);
  assert.ok(first?.ok === false && first.error instanceof Unavailable);
  assert.ok(second?.ok === false && second.error instanceof OutcomeUnknown && second.error.code === "outcome_unknown");
  await failure(session.chargeMany([{}]), OutcomeUnknown); // two results for one charge
});

test("only the charge of a batch with an unreadable result has an unknown outcome", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, [], network.client());
  const odd = ["null", "{}", '{"status":200}', '{"status":200,"body":{}}', '{"status":409,"body":7}', '{"status":"200"}'];
  network.fate = (seen) =>
    seen.place === "POST /v1/actions"
      ? (answer) => JSON.stringify((JSON.parse(answer) as unknown[]).map((item, i) => (i === 0 ? item : JSON.parse(odd[i - 1]!))))
      : "pass";
  const results = await session.chargeMany([{}, ...odd.map(() => ({}))]);
  assert.equal(results.length, odd.length + 1);
  assert.ok(results[0]?.ok && results[0].usage.actionCount > 0);
  for (const result of results.slice(1)) {
    assert.ok(result.ok === false && result.error instanceof OutcomeUnknown);
    assert.match(result.error.message, /a charge of POST \/v1\/actions: .*unreadable answer/);
  }
});
