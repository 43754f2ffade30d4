// Tests of charges that ask for more.
import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { LimitReached, RemitError, RequestNotApproved, SessionNotActive, type AskingCharge } from "@remit/sdk";
import { Ledger } from "./ledger.js";
import { newNetwork, type Fate, type Network } from "./network.js";
import { failure, until } from "./outcome.js";

const moment = "2026-11-21T09:19:32.859Z";
const asks = { id: "r1", session_id: "s1", agent_id: "a1", status: "pending", add_actions: 0, add_value_usd: 0.1, reason: "a page more", created_at: moment };
const approved = { ...asks, status: "approved", granted_actions: 0, granted_value_usd: 0.1, decided_at: moment, comment: "go on" };
const usage = {
  action_count: 3, max_actions: 10, value_used_usd: 7.75, max_value_usd: 8, value_held_usd: 0, remaining_actions: 7,
  remaining_value_usd: 0.25, expires_at: moment,
};
const pair = { access_token: "a", refresh_token: "b", token_type: "bearer", expires_in: 3600 };

const says = (body: unknown, status = 200): Fate => ({ status, body: JSON.stringify(body) });
const refuses = (status: number, code: string, more: object = {}): Fate =>
  says({ status, code, detail: "words", request_id: "r-1", ...more }, status);
const full = refuses(403, "session_limit_reached", { limit: "max_value_usd", ...usage });

/** A service whose session has 0.25 USD left, and where somebody decides. Each list is answered in turn, the last one for ever. */
interface Script {
  charges?: Fate[];
  requests?: Fate[];
  decisions?: Fate[];
}

async function charging(t: TestContext, script: Script): Promise<Network> {
  const { charges = [full, says(usage)], requests = [says(asks, 201)], decisions = [says(approved)] } = script;
  const network = await newNetwork(t);
  const turns: Record<string, Fate[]> = {
    "POST /v1/sessions/s1/actions": charges, "POST /v1/sessions/s1/requests": requests, "GET /v1/sessions/s1/requests/r1": decisions,
    "POST /v1/auth/token": [says(pair)],
  };
  network.fate = ({ place, nth }) => turns[place]![Math.min(nth, turns[place]!.length) - 1]!;
  return network;
}

const charge: AskingCharge = { value: 350_000n, onLimit: "ask", reason: "a page more" };
const sent = (network: Network, place: string) => network.seen.filter((s) => s.place === `POST /v1/sessions/s1/${place}`);

test("a charge asks for what is missing, waits and goes on", async (t) => {
  const network = await charging(t, { decisions: [says(asks), refuses(503, "unavailable"), says(approved)] });
  assert.equal((await network.client().agent("a1", "s").session("s1").charge(charge)).remainingActions, 7);
  assert.deepEqual(sent(network, "requests").map((s) => s.body), ['{"add_value_usd":0.1,"reason":"a page more"}']);
  const [first, second, ...more] = sent(network, "actions");
  assert.deepEqual([first?.body, more.length], [second?.body, 0]);
  assert.notEqual(first?.key, second?.key);
});

test("with the caller's own key all keys follow from it", async (t) => {
  for (let run = 0; run < 2; run++) {
    const network = await charging(t, { charges: [full, full, says(usage)] });
    await network.client({ idempotencyKeys: false }).agent("a1", "s").session("s1").charge(charge, { idempotencyKey: "own" });
    const keys = [...sent(network, "actions"), ...sent(network, "requests")].map((s) => s.key);
    assert.deepEqual(keys, ["own", "own-charge-1", "own-charge-2", "own-ask-1", "own-ask-2"]);
  }
});

test("a charge that is not approved is not made", async (t) => {
  const denied = await charging(t, { decisions: [says({ ...asks, status: "denied", comment: "too dear" })] });
  const error = await failure(denied.client().agent("a1", "s").session("s1").charge(charge), RequestNotApproved);
  assert.ok(error instanceof LimitReached);
  assert.deepEqual([error.limit, error.remaining.value, error.request?.status, error.status], ["max_value_usd", 250_000n, "denied", 403]);
  assert.match(error.message, /0\.25 of 8 USD left; request for more denied: too dear/);
  const older = await charging(t, { requests: [refuses(404, "not_found")] });
  assert.equal((await failure(older.client().agent("a1", "s").session("s1").charge(charge), RequestNotApproved)).request, undefined);
  for (const network of [denied, older]) assert.equal(sent(network, "actions").length, 1);
});

test("asking ends with the signal, an ended session and a smaller grant", async (t) => {
  const waiting = await charging(t, { decisions: [says(asks)] });
  const session = waiting.client().agent("a1", "s").session("s1");
  const stop = new AbortController();
  const stopped = assert.rejects(session.charge(charge, { signal: stop.signal }), { name: "TimeoutError" });
  await until(() => waiting.seen.some(({ place }) => place === "GET /v1/sessions/s1/requests/r1"));
  stop.abort(new DOMException("it takes too long", "TimeoutError"));
  await stopped;
  const ended = await charging(t, {
    charges: [full, refuses(403, "session_not_active", { session_status: "completed" })], decisions: [says({ ...asks, status: "ended" })],
  });
  await failure(ended.client().agent("a1", "s").session("s1").charge(charge), SessionNotActive);
  const less = await charging(t, { charges: [full], decisions: [says({ ...approved, granted_value_usd: 0.05 })] });
  await failure(less.client().agent("a1", "s").session("s1").charge(charge), LimitReached);
  assert.equal(sent(less, "actions").length, 2);
});

test("other refusals ask nothing, and asking needs a reason", async (t) => {
  for (const refusal of [refuses(403, "session_limit_reached", { limit: "max_committed_usd", ...usage }), refuses(403, "session_suspended")]) {
    const network = await charging(t, { charges: [refusal] });
    await failure(network.client().agent("a1", "s").session("s1").charge(charge), RemitError);
    assert.equal(sent(network, "requests").length, 0);
  }
  const session = (await charging(t, {})).client().agent("a1", "s").session("s1");
  await assert.rejects(session.charge({ onLimit: "ask" }), TypeError);
  await assert.rejects(session.chargeMany([charge]), TypeError);
});

test("a lease gives back what it holds before it asks", async () => {
  const ledger = new Ledger({ maxActions: 100 });
  const lease = await ledger.session().lease();
  for (let i = 0; i < 110; i++) {
    await lease.charge({ onLimit: "ask", reason: "more pages" });
  }
  await lease.close();
  ledger.balances(110, 0n);
  assert.deepEqual([ledger.count("POST requests"), ledger.maxActions], [10, 110]);
});
