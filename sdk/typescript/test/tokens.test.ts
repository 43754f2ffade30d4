import assert from "node:assert/strict";
import test, { type TestContext } from "node:test";
import { Unauthorized, Unavailable } from "@remit/sdk";
import { newNetwork, type Network } from "./network.js";
import { acme, failure, newAgent, serviceURL, sessionOf, until } from "./service.js";

const exchange = "POST /v1/auth/token";
const refresh = "POST /v1/auth/refresh";

// The service's tokens are valid for an hour. The tests advance this process's clock instead of waiting.
const hour = 3_600_000;
let ahead = 0;
const now = performance.now.bind(performance);
Object.defineProperty(performance, "now", { value: () => now() + ahead, configurable: true });

async function newClient(t: TestContext) {
  const network = await newNetwork(t);
  const { agent, secret } = await newAgent(["read"], network.client());
  return { network, agent, secret, session: await sessionOf(agent) };
}

const tokensOf = (network: Network) =>
  new Set(network.seen.flatMap((s) => (s.token === undefined ? [] : [s.token]))).size;

test("100 concurrent calls without a cached token share one exchange", async (t) => {
  const { network, session } = await newClient(t);
  await Promise.all(Array.from({ length: 100 }, () => session.charge()));
  assert.equal(network.count(exchange), 1);
  assert.equal(tokensOf(network), 1);
  assert.equal((await session.get()).actionCount, 100);
});

test("a token is renewed early and once, while calls keep using the current one", async (t) => {
  const { network, agent, session } = await newClient(t);
  const first = await agent.token();
  network.fate = (seen) => (seen.place === refresh ? "hang" : "pass"); // while it hangs, calls use the current token
  ahead += 0.91 * hour;
  await Promise.all(Array.from({ length: 20 }, () => session.charge()));
  assert.equal(await agent.token(), first);
  await until(() => network.count(refresh) === 1);
  assert.equal(network.count(exchange), 1);
  assert.equal((await session.get()).actionCount, 20);
});

test("an early renewal brings a new token into use", async (t) => {
  const { network, agent } = await newClient(t);
  const first = await agent.token();
  ahead += 0.91 * hour;
  let access = await agent.token();
  assert.equal(access, first);
  while (access === first) {
    await new Promise((resolve) => setTimeout(resolve, 2));
    access = await agent.token();
  }
  assert.deepEqual([network.count(exchange), network.count(refresh)], [1, 1]);
});

test("renewals spread between 75 and 90 % of the lifetime", async (t) => {
  for (const [chance, moment] of [[0, 0.75], [0.5, 0.825], [1, 0.9]] as const) {
    const { network, agent, session } = await newClient(t);
    t.mock.method(Math, "random", () => chance);
    await agent.token();
    ahead += (moment - 0.001) * hour;
    await session.get(); // a refresh would have arrived before this response
    assert.equal(network.count(refresh), 0, `before ${moment}`);
    ahead += 0.002 * hour;
    await session.get();
    await until(() => network.count(refresh) === 1);
    t.mock.restoreAll();
  }
});

test("a call waits for a new token if the current one is no longer usable", async (t) => {
  const { network, agent, session } = await newClient(t);
  const first = await agent.token();
  ahead += 0.99 * hour;
  await Promise.all([session.charge(), session.charge()]);
  assert.notEqual(await agent.token(), first);
  assert.deepEqual([network.count(exchange), network.count(refresh)], [1, 1]);
});

test("a refresh whose response is lost is retried with the same token", async (t) => {
  const { network, agent } = await newClient(t);
  await agent.token();
  network.fate = (seen) => (seen.place === refresh && seen.nth <= 2 ? "lose" : "pass");
  await agent.refresh();
  const sent = network.seen.filter((s) => s.place === refresh).map((s) => s.body);
  assert.equal(sent.length, 3);
  assert.equal(new Set(sent).size, 1);
  assert.equal(network.count(exchange), 1);
  await agent.refresh(); // the new refresh token works
  assert.equal(network.count(exchange), 1);
});

test("50 seconds after a lost response the secret is exchanged instead", async (t) => {
  const { network, agent } = await newClient(t);
  await agent.token();
  network.fate = (seen) => (seen.place === refresh ? "lose" : "pass");
  await failure(agent.refresh(), Unavailable);
  const sent = network.count(refresh);
  ahead += 45_000;
  await failure(agent.refresh(), Unavailable);
  assert.equal(network.count(refresh), 2 * sent);
  ahead += 6_000;
  await agent.refresh();
  assert.deepEqual([network.count(refresh), network.count(exchange)], [2 * sent, 2]);
});

test("50 seconds after a lost response the same shared call exchanges the secret", async (t) => {
  const { network, agent } = await newClient(t);
  await agent.token();
  network.fate = (seen) => (seen.place === refresh ? "lose" : "pass");
  await failure(agent.refresh(), Unavailable);
  const sent = network.count(refresh);
  ahead += 45_000; // the renewal starts in time, but its first attempt ends too late for a second
  network.fate = (seen) => (seen.place === refresh ? ((ahead += 6_000), "lose") : "pass");
  await agent.refresh();
  assert.deepEqual([network.count(refresh), network.count(exchange)], [sent + 1, 2]);
});

test("a refresh in flight ends 50 seconds after a lost response", async (t) => {
  const { network, agent } = await newClient(t);
  await agent.token();
  t.mock.method(Math, "random", () => 0); // no backoff
  network.fate = (seen) => (seen.place === refresh ? "lose" : "pass");
  await failure(agent.refresh(), Unavailable);
  ahead += 49_000; // less is left than the attempt's timeout of 10 seconds
  network.fate = (seen) => (seen.place === refresh ? "hang" : "pass");
  const begun = now();
  await agent.refresh();
  assert.ok(now() - begun < 5_000);
  assert.equal(network.count(exchange), 2);
});

// The monotonic clock stops while a machine sleeps; the wall clock goes on.
test("the 50 seconds include the time that the machine sleeps", async (t) => {
  const { network, agent } = await newClient(t);
  await agent.token();
  network.fate = (seen) => (seen.place === refresh ? "lose" : "pass");
  await failure(agent.refresh(), Unavailable);
  const sent = network.count(refresh);
  const today = Date.now;
  t.mock.method(Date, "now", () => today() + 51_000);
  await agent.refresh();
  assert.deepEqual([network.count(refresh), network.count(exchange)], [sent, 2]);
});

test("a refused refresh token leads to one exchange of the secret", async (t) => {
  const { network, agent, session } = await newClient(t);
  await agent.token();
  await agent.refresh();
  await agent.refresh();
  await theft(network);
  await Promise.all([agent.refresh(), agent.refresh()]);
  assert.equal(network.count(exchange), 2);
  assert.equal((await session.charge()).actionCount, 1);
});

test("a call whose token is refused is sent once more with a new one", async (t) => {
  const { network, agent, session } = await newClient(t);
  await agent.token();
  const refused = { status: 401, body: JSON.stringify({ code: "invalid_token", detail: "no", status: 401 }) };
  const charge = `POST /v1/sessions/${session.id}/actions`;
  network.fate = (seen) => (seen.place === charge && seen.nth === 1 ? refused : "pass");
  assert.equal((await session.charge()).actionCount, 1);
  const sent = network.seen.filter((s) => s.place === charge);
  assert.equal(sent.length, 2);
  assert.notEqual(sent[0]!.token, sent[1]!.token);
  assert.equal(sent[0]!.key, sent[1]!.key);

  network.fate = (seen) => (seen.place === charge ? refused : "pass");
  await failure(session.charge(), Unauthorized);
  assert.equal(network.count(charge), 4); // the SDK does not repeat it forever
});

test("an access token that was revoked is replaced within the call", async (t) => {
  const { network, agent, session } = await newClient(t);
  await agent.token();
  await agent.refresh();
  await agent.refresh();
  await theft(network);
  assert.equal((await session.charge()).actionCount, 1);
  assert.equal(network.count(exchange), 2);
});

// theft presents the oldest refresh token, so that the service revokes the whole family.
async function theft(network: Network): Promise<void> {
  const body = network.seen.find((s) => s.place === refresh)!.body;
  const headers = { "Content-Type": "application/json" };
  assert.equal((await fetch(`${serviceURL}/v1/auth/refresh`, { method: "POST", headers, body })).status, 401);
}

test("a caller that stops waiting for a token does not stop it for others", async (t) => {
  const { network, agent } = await newClient(t);
  let asked = false;
  network.fate = (seen) => ((asked ||= seen.place === exchange), "pass");
  const impatient = new AbortController();
  const left = agent.token({ signal: impatient.signal });
  const stayed = agent.token();
  impatient.abort(new Error("no time"));
  await assert.rejects(left, /^Error: no time$/);
  assert.match(await stayed, /^eyJ/);
  assert.ok(asked);
  assert.equal(network.count(exchange), 1);
});

test("a wrong secret is not retried", async (t) => {
  const { network, agent } = await newClient(t);
  const wrong = network.client().agent(agent.id, (await acme.rotateAgentSecret(agent.id)).secret.reveal().replace(/.$/, "?"));
  const error = await failure(wrong.session("x").charge(), Unauthorized);
  assert.equal(error.code, "invalid_credentials");
  assert.equal(network.count(exchange), 1);
});
