import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { Credential, LimitReached, RemitError, Unauthorized, USD } from "@remit/sdk";
import { newNetwork } from "./network.js";
import { acme, apiKey, collect, failure, newAgent, organizationId, remit, sessionOf } from "./service.js";

test("an id leads to no other path", async () => {
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
