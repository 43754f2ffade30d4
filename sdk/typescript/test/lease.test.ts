import assert from "node:assert/strict";
import test from "node:test";
import { LeaseClosed, LimitReached, SessionNotActive, USD, type Lease } from "@remit/sdk";
import { fakeClock, settle } from "./clock.js";
import { Charged, Ledger } from "./ledger.js";
import { failure, until } from "./outcome.js";

const cent = USD / 100n;

test("a lease charges without a request, and the settlement books it exactly", async () => {
  const ledger = new Ledger({ maxActions: 1_000_000, maxValue: 100_000n * USD });
  const lease = await ledger.session().lease();
  const charged = new Charged();
  for (let i = 0; i < 20_000; i++) {
    await charged.charge(lease, BigInt(i % 7) * cent, i % 3 === 0 ? undefined : `type ${i % 100}`, 1 + (i % 2));
  }
  assert.ok(ledger.seen.length < 100, `${ledger.seen.length} requests`);
  await lease.close();
  ledger.balances(charged.actions, charged.value);
  assert.equal(ledger.count("POST actions"), 0);
  await lease.close();
  await assert.rejects(async () => lease.charge(), LeaseClosed);
});

test("the last unit that fits is charged, and the refusal is the service's", async () => {
  for (const limits of [{ maxActions: 500 }, { maxValue: 5n * USD }, { maxActions: 3 }, { maxValue: 3n * cent }]) {
    const ledger = new Ledger(limits);
    const lease = await ledger.session().lease();
    const charged = new Charged();
    const refused = await failure((async () => { for (;;) await charged.charge(lease, cent); })(), LimitReached);
    const most = Math.min(limits.maxActions ?? Infinity, Number((limits.maxValue ?? 1_000_000_000n) / cent));
    assert.equal(charged.actions, most);
    assert.equal(refused.limit, limits.maxActions === undefined ? "max_value_usd" : "max_actions");
    assert.match(refused.message, /POST \/v1\/sessions\/s1\/actions: 403 session_limit_reached/);
    await lease.close();
    ledger.balances(charged.actions, charged.value);
  }
});

test("concurrent charges never exceed the limit, and use all of it", async () => {
  const ledger = new Ledger({ maxActions: 1_000 });
  const leases = await Promise.all([1, 2, 3].map(() => ledger.session().lease()));
  const charged = new Charged();
  const results = await Promise.allSettled(Array.from({ length: 1_500 }, (_, i) => charged.charge(leases[i % 3]!, 0n)));
  const refused = results.filter((r) => r.status === "rejected");
  assert.ok(refused.every((r) => r.reason instanceof LimitReached));
  ledger.withinLimits();
  await Promise.all(leases.map((lease) => lease.close()));
  ledger.balances(charged.actions, 0n);
  assert.equal(charged.actions + refused.length, 1_500);
  assert.ok(charged.actions >= 900, `${charged.actions}`); // leases of the others may hold a part at the end
});

test("a charge that the lease itself leaves no room for is charged after all", async () => {
  for (const options of [undefined, { idempotencyKey: "own" }]) {
    const ledger = new Ledger({ maxActions: 100 });
    const lease = await ledger.session().lease();
    assert.equal(lease.charge(), undefined);
    await lease.charge({ count: 99 }, options); // the lease holds 11 of them
    await failure(Promise.resolve(lease.charge()), LimitReached);
    await lease.close();
    ledger.balances(100, 0n);
  }
});

test("two leases overlap, so that charges do not wait", async (t) => {
  const forward = fakeClock(t);
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  const charged = new Charged();
  let waited = 0;
  const began = performance.now();
  for (let second = 0; second < 20; second++) {
    for (let i = 0; i < 200; i++) {
      const wait = lease.charge({ value: cent });
      waited += wait === undefined ? 0 : 1;
      await wait;
      charged.actions++;
      charged.value += cent;
      forward(5);
      await settle();
    }
  }
  assert.ok(waited <= 3, `${waited} charges waited`);
  const requests = ledger.count("POST settle") + ledger.count("POST leases");
  const seconds = (performance.now() - began) / 1000; // 20, and what the test itself takes: that counts for the lease
  assert.ok(requests >= 10 && requests <= 2.25 * seconds, `${requests} requests in ${seconds} seconds`);
  const last = [...ledger.leases.values()].at(-2)!.maxActions;
  assert.ok(last >= 20 && last <= 400, `${last} actions leased at a pace of up to 200 a second`);
  await lease.close();
  ledger.balances(charged.actions, charged.value);
});

test("charges go to the service that a lease does not serve", async () => {
  const ledger = new Ledger({ maxActions: 1_000, maxValue: 100n * USD });
  const lease = await ledger.session().lease();
  await lease.charge({ scope: "read" });
  await lease.charge({}, { idempotencyKey: "own" });
  await lease.charge({ value: 60n * USD });
  assert.equal(ledger.count("POST actions"), 3);
  assert.equal(ledger.seen.find((r) => r.key === "own")?.place, "POST actions");
  await lease.close();
  ledger.balances(3, 60n * USD);
});

test("what is wrong with a charge is said at once, or by the service", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  await assert.rejects(async () => lease.charge({ max: 1 } as object), /^TypeError: remit: a charge has no option max/);
  await assert.rejects(async () => lease.charge({ value: 1 as unknown as bigint }), /^TypeError: remit: value_usd must be a bigint/);
  await assert.rejects(async () => lease.charge({}, { key: "k" } as object), /^TypeError: remit: the options of a call has no option key/);
  for (const charge of [{ count: 0 }, { count: 1.5 }, { count: 1001 }, { actionType: "" }, { actionType: "x".repeat(201) }, { actionType: "\ud800" }, { value: -1n }]) {
    const before = ledger.count("POST actions");
    await Promise.resolve(lease.charge(charge)).catch(() => {});
    assert.equal(ledger.count("POST actions"), before + 1, JSON.stringify(charge, (_, v) => typeof v === "bigint" ? `${v}` : v));
  }
});

test("idle leases are given back and not renewed", async (t) => {
  const ledger = new Ledger();
  const forward = fakeClock(t);
  const lease = await ledger.session().lease();
  const charged = new Charged();
  for (let i = 0; i < 100; i++) {
    await charged.charge(lease);
  }
  forward(5_100);
  await until(() => ledger.open().length === 0);
  ledger.balances(100, 0n);
  const before = ledger.seen.length;
  forward(60_000);
  await new Promise((resolve) => setTimeout(resolve, 1_100));
  assert.equal(ledger.seen.length, before);
  await charged.charge(lease); // it leases again
  await lease.close();
  ledger.balances(101, 0n);
});

test("a lease in use is renewed before it expires", async () => {
  const ledger = new Ledger({ maxLeaseSeconds: 2 });
  const lease = await ledger.session().lease();
  let waited = 0;
  const end = Date.now() + 3_500;
  let charged = 0;
  while (Date.now() < end) {
    const wait = lease.charge();
    waited += wait === undefined ? 0 : 1;
    await wait;
    charged++;
    await new Promise((resolve) => setTimeout(resolve, 150));
  }
  assert.equal(ledger.count("POST actions"), 0);
  assert.ok(waited <= 2, `${waited} of ${charged} waited`);
  await lease.close();
  ledger.balances(charged, 0n);
  assert.ok([...ledger.leases.values()].every((l) => !l.late));
});

test("a session that has ended refuses as the service does, once the lease is spent", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  ledger.status = "completed";
  const charged = new Charged();
  const refused = await failure((async () => { for (;;) await charged.charge(lease); })(), SessionNotActive);
  assert.equal(refused.sessionStatus, "completed");
  assert.equal(charged.actions, 16);
  await lease.close();
  ledger.balances(16, 0n);
});

test("a session without leases refuses one", async () => {
  const refused = await failure(new Ledger({ maxLeaseSeconds: 0 }).session().lease(), LimitReached);
  assert.equal(refused.limit, "max_lease_seconds");
  await assert.rejects(new Ledger().session().lease({ seconds: 3 } as object), TypeError);
});

test("grants have keys on a client without them, and settlements need none", async () => {
  const ledger = new Ledger();
  await using lease = await ledger.session({ idempotencyKeys: false }).lease({ expiresInSeconds: 0.5 });
  await lease.charge({ scope: "read" });
  await lease.close();
  const keyed = (place: string) => ledger.seen.filter((r) => r.place === place).map((r) => r.key !== undefined);
  assert.deepEqual([keyed("POST leases"), keyed("POST settle"), keyed("POST actions")], [[true], [false], [false]]);
  assert.equal(ledger.seen.find((r) => r.place === "POST leases")?.body.expires_in_seconds, 1);
});

test("64 types are told apart at most, and the rest is other", async () => {
  const ledger = new Ledger();
  const lease: Lease = await ledger.session().lease();
  for (let i = 0; i < 1_000; i++) {
    await lease.charge({ actionType: i === 0 ? "other" : i === 1 ? "__proto__" : `type ${i}` });
  }
  await lease.charge({ actionType: "a", count: 3 });
  await lease.charge({});
  await lease.close();
  ledger.balances(1_004, 0n);
  const types = ledger.seen.filter((r) => r.place === "POST settle").map((r) => Object.keys(r.body.by_action_type ?? {}));
  assert.ok(types.some((names) => names.length === 64 && names.includes("other")));
});

test("an aborted charge is not made", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  for (let i = 0; i < 16; i++) {
    await lease.charge();
  }
  await settle();
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  ledger.fate = () => held;
  const aborted = new AbortController();
  const waiting = Promise.resolve(lease.charge({ value: cent }, { signal: aborted.signal }));
  const reason = new Error("enough");
  aborted.abort(reason);
  await assert.rejects(waiting, reason);
  release();
  ledger.fate = () => "pass";
  await lease.close();
  ledger.balances(16, 0n);
});
