import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";
import { USD } from "@remit/sdk";
import { apiKey, newAgent, serviceURL, sessionOf } from "./service.js";

// run runs an example of README.md unchanged, and returns what it prints.
async function run(example: string, limits: { maxActions: number; maxValue: bigint }): Promise<() => Promise<string>> {
  const { agent, secret } = await newAgent(["admin"]);
  const session = await sessionOf(agent, limits);
  const env = {
    PATH: process.env["PATH"], REMIT_ADDR: serviceURL, REMIT_API_KEY: apiKey,
    REMIT_AGENT: agent.id, REMIT_SECRET: secret, REMIT_SESSION: session.id,
  };
  const file = new URL(`readme/${example}.js`, import.meta.url).pathname;
  return async () => {
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [file], { env });
    return stdout + stderr;
  };
}

test("the first example of the README runs", async () => {
  const first = await run("first", { maxActions: 2, maxValue: USD / 2n });
  assert.equal(await first(), "1 actions and 0.13 USD left\n");
  assert.equal(await first(), "out of max_value_usd: nothing was charged\n");
});

test("the examples of the README run as one program", async () => {
  const whole = await run("whole", { maxActions: 100, maxValue: 100n * USD });
  const output = await whole();
  assert.match(output, /^99 actions and 99.63 USD left\n/);
  assert.match(output, /committed at 1.25 USD/);
  assert.match(output, /leases charged exactly 20 calls: 22\n/); // after the first charge and the payment
  assert.match(output, /at most 0.006 USD\nit cost 0.00276 USD\n/);
  assert.match(output, /session\.created/);
});
