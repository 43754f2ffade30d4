import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import {
  Credential, InsufficientScope, LimitBelowUsage, LimitReached, NotFound, RemitError, SessionNotActive, Unauthorized, USD,
} from "@remit/sdk";
import { newNetwork } from "./network.js";
import { acme, apiKey, collect, failure, newAgent, newSession, organizationId, remit, sessionOf } from "./service.js";

test("the lifecycle of an agent", async () => {
  const made = await acme.createAgent({ name: "scout", scopes: ["read", "pay"], description: "looks", metadata: { tier: 1 } });
  const read = await acme.getAgent(made.id);
  assert.deepEqual([read.name, read.scopes, read.status, read.description, read.metadata, read.organizationId],
    ["scout", ["read", "pay"], "active", "looks", { tier: 1 }, organizationId]);
  assert.ok(!("secret" in read) && read.revokedAt === undefined);
  const rotated = await acme.rotateAgentSecret(made.id, { graceSeconds: 60 });
  assert.ok(rotated.previousExpiresAt.getTime() > Date.now());
  for (const secret of [made.secret, rotated.secret]) {
    assert.match(await remit.agent(made.id, secret).token(), /^eyJ/);
  }
  const agent = remit.agent(made.id, rotated.secret);
  const session = await sessionOf(agent);
  await acme.revokeAgent(made.id);
  await acme.revokeAgent(made.id);
  assert.equal((await acme.getAgent(made.id)).status, "revoked");
  assert.equal((await acme.getSession(session.id)).status, "revoked");
  assert.equal((await failure(agent.token(), Unauthorized)).code, "invalid_credentials");
  assert.equal((await failure(session.charge(), Unauthorized)).code, "invalid_credentials");
});

test("a rotated API key replaces the previous one", async () => {
  const made = await remit.createOrganization({ name: "other", metadata: { plan: "x" } });
  const other = remit.organization(made.apiKey!);
  const info = await other.info(made.id);
  assert.deepEqual([info.name, info.metadata, info.apiKey], ["other", { plan: "x" }, undefined]);
  const rotated = await other.rotateKey(made.id, { graceSeconds: 0 });
  assert.equal((await failure(other.info(made.id), Unauthorized)).code, "invalid_api_key");
  assert.equal((await remit.organization(rotated.apiKey).info(made.id)).id, made.id);
});

test("a session is created, read, topped up and ended", async () => {
  const { agent } = await newAgent(["read", "pay"]);
  const made = await acme.createSession({
    agentId: agent.id, maxActions: 7, maxValue: 12_300_001n, expiresInSeconds: 3600, scopes: ["read"], metadata: { for: "a<b>&c" },
  });
  const session = agent.session(made.id);
  assert.deepEqual(await session.get(), made);
  assert.deepEqual([made.maxActions, made.maxValue, made.scopes, made.metadata, made.status, made.endedAt],
    [7, 12_300_001n, ["read"], { for: "a<b>&c" }, "active", undefined]);
  assert.equal(made.expiresAt.getTime() - made.createdAt.getTime(), 3_600_000);

  const left = await session.charge({ actionType: "llm.call", value: 2n * USD, count: 3 });
  assert.deepEqual([left.actionCount, left.remainingActions, left.valueUsed, left.remainingValue], [3, 4, 2n * USD, 10_300_001n]);
  const below = await failure(acme.updateSession(made.id, { maxActions: 2 }), LimitBelowUsage);
  assert.deepEqual([below.status, below.limit, below.usage.actionCount], [409, "max_actions", 3]);
  assert.equal((await acme.updateSession(made.id, { maxValue: 20n * USD })).maxValue, 20n * USD);
  await session.end();
  await acme.endSession(made.id); // changes nothing
  assert.notEqual((await session.get()).endedAt, undefined);
  const over = await failure(session.charge(), SessionNotActive);
  assert.deepEqual([over.status, over.sessionStatus], [403, "completed"]);
});

test("every error code has its type and its fields", async () => {
  const session = await newSession({ maxActions: 10, maxValue: USD }, ["read"]);
  await session.charge({ value: 600_000n });
  const limit = await failure(session.charge({ value: 500_000n }), LimitReached);
  assert.deepEqual([limit.name, limit.status, limit.code, limit.limit], ["LimitReached", 403, "session_limit_reached", "max_value_usd"]);
  assert.deepEqual(limit.remaining, { actions: 9, value: 400_000n });
  assert.equal(limit.usage.valueUsed, 600_000n);
  assert.match(limit.message, /^remit: POST \/v1\/sessions\/\S+\/actions: 403 session_limit_reached: .+ \(request \S+\)$/);
  assert.ok(limit instanceof RemitError && limit.requestId !== "");

  assert.equal((await failure(session.charge({ scope: "pay" }), InsufficientScope)).requiredScope, "pay");
  const invalid = await failure(acme.createSession({ agentId: "nobody", maxActions: -1 }), RemitError);
  assert.deepEqual([invalid.code, invalid.fields.map((f) => f.field).sort()], ["invalid_request", ["agent_id", "max_actions"]]);
  await failure(acme.getSession("00000000-0000-4000-8000-000000000000"), NotFound);
  await failure(acme.getSession("a/../b"), RemitError);
  await assert.rejects(acme.getSession(".."), TypeError); // a URL would lead elsewhere
});

test("each charge of a batch succeeds or fails on its own", async () => {
  const { agent } = await newAgent([]);
  const [one, two] = [await sessionOf(agent, { maxActions: 1 }), await sessionOf(agent)];
  for (const who of [agent, acme]) {
    const [first, second, third] = await who.chargeMany([{ sessionId: one.id }, { sessionId: two.id, value: USD }]);
    assert.ok(second?.ok && second.usage.valueUsed > 0n && third === undefined);
    if (who === acme) {
      assert.ok(first?.ok === false && first.error instanceof LimitReached);
    }
  }
});

test("lists are followed from page to page, newest first", async () => {
  const { agent } = await newAgent([]);
  const made: string[] = [];
  for (let i = 0; i < 105; i++) { // a page has 100
    made.unshift((await sessionOf(agent)).id);
  }
  const ids = async (list: AsyncIterable<{ id: string }>) => (await collect(list)).map((s) => s.id);
  assert.deepEqual(await ids(agent.sessions()), made);
  assert.deepEqual(await ids(acme.sessions({ agentId: agent.id, status: "active" })), made);
  assert.deepEqual(await ids(acme.sessions({ agentId: agent.id, status: "completed" })), []);
  assert.ok((await ids(acme.agents({ status: "active" }))).includes(agent.id));
});

test("a next link to the same page ends a list, and links to other hosts are not followed", async (t) => {
  const network = await newNetwork(t);
  const link = '<http://127.0.0.1:9/v1/agents?cursor=a>; rel="prev", <http://127.0.0.1:9/v1/agents?cursor=b&limit=1>; rel="next"';
  network.fate = ({ nth }) => (nth > 3 ? { status: 500 } : { status: 200, headers: { Link: link }, body: "[]" });
  const error = await failure(collect(network.client().organization(apiKey).agents()), RemitError);
  assert.match(error.message, /GET \/v1\/agents: unreadable answer: the next page is the same page/);
  assert.equal(network.count("GET /v1/agents"), 2);
});

test("tokens are introspected, and verified as proxies do it", async () => {
  const { agent } = await newAgent(["read", "write"]);
  const access = await agent.token();
  const introspection = await acme.introspect(access);
  assert.ok(introspection.active);
  assert.deepEqual([introspection.agentId, introspection.organizationId, introspection.scopes], [agent.id, organizationId, ["read", "write"]]);
  assert.deepEqual(await acme.introspect("nonsense"), { active: false });
  const verified = { agentId: agent.id, organizationId, scopes: ["read", "write"], actorId: undefined, thumbprint: undefined };
  assert.deepEqual(await remit.verify(access), verified);
  assert.deepEqual(await remit.verify(access, "read"), verified);
  await failure(remit.verify(access, "admin"), InsufficientScope);
  await failure(remit.verify("nonsense"), Unauthorized);
});

test("a secret is exchanged for tokens that the caller stores", async (t) => {
  const network = await newNetwork(t);
  const { agent, secret } = await newAgent(["read"]);
  network.fate = (seen) => (seen.nth === 1 ? "lose" : "pass");
  const pair = await network.client().exchange(agent.id, secret);
  assert.equal((await remit.verify(pair.accessToken)).agentId, agent.id);
  assert.deepEqual([pair.tokenType.toLowerCase(), pair.expiresIn], ["bearer", 3600]);
  assert.ok(pair.refreshToken instanceof Credential && pair.refreshToken.reveal() !== "");
  assert.doesNotMatch(inspect(pair), /eyJ/);
  const wrong = await failure(remit.exchange(agent.id, new Credential("wrong-secret")), Unauthorized);
  assert.equal(wrong.code, "invalid_credentials");
  assert.doesNotMatch(inspect(wrong), /wrong-secret/);
});

test("events are yielded, then followed", async () => {
  const { agent } = await newAgent([]);
  const session = await sessionOf(agent, { maxActions: 1 });
  const types: string[] = [];
  const stop = new AbortController();
  let last = "";
  await assert.rejects(async () => {
    for await (const event of agent.events({ signal: stop.signal })) {
      types.push(event.type);
      last = event.id;
      if (event.type === "session.created") {
        await session.charge();
      } else if (event.type === "session.limit_reached") {
        assert.deepEqual([event.sessionId, event.agentId, event.actor], [session.id, agent.id, { type: "agent", id: agent.id }]);
        setTimeout(() => stop.abort(new Error("enough")));
      }
    }
  }, /^Error: enough$/);
  assert.ok(types.includes("agent.created") && types.includes("session.limit_reached"), types.join());
  await session.end();
  for await (const event of acme.events(agent.id, { after: last })) {
    assert.equal(event.type, "session.ended");
    break;
  }
});

test("an invalid base URL is refused", async () => {
  const { Client } = await import("@remit/sdk");
  for (const url of ["remit.example.com", "ftp://remit.example.com", "https://me:hunter2@remit.example.com", "https://x/?q=1", "http://hunter2 x"]) {
    assert.throws(() => new Client(url), (e: Error) => e instanceof TypeError && !`${e.stack}${JSON.stringify(e)}`.includes("hunter2"), url);
  }
  const slashed = new Client(`${process.env["REMIT_ADDR"]}///`);
  assert.equal((await slashed.organization(apiKey).info(organizationId)).id, organizationId);
});
