// Who an agent is, and for whom its tokens are: the SDK with the service.
import assert from "node:assert/strict";
import { createSign, generateKeyPairSync, randomUUID } from "node:crypto";
import test from "node:test";
import {
  DelegatedTokenRefused, DPoPRequired, generateKey, InvalidProof, InvalidTarget, NotFound, ProtectedResource, RemitError,
  Unauthorized, usd, type AgentParams, type JWKS,
} from "@remit/sdk";
import { part } from "./jws.js";
import { acme, collect, failure, remit, serviceURL, sessionOf } from "./service.js";

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

test("resources are the tokens' audience, within the agent's audiences", async () => {
  const agent = await made({ audiences: [tools, files] });
  const scout = remit.agent(agent.id, { secret: agent.secret, resource: [tools, files] });
  assert.deepEqual(audienceOf(await scout.token()), [tools, files]);
  await scout.refresh();
  assert.deepEqual(audienceOf(await scout.token()), [tools, files]);
  assert.deepEqual((await remit.verify(await scout.token(), "read", { audience: files })).agentId, agent.id);
  await failure(remit.verify(await scout.token()), Unauthorized);
  await failure(scout.session("x").charge(), Unauthorized); // Remit is another audience

  const said = await acme.introspect(await scout.token());
  assert.ok(said.active);
  assert.deepEqual([said.audience, said.sessionId, said.actors, said.thumbprint], [[tools, files], undefined, [], undefined]);
  for (const options of [{ resource: ["https://other.example/"] }, { resource: ["https://other.example/"], scopes: ["read"] }]) {
    const error = await failure(remit.agent(agent.id, { secret: agent.secret, ...options }).token(), InvalidTarget);
    assert.deepEqual([error.status, error.code], [400, "invalid_target"]);
  }
});

test("scopes narrow the tokens", async () => {
  const agent = await made();
  const scout = remit.agent(agent.id, { secret: agent.secret, scopes: ["read"] });
  assert.deepEqual((await remit.verify(await scout.token())).scopes, ["read"]);
  await scout.refresh();
  assert.deepEqual((await remit.verify(await scout.token())).scopes, ["read"]);
});

test("tokens are bound to a key that proves each call", async () => {
  const { agent, key } = await keyed();
  const scout = remit.agent(agent.id, { key, dpop: key });
  const session = await sessionOf(scout, { maxLeaseSeconds: 60 });
  assert.equal((await session.charge()).actionCount, 1);
  await scout.refresh();
  const access = await scout.token();
  assert.deepEqual(part(access, 1)["cnf"], { jkt: key.thumbprint });
  const lease = await session.lease();
  await lease.charge({ value: usd("0.1") });
  await lease.close();
  assert.equal((await session.get()).actionCount, 2);
  for await (const event of scout.events()) {
    assert.equal(event.agentId, agent.id);
    break;
  }
  const said = await acme.introspect(access);
  assert.ok(said.active);
  assert.deepEqual([said.thumbprint, said.tokenType], [key.thumbprint, "DPoP"]);
  await failure(remit.agentWithToken(access, { dpop: await generateKey() }).session(session.id).charge(), RemitError);
  const bearer = await fetch(`${serviceURL}/v1/sessions/${session.id}`, { headers: { Authorization: `Bearer ${access}` } });
  assert.equal(bearer.status, 401);
  assert.equal((await remit.agentWithToken(access, { dpop: key }).session(session.id).charge()).actionCount, 3);
});

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

test("a protected resource accepts tokens that are made for it", async () => {
  const agent = await made();
  const server = new ProtectedResource({ resource: tools, authorizationServers: [issuer] });
  const asks = async (resource: string[] | undefined, scope?: string) => {
    const options = { secret: agent.secret, ...(resource === undefined ? {} : { resource }) };
    const headers = await remit.agent(agent.id, options).prove("GET", tools);
    return server.handle(new Request(tools, { headers }), remit, scope);
  };
  assert.equal(((await asks([tools])) as { agentId: string }).agentId, agent.id);
  for (const resource of [[files], undefined]) {
    const answer = await asks(resource);
    assert.ok(answer instanceof Response);
    assert.deepEqual([answer.status, answer.headers.get("WWW-Authenticate")], [401, server.challenge(new Unauthorized("", { status: 401 }))]);
  }
  const lacking = await asks([tools], "admin");
  assert.equal((lacking as Response).status, 403);
});

/** Returns a trusted issuer's keys, and a function that makes tokens of it. */
function platform() {
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const name = `https://issuer-${randomUUID()}.example`;
  const jwks = { keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k", alg: "RS256" }] } as JWKS;
  const segment = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = (claims: object) => {
    const now = Math.floor(Date.now() / 1000);
    const input = `${segment({ alg: "RS256", kid: "k" })}.${segment({ iss: name, aud: issuer, iat: now, exp: now + 600, ...claims })}`;
    return `${input}.${createSign("sha256").update(input).sign(privateKey, "base64url")}`;
  };
  return { name, jwks, token };
}

test("a workload's token becomes the agent's, by the rules of the trusted issuer", async () => {
  const agent = await made({ secret: false });
  const { name, jwks, token } = platform();
  const trusted = await acme.createTrustedIssuer({
    issuer: name, jwks, rules: [{ agentId: agent.id, claims: { sub: "repo:acme/agent:*" } }], description: "CI",
  });
  assert.deepEqual([trusted.issuer, trusted.jwksUri, trusted.rules, trusted.description],
    [name, undefined, [{ agentId: agent.id, claims: { sub: "repo:acme/agent:*" } }], "CI"]);
  const scout = (sub: string) => remit.agent(agent.id, { assertion: () => token({ sub }), dpop: true, scopes: ["read"] });
  assert.equal((await (await sessionOf(scout("repo:acme/agent:main"))).charge()).actionCount, 1);
  await failure(scout("repo:acme/other:main").token(), Unauthorized);

  const changed = await acme.updateTrustedIssuer(trusted.id, { rules: [{ agentId: agent.id, claims: { sub: "exact" } }] });
  assert.deepEqual(changed.rules, [{ agentId: agent.id, claims: { sub: "exact" } }]);
  assert.deepEqual(changed.jwks, trusted.jwks);
  await failure(scout("repo:acme/agent:main").token(), Unauthorized);
  assert.match(await scout("exact").token(), /^eyJ/);
  assert.deepEqual(await acme.getTrustedIssuer(trusted.id), changed);
  assert.ok((await acme.trustedIssuers()).some(({ id }) => id === trusted.id));
  await acme.deleteTrustedIssuer(trusted.id);
  await failure(acme.getTrustedIssuer(trusted.id), NotFound);
  await failure(scout("exact").token(), Unauthorized);
});

test("a delegated token is for its child session, and ends with it", async () => {
  const planner = await made({ scopes: ["read", "write", "sessions:delegate"] });
  const helper = await made();
  const lead = remit.agent(planner.id, planner.secret);
  const parent = await sessionOf(lead, { maxActions: 10, maxValue: usd("5") });
  const child = await parent.createChild({ agentId: helper.id, maxActions: 3, maxValue: usd("1"), scopes: ["read"] });
  const { accessToken, ...delegated } = await lead.delegate(child.id);
  assert.deepEqual([delegated.sessionId, delegated.agentId, delegated.scopes], [child.id, helper.id, ["read"]]);
  assert.ok(delegated.expiresIn > 0 && delegated.expiresIn <= 3600);

  const agent = remit.agentWithToken(accessToken);
  assert.equal(agent.id, helper.id);
  assert.equal((await agent.session(child.id).charge()).actionCount, 1);
  assert.deepEqual((await collect(agent.sessions())).map(({ id }) => id), [child.id]);
  await failure(agent.session(parent.id).charge(), NotFound);
  await failure(collect(agent.events({ wait: false })), DelegatedTokenRefused);
  const { actorId, agentId } = await remit.verify(accessToken);
  assert.deepEqual([actorId, agentId], [planner.id, helper.id]);
  const said = await acme.introspect(accessToken);
  assert.ok(said.active);
  assert.deepEqual([said.agentId, said.sessionId, said.actors, said.audience], [helper.id, child.id, [planner.id], [issuer]]);

  await failure(lead.delegate(child.id, { scopes: ["write"] }), RemitError);
  await failure(lead.delegate(parent.id), RemitError);
  await agent.session(child.id).end();
  await failure(agent.session(child.id).charge(), Unauthorized);
  await failure(lead.delegate(child.id), RemitError);
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
