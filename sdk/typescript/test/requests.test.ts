// Tests of what calls take. What they send and read is compared in all languages; see test/same.
import assert from "node:assert/strict";
import test from "node:test";
import { Agent, Client, Organization, OutcomeUnknown, Session, USD } from "@remit/sdk";
import { newNetwork } from "./network.js";
import { acme, apiKey, collect, failure, newAgent, organizationId, serviceURL, sessionOf } from "./service.js";

test("a top-up without a key is not retried", async (t) => {
  const network = await newNetwork(t);
  network.fate = () => ({ status: 503, body: "<html>" });
  const organization = network.client({ idempotencyKeys: false }).organization("rmk_1");
  await failure(organization.updateSession("s1", { addValue: USD }), OutcomeUnknown);
  assert.equal(network.seen.length, 1);
});

test("an unknown option is a TypeError before anything is sent", async (t) => {
  const network = await newNetwork(t);
  const client = network.client();
  const o = client.organization("rmk_1");
  const s = client.agent("a1", "s").session("s1");
  const wrong = (options: object): any => options; // as in unchecked JavaScript
  const calls: (() => unknown)[] = [
    () => o.createSession(wrong({ agentId: "a1", max_actions: 3 })),
    () => o.updateSession("s1", wrong({ maxvalue: 3n })),
    () => o.createAgent(wrong({ name: "scout", scope: ["read"] })),
    () => o.createAgent(wrong({ name: "scout", scopes: "admin" })),
    () => o.createSession(wrong({ agentId: "a1", scopes: "admin" })),
    () => o.rotateKey("o1", wrong({ grace: 0 })),
    () => o.rotateKey("o1", 0 as any),
    () => o.rotateAgentSecret("a1", wrong({ revoke_families: true })),
    () => collect(o.agents(wrong({ state: "active" }))),
    () => collect(o.sessions(wrong({ agent: "a1" }))),
    () => collect(o.transactions(wrong({ session: "s1" }))),
    () => collect(o.events("a1", wrong({ from: "e1" }))),
    () => client.createOrganization(wrong({ name: "acme", bootstrap_token: "x" })),
    () => s.charge(wrong({ type: "llm.call" })),
    () => s.charge("llm.call" as any),
    () => s.charge({}, wrong({ idempotency_key: "k" })),
    () => s.chargeMany([wrong({ value_usd: 1n })]),
    () => s.begin(wrong({ actionType: "x", irreversible: true })),
    () => s.begin(wrong({ actionType: "x", toString: 1 })),
    () => client.agent("a1", "s").transaction("t1").commit(wrong({ value_usd: 1n })),
    () => client.agent("a1", "s").transaction("t1").update(wrong({ expiresIn: 1 })),
    () => s.get(wrong({ abort: 1 })),
    () => new Client(serviceURL, wrong({ retries: 1 })),
  ];
  for (const call of calls) {
    await assert.rejects(async () => await call(), TypeError, String(call));
  }
  assert.deepEqual(network.seen, []);
  await assert.rejects(o.createSession(wrong({ agentId: "a1", max_value_usd: 3n })), /no option max_value_usd: it is maxValue/);
});

test("settings come from the environment", async () => {
  const { agent, secret } = await newAgent([]);
  const own = await sessionOf(agent);
  const variables = {
    REMIT_ADDR: ` ${serviceURL}\n`, REMIT_API_KEY: `${apiKey}\n`, REMIT_AGENT: agent.id, REMIT_SECRET: `${secret}\n`, REMIT_SESSION: own.id,
  };
  assert.equal((await Session.fromEnv(variables).charge()).actionCount, 1);
  assert.equal(Agent.fromEnv(variables).id, agent.id);
  assert.equal((await Organization.fromEnv(variables).info(organizationId)).id, organizationId);
  assert.equal(typeof (await acme.getSession(own.id)).id, "string");
  const named = (make: () => unknown, words: RegExp) => assert.throws(make, (e: Error) => e instanceof TypeError && words.test(e.message));
  named(() => Organization.fromEnv({}), /set REMIT_API_KEY$/);
  named(() => Agent.fromEnv({ REMIT_SECRET: " " }), /set REMIT_AGENT, REMIT_SECRET \(or REMIT_KEY_FILE or REMIT_ASSERTION_FILE instead of REMIT_SECRET\)$/);
  named(() => Session.fromEnv({ REMIT_AGENT: "a1" }), /set REMIT_SECRET, REMIT_SESSION \(or REMIT_KEY_FILE or REMIT_ASSERTION_FILE instead of REMIT_SECRET\)$/);
  named(() => Organization.fromEnv({ REMIT_API_KEY: "@acme.key" }), /REMIT_API_KEY must be the text itself/);
  named(() => Client.fromEnv({}, { REMIT_ADDR: "nowhere" }), /REMIT_ADDR: the base URL needs http:\/\/ or https:\/\/ before the host/);
  named(() => Client.fromEnv({}, { REMIT_ADDR: "127.0.0.1:8080" }), /REMIT_ADDR: the base URL needs http:\/\/ or https:\/\/ before the host/);
  assert.ok(Client.fromEnv({}, {}) instanceof Client);
});
