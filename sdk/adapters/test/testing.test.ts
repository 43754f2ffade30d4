import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import test from "node:test";
import { LimitReached, usd } from "@remit/sdk";
import { startRemit } from "@remit/adapters/testing";

const unreachable = (url: string) => assert.rejects(fetch(url), /fetch failed/);

test("an agent's budget is tested against a service of the test's own", async () => {
  let url: string;
  {
    await using remit = await startRemit({ limits: { maxValue: usd("0.1") }, scopes: ["read"] });
    url = remit.url;
    assert.equal(existsSync("data"), false, "it writes beside the tests");
    await remit.session.charge({ value: usd("0.1"), scope: "read" });
    await assert.rejects(remit.session.charge({ value: usd("0.1") }), LimitReached);
    const other = await remit.newSession({ maxActions: 1 });
    assert.equal((await other.charge()).remainingActions, 0);
    assert.equal((await remit.organization.getSession(remit.session.id)).valueUsed, usd("0.1"));
  }
  await unreachable(url);
});

test("the service ends with a process that is killed", async () => {
  const program = 'const { startRemit } = await import("@remit/adapters/testing"); console.log((await startRemit()).url); setInterval(() => {}, 1000);';
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const url = String(line).trim();
  assert.equal((await fetch(`${url}/healthz`)).status, 200);
  child.kill("SIGKILL");
  await once(child, "exit");
  for (const end = Date.now() + 15_000; await fetch(url).then(() => true, () => false); ) {
    assert.ok(Date.now() < end, "the service still runs");
  }
});

test("a program that is missing or no service says so", async () => {
  await assert.rejects(startRemit({ binary: "remit-that-is-not-there" }), /is not installed: set REMIT_BINARY/);
  await assert.rejects(startRemit({ binary: "false" }), /remit ended/);
});
