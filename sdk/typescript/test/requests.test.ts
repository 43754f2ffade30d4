// Tests of what each call sends, and how it reads the responses of the API description.
import assert from "node:assert/strict";
import test from "node:test";
import {
  Agent, Client, LimitBelowUsage, LimitReached, Organization, OrganizationSuspended, OutcomeUnknown, QuotaExceeded, RemitError,
  Session, USD,
} from "@remit/sdk";
import { newNetwork, type Network } from "./network.js";
import { acme, apiKey, collect, failure, newAgent, organizationId, serviceURL, sessionOf } from "./service.js";

const moment = "2026-11-21T09:19:32.859Z";
const session = {
  id: "s1", agent_id: "a1", status: "active", max_actions: 10, action_count: 3, max_value_usd: 8, value_used_usd: 1.5,
  value_held_usd: 0.25, value_overage_usd: 0, value_committed_usd: 6.5, max_committed_usd: 20, scopes: [], metadata: {},
  expires_at: moment, created_at: moment, a_field_of_tomorrow: { x: [1] },
};
const transaction = {
  id: "t1", agent_id: "a1", session_id: "s1", sequence_number: 4, status: "committed", action_type: "payment", pre_state: {},
  value_usd: 0, value_held_usd: 2.5, overage_usd: 0, late: true, reversible: true, metadata: {}, expires_at: moment, created_at: moment,
};
const organization = {
  id: "o1", name: "acme", metadata: {}, created_at: moment,
  quotas: { agents: 10000, of_tomorrow: 7, bytes: null, odd: "x", half: 0.5 }, usage: { agents: 3 },
};
const agent = { id: "a1", org_id: "o1", name: "scout", scopes: [], status: "active", metadata: {}, created_at: moment, secret: "rms_2" };
const rotated = { api_key: "rmk_2", secret: "rms_2", previous_expires_at: moment };
const usage = {
  limit: "max_value_usd", action_count: 3, max_actions: 10, value_used_usd: 1.5, max_value_usd: 8, value_held_usd: 0.25,
  remaining_actions: 7, remaining_value_usd: 6.25, expires_at: moment,
};

// answers returns a response after a number of 502 responses from a proxy. It answers token exchanges by itself.
function answers(network: Network, said: unknown, lost = 0): void {
  const pair = JSON.stringify({ access_token: "a", refresh_token: "b", token_type: "bearer", expires_in: 3600 });
  network.fate = (seen) => {
    if (seen.place === "POST /v1/auth/token") {
      return { status: 200, body: pair };
    }
    return seen.nth <= lost ? { status: 503, body: "<html>" } : { status: 200, body: JSON.stringify(said) };
  };
}

type Case = [call: (client: Client, o: Organization) => Promise<unknown>, place: string, body: string, keyed: boolean, said: unknown];

const cases: Case[] = [
  [(_, o) => o.rotateKey("o1"), "POST /v1/organizations/o1/api-key/rotate", "{}", true, rotated],
  [(_, o) => o.rotateKey("o1", { graceSeconds: 0 }), "POST /v1/organizations/o1/api-key/rotate", '{"grace_seconds":0}', true, rotated],
  [(_, o) => o.rotateAgentSecret("a1"), "POST /v1/agents/a1/secret/rotate", "{}", true, rotated],
  [(_, o) => o.rotateAgentSecret("a1", { graceSeconds: 1.5, revokeFamilies: true }), "POST /v1/agents/a1/secret/rotate",
    '{"grace_seconds":2,"revoke_families":true}', true, rotated],
  [(c) => c.createOrganization({ name: "acme" }), "POST /v1/organizations", '{"name":"acme"}', true, organization],
  [(_, o) => o.createAgent({ name: "scout" }), "POST /v1/agents", '{"name":"scout","scopes":[]}', true, agent],
  [(_, o) => o.revokeFamily("a1", "f1"), "DELETE /v1/agents/a1/families/f1", "", false, { revoked: true }],
  [(_, o) => o.createSession({ agentId: "a1", maxCommitted: 20n * USD }), "POST /v1/sessions",
    '{"agent_id":"a1","max_committed_usd":20}', true, session],
  [(_, o) => o.updateSession("s1", { maxActions: 5 }), "PATCH /v1/sessions/s1", '{"max_actions":5}', false, session],
  [(_, o) => o.updateSession("s1", { addActions: 5, addValue: 250_000n }), "PATCH /v1/sessions/s1",
    '{"add_actions":5,"add_value_usd":0.25}', true, session],
  [(c) => c.agent("a1", "s").transaction("t1").update({ value: 0n, expiresInSeconds: 60 }), "PATCH /v1/transactions/t1",
    '{"value_usd":0,"expires_in_seconds":60}', false, transaction],
];

test("each call is one request, and a retry reuses its key unless the request is idempotent", async (t) => {
  for (const [call, place, body, keyed, said] of cases) {
    const network = await newNetwork(t);
    answers(network, said, 2);
    await call(network.client(), network.client().organization("rmk_1"));
    const sent = network.seen.filter((s) => !s.place.includes("/auth/"));
    assert.deepEqual(sent.map((s) => [s.place, s.body]), [[place, body], [place, body], [place, body]]);
    const keys = new Set(sent.map((s) => s.key));
    assert.ok(keys.size === 1 && keys.has(undefined) !== keyed, `${place} has the keys ${[...keys]}`);
  }
});

test("a top-up without a key is not retried", async (t) => {
  const network = await newNetwork(t);
  answers(network, session, 9);
  const organization = network.client({ idempotencyKeys: false }).organization("rmk_1");
  await failure(organization.updateSession("s1", { addValue: USD }), OutcomeUnknown);
  assert.equal(network.seen.length, 1);
});

test("responses are read, and unknown fields are ignored", async (t) => {
  const network = await newNetwork(t);
  const client = network.client();
  const o = client.organization("rmk_1");
  answers(network, session);
  const read = await o.getSession("s1");
  assert.deepEqual([read.valueCommitted, read.maxCommitted], [6_500_000n, 20n * USD]);
  const { value_committed_usd: _, max_committed_usd: __, ...before } = session;
  answers(network, before);
  const older = await o.getSession("s1");
  assert.deepEqual([older.valueCommitted, older.maxCommitted], [0n, undefined]);
  answers(network, organization);
  const info = await o.info("o1");
  assert.deepEqual([info.quotas, info.usage], [{ agents: 10000, of_tomorrow: 7 }, { agents: 3 }]);
  const { quotas: ___, usage: ____, ...bare } = organization;
  answers(network, bare);
  assert.deepEqual((await o.info("o1")).quotas, {});
  answers(network, transaction);
  assert.equal((await client.agent("a1", "s").transaction("t1").get()).late, true);
});

test("families are listed", async (t) => {
  const network = await newNetwork(t);
  const one = { family_id: "f1", created_at: moment, last_used_at: moment, expires_at: moment, address: "of tomorrow" };
  answers(network, [one, { family_id: "f2", created_at: moment, expires_at: moment }]);
  const [first, second] = await collect(network.client().organization("rmk_1").families("a1"));
  assert.deepEqual([first?.id, first?.lastUsedAt, second?.lastUsedAt], ["f1", new Date(moment), undefined]);
  assert.equal(network.seen[0]?.place, "GET /v1/agents/a1/families");
});

test("an error names the limit and what is left, and nothing twice", async (t) => {
  const network = await newNetwork(t);
  const refused = async (status: number, code: string, members: object) => {
    network.fate = () => ({ status, body: JSON.stringify({ code, detail: "words", request_id: "r-1", ...members }) });
    const error = await failure(network.client().organization("rmk_1").getSession("s1"), RemitError);
    return [error.constructor, error.message.replace("remit: GET /v1/sessions/s1: ", "")];
  };
  const doubled = { detail: "id must be a UUID", errors: [{ field: "id", message: "must be a UUID" }, { field: "d", message: "must be a UUID" }] };
  assert.deepEqual(await refused(403, "session_limit_reached", usage),
    [LimitReached, "403 session_limit_reached: words; max_value_usd: 7 of 10 actions and 6.25 of 8 USD left (request r-1)"]);
  assert.deepEqual(await refused(403, "session_limit_reached", { ...usage, needed_actions: 1, needed_value_usd: 6.5 }),
    [LimitReached, "403 session_limit_reached: words; max_value_usd: 7 of 10 actions and 6.25 of 8 USD left; this call needs 6.5 USD (request r-1)"]);
  assert.deepEqual(await refused(409, "limit_below_usage", usage),
    [LimitBelowUsage, "409 limit_below_usage: words; max_value_usd: 3 actions and 1.5 USD used, 0.25 USD held (request r-1)"]);
  assert.deepEqual(await refused(403, "quota_exceeded", { quota: "agents", used: 9, max: 10 }),
    [QuotaExceeded, "403 quota_exceeded: words; agents: 9 of 10 used (request r-1)"]);
  assert.deepEqual(await refused(403, "organization_suspended", {}),
    [OrganizationSuspended, "403 organization_suspended: words (request r-1)"]);
  assert.deepEqual(await refused(400, "invalid_request", { errors: [{ field: "name", message: "is required" }] }),
    [RemitError, "400 invalid_request: words; name is required (request r-1)"]);
  assert.deepEqual(await refused(400, "invalid_request", doubled),
    [RemitError, "400 invalid_request: id must be a UUID; d must be a UUID (request r-1)"]);
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
