import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { Credential, Unauthorized } from "@remit/sdk";
import { newNetwork } from "./network.js";
import { acme, apiKey, failure, newAgent, remit, sessionOf } from "./service.js";

const printed = (value: unknown) =>
  inspect(value, { depth: Infinity, showHidden: true }) + String(value) + `${(value as Error).stack ?? ""}`;

test("no client prints a credential", async () => {
  const { agent, secret } = await newAgent(["admin"]);
  const session = await sessionOf(agent);
  const tx = await session.begin({ actionType: "x", preState: {} });
  const secrets = [secret, apiKey, await agent.token()];
  for (const value of [remit, acme, agent, session, tx]) {
    for (const text of secrets) {
      assert.ok(!printed(value).includes(text), inspect(value));
      assert.ok(!JSON.stringify(value, (_, v) => (typeof v === "bigint" ? String(v) : v)).includes(text));
    }
  }
});

test("a credential is redacted wherever it is printed", async () => {
  const made = await acme.createAgent({ name: "scout" });
  assert.ok(made.secret instanceof Credential);
  assert.match(inspect(made), /secret: \[credential\]/);
  assert.equal(`${made.secret}`, "[credential]");
  assert.ok(!printed(made).includes(made.secret.reveal()));
  assert.throws(() => JSON.stringify(made), /cannot be written as JSON/);
});

test("no error contains a credential", async (t) => {
  const network = await newNetwork(t);
  const through = network.client({ maxAttempts: 1 });
  const { agent, secret } = await newAgent([], through);
  const access = await agent.token();
  network.fate = () => "lose";
  const failures = [
    failure(agent.session("x").charge(), Error),
    failure(through.organization(apiKey).createAgent({ name: "x" }), Error),
    failure(through.agent(agent.id, secret).token(), Error),
    failure(remit.organization("rmk_wrong").getAgent("x"), Unauthorized),
    failure(remit.agent(agent.id, "wrong-secret").token(), Unauthorized),
    failure(remit.verify(`${access}x`), Unauthorized),
    failure(remit.organization(`${apiKey}\n`).getAgent("x"), TypeError), // fetch would quote it
    failure(remit.verify(`${access}\u2026`), TypeError),
    failure(acme.introspect(access, { signal: AbortSignal.abort(new Error("no")) }), Error),
  ];
  for (const error of await Promise.all(failures)) {
    for (const text of [secret, apiKey, access, "wrong-secret", "rmk_wrong"]) {
      assert.ok(!(printed(error) + JSON.stringify(error)).includes(text), error.message);
    }
  }
});
