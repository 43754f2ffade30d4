import assert from "node:assert/strict";
import test from "node:test";
import { OrganizationSuspended, OutcomeUnknown, USD } from "@remit/sdk";
import { fakeClock, settle } from "./clock.js";
import { Charged, Ledger } from "./ledger.js";
import { failure, until } from "./outcome.js";

const cent = USD / 100n;

test("lost answers are asked for again with the same key or the same numbers", async () => {
  const ledger = new Ledger({ maxActions: 100_000 });
  let n = 0;
  ledger.fate = ({ place }) => (place.startsWith("GET") ? "pass" : n++ % 3 === 0 ? "lose" : n % 7 === 0 ? "drop" : "pass");
  const lease = await ledger.session().lease();
  const charged = new Charged();
  while (n < 60 && charged.actions < 20_000) {
    await charged.charge(lease, cent);
  }
  await lease.close();
  ledger.balances(charged.actions, charged.value);
  for (const { key, text } of ledger.seen.filter((r) => r.key !== undefined)) {
    assert.ok(ledger.seen.every((other) => other.key !== key || other.text === text));
  }
});

test("an outcome that stays unknown is learned later, and nothing of the lease is lost", async () => {
  for (const lost of ["POST leases", "POST settle"]) {
    const ledger = new Ledger({ maxActions: 10_000 });
    const lease = await ledger.session({ maxAttempts: 1 }).lease();
    const charged = new Charged();
    let failures = 3;
    ledger.fate = ({ place }) => (place === lost && failures-- > 0 ? "lose" : "pass");
    for (let i = 0; i < 200; i++) {
      await charged.charge(lease, cent);
      await settle();
    }
    for (let tries = 0; tries < 5; tries++) {
      await lease.close().catch(() => {});
    }
    assert.ok(failures < 3);
    ledger.balances(charged.actions, charged.value);
  }
});

test("a settlement whose answer was lost and that the service has forgotten was made", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session({ maxAttempts: 1 }).lease();
  await lease.charge();
  ledger.fate = ({ place }) => (place === "POST settle" ? "lose" : "pass");
  await failure(lease.close(), OutcomeUnknown);
  ledger.leases.forEach((made) => (made.forgotten = true)); // an hour later
  ledger.fate = () => "pass";
  await lease.close();
  assert.equal(ledger.count("POST settle"), 2);
  ledger.balances(1, 0n);
});

test("a first lease whose answer was lost is given back", async () => {
  const ledger = new Ledger();
  ledger.fate = ({ place, nth }) => (place === "POST leases" && nth === 1 ? "lose" : "pass");
  await failure(ledger.session({ maxAttempts: 1 }).lease(), OutcomeUnknown);
  await until(() => ledger.count("POST settle") > 0 && ledger.open().length === 0);
  ledger.balances(0, 0n);
});

test("while the service is down, what is leased is spent and nothing else", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session({ maxAttempts: 1 }).lease();
  const charged = new Charged();
  ledger.fate = () => "down";
  let refused: unknown;
  while (refused === undefined) {
    await charged.charge(lease, 0n).catch((error: unknown) => (refused = error));
  }
  assert.equal(charged.actions, 16);
  assert.match(String(refused), /503 unavailable/);
  await assert.rejects(lease.close(), /unavailable/);
  ledger.fate = () => "pass";
  await lease.close();
  ledger.balances(16, 0n);
});

test("a process that dies has spent what it leased, and no more", async (t) => {
  const forward = fakeClock(t);
  const ledger = new Ledger({ maxActions: 100_000 });
  ledger.now = () => Date.now();
  let charged = 0;
  for (let life = 0; life < 20; life++) {
    const lease = await ledger.session().lease(); // it is never closed
    for (let i = 0; i < 300; i++) {
      await lease.charge();
      charged++;
    }
    forward(100);
  }
  forward(70_000);
  assert.equal(ledger.open().length, 0);
  assert.ok(ledger.actions >= charged);
  ledger.withinLimits();
});

test("an expired lease is not spent, whichever clock says so", async (t) => {
  for (const clock of ["monotonic", "of day"]) {
    const ledger = new Ledger({ maxLeaseSeconds: 1 });
    const lease = await ledger.session().lease();
    assert.equal(lease.charge(), undefined);
    const [monotonic, ofDay] = [performance.now(), Date.now()];
    if (clock === "monotonic") {
      t.mock.method(performance, "now", () => monotonic + 951);
    } else {
      t.mock.method(Date, "now", () => ofDay + 951);
    }
    const wait = lease.charge();
    assert.notEqual(wait, undefined);
    t.mock.restoreAll();
    await wait;
    await lease.close();
    ledger.balances(2, 0n);
  }
});

test("the lifetime counts from before the request", async (t) => {
  const forward = fakeClock(t);
  const ledger = new Ledger({ maxLeaseSeconds: 10 });
  ledger.now = () => 0; // the service's clock may show another time
  ledger.fate = ({ place }) => {
    if (place === "POST leases") {
      forward(9_600); // the answer takes long
    }
    return "pass";
  };
  const lease = await ledger.session().lease();
  ledger.fate = () => "pass";
  assert.notEqual(lease.charge(), undefined);
});

test("a settlement after the lease has expired is late, and exact", async (t) => {
  const forward = fakeClock(t);
  const ledger = new Ledger({ maxLeaseSeconds: 2 });
  ledger.now = () => Date.now();
  const lease = await ledger.session().lease();
  const charged = new Charged();
  await charged.charge(lease);
  forward(3_000); // the process slept
  await charged.charge(lease);
  await lease.close();
  ledger.balances(2, 0n);
  assert.ok([...ledger.leases.values()].some((l) => l.late && l.actions === 1));
});

test("a settlement waits until a suspended organization is resumed", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  await lease.charge();
  ledger.fate = () => "suspended";
  await assert.rejects(lease.close(), OrganizationSuspended);
  ledger.fate = () => "pass";
  await lease.close();
  ledger.balances(1, 0n);
});

test("the settlement of a lease that others settled is reported by close", async () => {
  const ledger = new Ledger();
  const lease = await ledger.session().lease();
  await lease.charge();
  [...ledger.leases.values()][0]!.status = "settled";
  await assert.rejects(lease.close(), /409 lease_settled/);
  await lease.close();
});
