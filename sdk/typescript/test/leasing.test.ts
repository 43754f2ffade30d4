// Leases of the service itself; lease.test.ts has the cases that need another one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";
import { LimitReached, USD } from "@remit/sdk";
import { newNetwork } from "./network.js";
import { failure, newAgent, newSession, serviceURL, sessionOf } from "./service.js";

const cent = USD / 100n;

test("the service's books show what was charged from leases, to the last unit", async () => {
  for (const limits of [{ maxActions: 300 }, { maxValue: 3n * USD }]) {
    const session = await newSession({ ...limits, maxLeaseSeconds: 60 });
    let charged = 0;
    {
      await using lease = await session.lease();
      const refused = await failure((async () => {
        for (;; charged++) {
          await lease.charge({ actionType: `type ${charged % 5}`, value: cent });
        }
      })(), LimitReached);
      assert.equal(refused.limit, "maxActions" in limits ? "max_actions" : "max_value_usd");
    }
    const { actionCount, valueUsed, valueHeld } = await session.get();
    assert.deepEqual([charged, actionCount, valueUsed, valueHeld], [300, 300, 3n * USD, 0n]);
  }
});

test("settlements whose answers were lost are booked once", async (t) => {
  const network = await newNetwork(t);
  const session = await newSession({ maxLeaseSeconds: 60 }, ["admin"], network.client());
  network.fate = ({ place, nth }) => (/lease/.test(place) && nth === 1 ? "lose" : "pass");
  const lease = await session.lease();
  for (let i = 0; i < 200; i++) {
    await lease.charge({ actionType: "llm.call", value: cent });
  }
  await lease.close();
  const { actionCount, valueUsed, valueHeld } = await session.get();
  assert.deepEqual([actionCount, valueUsed, valueHeld], [200, 2n * USD, 0n]);
  assert.ok(network.count(network.seen.find((s) => s.place.endsWith("/leases"))!.place) >= 2);
});

// A process that nothing keeps alive settles what it has leased.
test("leases that are open when a process ends are settled", async () => {
  const { agent, secret } = await newAgent(["admin"]);
  const session = await sessionOf(agent, { maxLeaseSeconds: 60 });
  const program = `
    import { Session } from "@remit/sdk";
    const lease = await Session.fromEnv().lease();
    for (let i = 0; i < 5; i++) await lease.charge();
  `;
  const env = { PATH: process.env["PATH"], REMIT_ADDR: serviceURL, REMIT_AGENT: agent.id, REMIT_SECRET: secret, REMIT_SESSION: session.id };
  const cwd = new URL("..", import.meta.url).pathname;
  await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], { env, cwd, timeout: 20_000 });
  assert.equal((await session.get()).actionCount, 5);
});
