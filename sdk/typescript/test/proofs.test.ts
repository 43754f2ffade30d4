// Proofs of possession as the SDK sends them. The network answers instead of the service.
import assert from "node:assert/strict";
import { createHash, createPrivateKey, createPublicKey } from "node:crypto";
import test, { type TestContext } from "node:test";
import { inspect } from "node:util";
import { DPoPRequired, generateKey, InvalidProof, OutcomeUnknown, RemitError, Unauthorized, UnusableCredential, type AgentOptions } from "@remit/sdk";
import { isSigned, part } from "./jws.js";
import { newNetwork, type Fate, type Network, type Seen } from "./network.js";
import { failure } from "./outcome.js";

const exchange = "POST /v1/auth/token";
const charge = "POST /v1/sessions/s1/actions";
const pair = { access_token: "access", refresh_token: "refresh", token_type: "DPoP", expires_in: 3600 };
const usage = {
  action_count: 1, max_actions: 10, value_used_usd: 0, max_value_usd: 1, value_held_usd: 0, remaining_actions: 9, remaining_value_usd: 1,
  expires_at: "2026-11-21T09:19:32.859Z",
};
const json = (value: unknown, status = 200, headers: Record<string, string> = {}): Fate => ({ status, headers, body: JSON.stringify(value) });
const problem = (status: number, code: string, headers?: Record<string, string>) => json({ status, code, detail: "words" }, status, headers);
const answered: (seen: Seen) => Fate = (seen) => json(seen.place === charge ? usage : pair);

async function newAgent(t: TestContext, options: Partial<AgentOptions> = { dpop: true }) {
  const network = await newNetwork(t);
  network.fate = answered;
  return { network, agent: network.client({ maxAttempts: 2 }).agent("a1", { secret: "s", ...options }) };
}

const proofOf = (seen: Seen | undefined) => seen!.headers["dpop"] as string;
const proofs = (network: Network, place: string) => network.seen.filter((s) => s.place === place).map(proofOf);
const nonces = (network: Network, place: string) => proofs(network, place).map((proof) => part(proof, 1)["nonce"]);

test("each request for a token and each call carries a proof of the same key", async (t) => {
  const { network, agent } = await newAgent(t);
  await agent.session("s1").charge();
  await agent.session("s1").dryRunCharge();
  await agent.refresh();
  const keys = new Set(network.seen.map((seen) => JSON.stringify(part(proofOf(seen), 0)["jwk"])));
  assert.equal(keys.size, 1);
  assert.deepEqual(network.seen.map((s) => s.place), [exchange, charge, charge, "POST /v1/auth/refresh"]);
  for (const seen of network.seen) {
    const { jwk, ...header } = part(proofOf(seen), 0);
    assert.deepEqual(header, { alg: "ES256", typ: "dpop+jwt" });
    assert.deepEqual(Object.keys(jwk as object).sort(), ["crv", "kty", "x", "y"]);
    assert.ok(isSigned(proofOf(seen), createPublicKey({ key: jwk as Record<string, string>, format: "jwk" }), "ES256"));
    const { iat, jti, ath, ...claims } = part(proofOf(seen), 1);
    assert.deepEqual(claims, { htm: "POST", htu: network.url + seen.place.replace("POST ", "") });
    assert.ok(Number.isInteger(iat) && Math.abs(Date.now() / 1000 - Number(iat)) < 10);
    const isCall = seen.place === charge;
    assert.equal(ath, isCall ? createHash("sha256").update("access").digest("base64url") : undefined);
    assert.equal(seen.token, isCall ? "DPoP access" : undefined);
  }
  assert.equal(new Set(network.seen.map((seen) => part(proofOf(seen), 1)["jti"])).size, 4);
});

test("a proof names the URL without its query", async (t) => {
  const { network, agent } = await newAgent(t);
  network.fate = (seen) => json(seen.place === exchange ? pair : []);
  for await (const _ of agent.sessions({ status: "active" })) {
    assert.fail("there is none");
  }
  const list = network.seen.find((s) => s.place === "GET /v1/sessions")!;
  assert.match(list.query, /status=active/);
  const { htm, htu } = part(proofOf(list), 1);
  assert.deepEqual([htm, htu], ["GET", `${network.url}/v1/sessions`]);
});

test("a retry sends a fresh proof with the same idempotency key", async (t) => {
  const { network, agent } = await newAgent(t);
  network.fate = (seen) => (seen.place === charge && seen.nth === 1 ? problem(503, "unavailable") : answered(seen));
  await agent.session("s1").charge();
  const both = network.seen.filter((s) => s.place === charge);
  assert.equal(both.length, 2);
  assert.equal(both[0]!.key, both[1]!.key);
  assert.notEqual(part(proofOf(both[0]), 1)["jti"], part(proofOf(both[1]), 1)["jti"]);
});

test("the newest nonce of any answer goes into the proofs that follow", async (t) => {
  const { network, agent } = await newAgent(t);
  network.fate = (seen) => json(seen.place === charge ? usage : pair, 200, seen.nth === 1 ? { "DPoP-Nonce": `${seen.place.at(-1)}1` } : {});
  for (let i = 0; i < 3; i++) {
    await agent.session("s1").charge();
  }
  assert.deepEqual([nonces(network, exchange), nonces(network, charge)], [[undefined], ["n1", "s1", "s1"]]);
});

test("a call whose nonce is too old is sent once more, which is no attempt", async (t) => {
  const { network, agent } = await newAgent(t);
  const stale = (seen: Seen) => problem(seen.place === charge ? 401 : 400, "use_dpop_nonce", { "DPoP-Nonce": `n${seen.nth}` });
  network.fate = (seen) => (seen.nth === 1 ? stale(seen) : seen.nth === 2 && seen.place === charge ? problem(503, "unavailable") : answered(seen));
  await agent.session("s1").charge();
  assert.deepEqual(nonces(network, exchange), [undefined, "n1"]);
  assert.deepEqual(nonces(network, charge), ["n1", "n1", "n1"]);
  assert.equal(new Set(network.seen.filter((s) => s.place === charge).map((s) => s.key)).size, 1);

  network.fate = (seen) => (seen.place === charge ? stale(seen) : answered(seen));
  const error = await failure(agent.session("s1").charge(), InvalidProof);
  assert.equal(error.code, "use_dpop_nonce");
  assert.equal(network.count(charge), 5); // it does not go on forever
});

test("an OAuth error asks for a nonce too", async (t) => {
  const { network, agent } = await newAgent(t, { dpop: true, scopes: ["read"] });
  network.fate = (seen) => (seen.nth === 1 ? json({ error: "use_dpop_nonce" }, 400, { "DPoP-Nonce": "n" }) : json(pair));
  await agent.token();
  assert.deepEqual(nonces(network, "POST /oauth2/token"), [undefined, "n"]);
});

test("a key of one's own proves, of every algorithm", async (t) => {
  for (const algorithm of ["ES256", "EdDSA"] as const) {
    const key = await generateKey(algorithm);
    const { network, agent } = await newAgent(t, { dpop: key.text });
    await agent.token();
    const proof = proofs(network, exchange)[0]!;
    assert.equal(part(proof, 0)["alg"], algorithm);
    assert.ok(isSigned(proof, createPrivateKey({ key: JSON.parse(key.text.reveal()), format: "jwk" }), algorithm));
    const jwk = part(proof, 0)["jwk"] as Record<string, string>;
    assert.ok(!("d" in jwk) && !("kid" in jwk));
    assert.ok(!inspect(agent, { depth: Infinity, showHidden: true }).includes((JSON.parse(key.text.reveal()) as { d: string }).d));
  }
});

test("a token that is not bound is not used", async (t) => {
  const { network, agent } = await newAgent(t);
  network.fate = () => json({ ...pair, token_type: "bearer" });
  const error = await failure(agent.session("s1").charge(), RemitError);
  assert.match(error.message, /its token is not bound to the agent's key/);
  assert.equal(network.count(charge), 0);
});

test("an agent that must prove a key and has none says which option is missing", async (t) => {
  for (const answer of [problem(401, "dpop_required"), json({ error: "invalid_dpop_proof" }, 400)]) {
    const { network, agent } = await newAgent(t, {});
    network.fate = () => answer;
    const error = await failure(agent.token(), DPoPRequired);
    assert.match(error.message, /set the agent's option dpop/);
    assert.equal(network.count(exchange), 1);
  }
});

test("a refused proof says how far this machine's clock is off", async (t) => {
  for (const [ahead, words] of [[-180, "3m0s behind"], [3661, "1h1m1s ahead of"], [45, "45s ahead of"], [10, undefined]] as const) {
    const { network, agent } = await newAgent(t);
    const date = new Date(Math.floor(Date.now() / 1000 - ahead) * 1000).toUTCString();
    network.fate = () => problem(400, "invalid_dpop_proof", { Date: date });
    const now = Date.now();
    t.mock.method(Date, "now", () => Math.floor(now / 1000) * 1000);
    const error = await failure(agent.token(), InvalidProof);
    t.mock.restoreAll();
    assert.equal(Math.round(error.clockSkew!), ahead);
    assert.equal(/this machine's clock is (\S+ \S+(?: of)?) the service's/.exec(error.message)?.[1], words);
  }
});

// The service would take the second for a replay, and the request that carried the proof for stolen.
test("a proof of another's request is not sent twice", async (t) => {
  const { network } = await newAgent(t);
  network.fate = () => "lose";
  const presented = { proof: "d.e.f", method: "GET", url: "https://tools.example/mcp" };
  await failure(network.client({ maxAttempts: 3 }).verify("a.b.c", undefined, presented), OutcomeUnknown);
  assert.equal(network.count("GET /v1/auth/verify"), 1);
});

test("a request to another server carries a proof without the service's nonce", async (t) => {
  const { network, agent } = await newAgent(t);
  network.fate = () => json(pair, 200, { "DPoP-Nonce": "n" });
  const { Authorization, DPoP, ...rest } = await agent.prove("PUT", "https://tools.example/mcp?x=1#y");
  assert.deepEqual([Authorization, rest], ["DPoP access", {}]);
  const { jti: _, iat: __, ...claims } = part(DPoP!, 1);
  const ath = createHash("sha256").update("access").digest("base64url");
  assert.deepEqual(claims, { htm: "PUT", htu: "https://tools.example/mcp", ath });

  const bearer = await newAgent(t, {});
  assert.deepEqual(await bearer.agent.prove("GET", "https://tools.example/"), { Authorization: "Bearer access" });
});

// A token that says of itself whose it is and to which key it is bound. Only the service verifies it.
const tokenWith = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;

test("an agent by a token alone uses that token, and cannot renew it", async (t) => {
  const { network } = await newAgent(t);
  const text = tokenWith({ sub: "a2" });
  const agent = network.client().agentWithToken(text);
  assert.equal(agent.id, "a2");
  assert.equal(await agent.token(), text);
  await agent.session("s1").charge();
  assert.deepEqual(network.seen.map((s) => [s.place, s.token]), [[charge, `Bearer ${text}`]]);
  assert.match((await failure(agent.refresh(), Unauthorized)).message, /cannot be renewed: get a new one from the agent that delegated/);

  network.fate = () => problem(401, "invalid_token");
  const error = await failure(agent.session("s1").charge(), Unauthorized);
  assert.deepEqual([error.code, error.detail, network.count(charge)], ["invalid_token", "words", 2]);
});

test("a bound token needs its key", async (t) => {
  const { network } = await newAgent(t);
  const [key, text] = [await generateKey(), tokenWith({ sub: "a2", cnf: { jkt: "x" } })];
  const error = await failure((async () => network.client().agentWithToken(text))(), UnusableCredential);
  assert.match(error.message, /pass the key as dpop/);
  const agent = network.client().agentWithToken(text, { dpop: key });
  await agent.session("s1").charge();
  assert.equal(network.seen[0]!.token, `DPoP ${text}`);
  assert.equal(part(proofOf(network.seen[0]), 1)["ath"], createHash("sha256").update(text).digest("base64url"));
  for (const wrong of ["hunter2", "a.hunter2.c", tokenWith({}), tokenWith([])]) {
    const refusal = await failure((async () => network.client().agentWithToken(wrong))(), UnusableCredential);
    assert.ok(!inspect(refusal).includes("hunter2"));
  }
});

test("delegating by a token that was revoked is repeated with a new one, once", async (t) => {
  for (const works of [true, false]) {
    const { network, agent } = await newAgent(t, {});
    const delegated = { access_token: tokenWith({ sub: "a2" }), token_type: "Bearer", expires_in: 60 };
    network.fate = (seen) => {
      const subject = new URLSearchParams(seen.body).get("subject_token");
      return seen.place !== "POST /oauth2/token" ? json({ ...pair, access_token: `access-${network.seen.length}` })
        : works && subject !== "access-1" ? json(delegated) : json({ error: "invalid_request" }, 400);
    };
    const asked = agent.delegate("s2");
    await (works ? asked : failure(asked, RemitError));
    const { seen } = network;
    assert.deepEqual(seen.map((s) => s.place), [exchange, "POST /oauth2/token", "POST /v1/auth/refresh", "POST /oauth2/token"]);
  }
});

test("delegating exchanges the agent's own token, with a proof of its key", async (t) => {
  const { network, agent } = await newAgent(t);
  const token = tokenWith({ sub: "a2" });
  network.fate = (seen) =>
    json(seen.place === "POST /oauth2/token" ? { access_token: token, token_type: "DPoP", expires_in: 60, scope: "read" } : pair);
  const delegated = await agent.delegate("s2", { scopes: ["read"], resource: ["https://a.example/"] });
  assert.equal(delegated.accessToken.reveal(), token);
  const { accessToken: _, ...rest } = delegated;
  assert.deepEqual(rest, { tokenType: "DPoP", expiresIn: 60, scopes: ["read"], sessionId: "s2", agentId: "a2" });
  const request = network.seen.find((s) => s.place === "POST /oauth2/token")!;
  assert.deepEqual([...new URLSearchParams(request.body)], [
    ["grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"], ["subject_token", "access"],
    ["subject_token_type", "urn:ietf:params:oauth:token-type:access_token"], ["session_id", "s2"], ["scope", "read"],
    ["resource", "https://a.example/"],
  ]);
  assert.equal(request.token, undefined);
  assert.equal(part(proofOf(request), 1)["htm"], "POST");
});
