// Kills programs amid their calls. It is no part of make test.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import test from "node:test";
import { usd } from "@remit/sdk";
import { costOf, ledger, newAgentAndSession, organization, priceTable, serviceURL, settled } from "./reconcile.js";

const rounds = 6;

for (const adapter of ["fetch", "ai", "langchain", "agents"]) {
  test(`what a killed program of ${adapter} held is spent, and what it committed is what the provider counted`, async () => {
    let [spent, committed] = [0, 0];
    for (let round = 0; round < rounds; round++) {
      const outcome = await killOne(adapter, `${adapter}-${Math.random().toString(36).slice(2)}`);
      spent += outcome.spent;
      committed += outcome.committed;
    }
    assert.ok(spent > 0 && committed > 0, `${spent} calls were spent when they expired, ${committed} were committed`);
  });
}

async function killOne(adapter: string, name: string): Promise<{ spent: number; committed: number }> {
  const limit = usd("0.2");
  const { agent, secret, session } = await newAgentAndSession(limit);
  const child = spawn(process.execPath, [new URL("victim.js", import.meta.url).pathname, adapter, name], {
    env: {
      REMIT_ADDR: serviceURL, REMIT_AGENT: agent, REMIT_SECRET: secret, REMIT_SESSION: session.id, REMIT_PRICES: priceTable,
      REMIT_FAKE_PROVIDER: process.env["REMIT_FAKE_PROVIDER"],
    },
    stdio: ["ignore", "pipe", "inherit"],
  });
  await Promise.race([once(child.stdout, "data"), once(child, "exit").then(() => assert.fail("it ended by itself"))]);
  await new Promise((resolve) => setTimeout(resolve, Math.random() * 300));
  child.kill("SIGKILL");
  await once(child, "exit");

  await settled(session); // its holds expire after 2 seconds
  const counted = await ledger();
  const outcome = { spent: 0, committed: 0 };
  let used = 0n;
  for await (const { id, status, value, overage, settledBy } of organization.transactions({ sessionId: session.id })) {
    assert.notEqual(status, "pending");
    assert.equal(overage, 0n);
    if (status !== "committed") {
      continue;
    }
    used += value;
    if (settledBy === "expiry") {
      outcome.spent++;
    } else {
      const { model } = (await organization.transaction(id).get()).metadata as { model: string };
      const [record] = counted.get(model) ?? [];
      assert.ok(record?.ended && costOf(record) === value, `${model}: ${value} is committed, the provider counted ${JSON.stringify(record)}`);
      outcome.committed++;
    }
  }
  const { valueUsed } = await session.get();
  assert.equal(valueUsed, used);
  assert.ok(valueUsed <= limit);
  return outcome;
}
