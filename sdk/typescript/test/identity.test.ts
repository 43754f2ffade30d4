// Who an agent is, and for whom its tokens are: the SDK with the service.
import assert from "node:assert/strict";
import test from "node:test";
import {
  DPoPRequired, generateKey, InvalidProof, ProtectedResource, Unauthorized, type AgentParams,
} from "@remit/sdk";
import { part } from "./jws.js";
import { acme, failure, remit, serviceURL, sessionOf } from "./service.js";

const tools = "https://tools.example/mcp";
const files = "https://files.example/";
const issuer = ((await (await fetch(`${serviceURL}/.well-known/oauth-authorization-server`)).json()) as { issuer: string }).issuer;

const made = (params: Partial<AgentParams> = {}) => acme.createAgent({ name: "scout", scopes: ["read", "write"], ...params });
const audienceOf = (token: string) => part(token, 1)["aud"];

/** Returns an agent without a secret, and its key. */
async function keyed(algorithm: "ES256" | "EdDSA" = "ES256", params: Partial<AgentParams> = {}) {
  const key = await generateKey(algorithm);
  const agent = await made({ secret: false, jwks: key.jwks, ...params });
  return { agent, key };
}

test("what an agent registers is shown, changed and removed", async () => {
  const key = await generateKey();
  const { id, secret, ...info } = await made({ audiences: [tools], jwks: key.jwks, dpopRequired: true, secret: false });
  assert.deepEqual([info.audiences, info.jwks, info.jwksUri, info.dpopRequired, info.hasSecret, secret.reveal()],
    [[tools], key.jwks, undefined, true, false, ""]);
  const changed = await acme.updateAgent(id, { audiences: [], jwksUri: "https://keys.example/jwks.json", dpopRequired: false });
  assert.deepEqual([changed.audiences, changed.jwks, changed.jwksUri, changed.dpopRequired], [[], undefined, "https://keys.example/jwks.json", false]);
  const plain = await acme.updateAgent(id, { audiences: null, jwksUri: null });
  assert.deepEqual([plain.audiences, plain.jwks, plain.jwksUri, plain.hasSecret], [undefined, undefined, undefined, false]);
  const usual = await acme.getAgent((await made()).id);
  assert.deepEqual([usual.audiences, usual.jwks, usual.dpopRequired, usual.hasSecret], [undefined, undefined, false, true]);
});

for (const algorithm of ["ES256", "EdDSA"] as const) {
  test(`an agent without a secret authenticates with its ${algorithm} key, and refreshes`, async () => {
    const { agent, key } = await keyed(algorithm);
    const scout = remit.agent(agent.id, { key });
    const session = await sessionOf(scout);
    assert.equal((await session.charge()).actionCount, 1);
    const first = await scout.token();
    await scout.refresh();
    assert.notEqual(await scout.token(), first);
    await failure(remit.agent(agent.id, { key: await generateKey(algorithm) }).token(), Unauthorized);
    await acme.updateAgent(agent.id, { jwks: null });
    await failure(remit.agent(agent.id, { key }).token(), Unauthorized);
  });
}

test("a key in memory is enough for an agent that must prove one", async () => {
  const agent = await made({ dpopRequired: true });
  await failure(remit.agent(agent.id, agent.secret).token(), DPoPRequired);
  await failure(remit.agent(agent.id, { secret: agent.secret, scopes: ["read"] }).token(), DPoPRequired);
  const scout = remit.agent(agent.id, { secret: agent.secret, dpop: true });
  assert.equal((await (await sessionOf(scout)).charge()).actionCount, 1);
});

test("a proof shown elsewhere is verified once, for its request", async () => {
  const agent = await made();
  const scout = remit.agent(agent.id, { secret: agent.secret, resource: [tools], dpop: true });
  const server = new ProtectedResource({ resource: tools, authorizationServers: [issuer] });
  const asks = async (headers: Record<string, string>, method = "GET") =>
    server.handle(new Request(`${tools}?x=1`, { method, headers }), remit);
  const headers = await scout.prove("GET", `${tools}?x=1`);
  const verified = await asks(headers);
  assert.ok(!(verified instanceof Response), String((verified as Response).status));
  assert.deepEqual([verified.agentId, verified.thumbprint], [agent.id, (part(await scout.token(), 1)["cnf"] as { jkt: string }).jkt]);
  for (const again of [await asks(headers), await asks(await scout.prove("GET", tools), "POST")]) { // replayed; for another method
    assert.ok(again instanceof Response);
    assert.equal(again.status, 401);
    assert.match(again.headers.get("WWW-Authenticate")!, /^DPoP error="invalid_dpop_proof"/);
  }
  const options = { audience: tools, proof: (await scout.prove("GET", files))["DPoP"]!, method: "GET", url: tools };
  const error = await failure(remit.verify(await scout.token(), undefined, options), InvalidProof);
  assert.ok(Math.abs(error.clockSkew!) < 30);
});

test("a delegated token may be for a resource, and bound to the key of who delegates", async () => {
  const planner = await made({ scopes: ["read", "sessions:delegate"] });
  const helper = await made();
  const key = await generateKey();
  const lead = remit.agent(planner.id, { secret: planner.secret, dpop: key, resource: [issuer, tools] });
  const child = await (await sessionOf(lead)).createChild({ agentId: helper.id });
  const { accessToken, tokenType } = await lead.delegate(child.id, { resource: [tools] });
  assert.equal(tokenType, "DPoP");
  assert.deepEqual([audienceOf(accessToken.reveal()), part(accessToken.reveal(), 1)["cnf"]], [tools, { jkt: key.thumbprint }]);
  const headers = await remit.agentWithToken(accessToken, { dpop: key }).prove("GET", tools);
  const server = new ProtectedResource({ resource: tools, authorizationServers: [issuer] });
  const verified = await server.handle(new Request(tools, { headers }), remit);
  assert.deepEqual([(verified as { actorId: string }).actorId, (verified as { agentId: string }).agentId], [planner.id, helper.id]);
});
