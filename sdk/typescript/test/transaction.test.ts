import assert from "node:assert/strict";
import test from "node:test";
import { InsufficientScope, OutcomeUnknown, USD, type Transaction } from "@remit/sdk";
import { newNetwork } from "./network.js";
import { acme, collect, failure, newAgent, newSession, remit, sessionOf } from "./service.js";

const payment = { actionType: "payment", preState: { balance: 10 }, value: 2n * USD };

interface Balance {
  balance: number;
}

// An interface has no index signature, so a parameter type for any JSON object would refuse it.
test("states and metadata accept any object type", async () => {
  const before: Balance = { balance: 10 };
  const made = await acme.createAgent({ name: "scout", metadata: before });
  const limits = await acme.createSession({ agentId: made.id, metadata: before });
  const session = remit.agent(made.id, made.secret).session(limits.id);
  const tx = await session.begin({ actionType: "payment", preState: before, metadata: before });
  const after: Balance = { balance: 8.75 };
  const info = await tx.commit({ postState: after });
  for (const [back, given] of [[made.metadata, before], [limits.metadata, before], [info.preState, before], [info.postState, after]]) {
    assert.deepEqual(back, given);
  }
});

test("the end of a scope rolls back only a pending transaction", async () => {
  const session = await newSession();
  let open: Transaction, committed: Transaction;
  {
    await using one = await session.begin(payment);
    await using two = await session.begin(payment);
    [open, committed] = [one, two];
    await two.commit();
  }
  assert.deepEqual([(await open.get()).status, (await open.get()).reason, (await committed.get()).status], ["rolled_back", "not finished", "committed"]);
  assert.equal((await session.get()).valueUsed, 2n * USD);
  await assert.rejects(async () => {
    await using tx = await session.begin(payment);
    open = tx;
    throw new Error("the act failed");
  }, /^Error: the act failed$/);
  assert.equal((await open.get()).status, "rolled_back");
});

test("work that ends normally commits what is held, and work that fails rolls back", async () => {
  const session = await newSession();
  let seen: Transaction | undefined;
  assert.equal(await session.begin(payment, async (tx) => (await (seen = tx).commit()).value), 2n * USD);
  assert.equal((await seen!.get()).status, "committed");
  assert.equal(await session.begin(payment, async (tx) => ((seen = tx), "done")), "done");
  assert.deepEqual([(await seen!.get()).status, (await seen!.get()).value], ["committed", 2n * USD]);
  const oops = new Error("the act failed");
  await assert.rejects(session.begin(payment, async (tx) => { seen = tx; throw oops; }), oops);
  assert.equal((await seen!.get()).status, "rolled_back");
  await session.begin(payment, async (tx) => { await (seen = tx).rollback("no"); });
  assert.equal((await seen!.get()).status, "rolled_back");
});

test("the work's error wins over the rollback's, and a failed rollback does not become a commit", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, ["admin"], network.client());
  const body = JSON.stringify({ code: "insufficient_scope", detail: "words", required_scope: "admin" });
  network.fate = (seen) => (seen.place.endsWith("/rollback") ? { status: 403, body } : "pass");
  const oops = new Error("the act failed");
  await assert.rejects(session.begin(payment, async () => { throw oops; }), oops);
  const result = await session.begin(payment, async (tx) => {
    await failure(tx.rollback("not wanted"), InsufficientScope);
    return tx;
  });
  assert.equal((await result.get()).status, "pending");
  assert.deepEqual(network.seen.filter((s) => s.place.includes(result.id) && !s.place.startsWith("GET")).map((s) => s.body),
    ['{"reason":"not wanted"}', '{"reason":"not wanted"}']);
});

test("a commit with an unknown outcome is not rolled back", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({}, ["admin"], network.client({ maxAttempts: 1 }));
  let doubtful: Transaction | undefined;
  await assert.rejects(async () => {
    await using tx = await session.begin(payment);
    doubtful = tx;
    network.fate = (seen) => (seen.place.endsWith("/commit") ? "lose" : "pass");
    await tx.commit();
  }, OutcomeUnknown);
  assert.ok(network.seen.every((s) => !s.place.endsWith("/rollback")));
  assert.equal((await doubtful!.get()).status, "committed");
});

test("after a refused commit the transaction is still pending", async () => {
  const session = await newSession();
  await using tx = await session.begin(payment);
  await assert.rejects(tx.commit({ value: 10n ** 16n }));
  assert.equal((await tx.commit()).status, "committed");
});

test("transactions are listed, and need no session", async () => {
  const { agent } = await newAgent(["admin"]);
  const session = await sessionOf(agent);
  const held = await session.begin({ ...payment, expiresInSeconds: 60 });
  const decision = await agent.begin({ actionType: "approve", preState: {} });
  await decision.commit();
  const ids = async (list: AsyncIterable<{ id: string }>) => (await collect(list)).map((t) => t.id);
  assert.deepEqual(await ids(agent.transactions()), [decision.id, held.id]);
  assert.deepEqual(await ids(acme.transactions({ sessionId: session.id, status: "pending" })), [held.id]);
  const again = await agent.transaction(held.id).get();
  assert.deepEqual(again, held.info);
  assert.equal(again.expiresAt.getTime() - again.createdAt.getTime(), 60_000);
  assert.deepEqual([decision.info?.sessionId, decision.info?.sequenceNumber], [undefined, undefined]);
});
