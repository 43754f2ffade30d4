// openid-client, which most Node programs use as their OAuth client: tokens for a resource, client authentication with a key,
// DPoP, token exchange and the assertions of trusted issuers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { calculateJwkThumbprint, exportJWK } from "jose";
import * as client from "openid-client";
import { call, claimsOf, newAgent, newDelegation, newKeyedAgent, newTrustedIssuer } from "./organization.mjs";
import { clientId, clientSecret, issuer, scopes } from "./settings.mjs";

const resource = "https://tools.example/mcp";
const other = "https://files.example/";
const tokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange";
const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

const configure = (id, authentication) =>
  client.discovery(issuer, id, undefined, authentication, { algorithm: "oauth2", execute: [client.allowInsecureRequests] });
const bySecret = (agent) => configure(agent.id, client.ClientSecretPost(agent.secret));
const byKey = ({ agent, key }) => configure(agent.id, client.PrivateKeyJwt({ key: key.privateKey, kid: key.kid }));

const refused = (error) => ({ name: "ResponseBodyError", error });

test("a token without a resource is for Remit alone", async () => {
  const config = await configure(clientId, client.ClientSecretBasic(clientSecret));
  const tokens = await client.clientCredentialsGrant(config);
  const { aud, client_id, sub } = await claimsOf(tokens.access_token);
  assert.deepEqual({ aud, client_id, sub }, { aud: issuer.origin, client_id: clientId, sub: clientId });
  assert.equal(tokens.scope, scopes);
});

test("resource names the audience, which a refresh keeps and narrows", async () => {
  const config = await configure(clientId, client.ClientSecretBasic(clientSecret));
  const parameters = new URLSearchParams([["resource", resource], ["resource", other]]);
  const first = await client.clientCredentialsGrant(config, parameters);
  assert.deepEqual((await claimsOf(first.access_token, resource)).aud, [resource, other]);
  await assert.rejects(claimsOf(first.access_token), { code: "ERR_JWT_CLAIM_VALIDATION_FAILED" });

  const kept = await client.refreshTokenGrant(config, first.refresh_token);
  assert.deepEqual((await claimsOf(kept.access_token, other)).aud, [resource, other]);
  await assert.rejects(client.refreshTokenGrant(config, kept.refresh_token, { resource: "https://third.example/" }),
    refused("invalid_target"));
  const narrowed = await client.refreshTokenGrant(config, kept.refresh_token, { resource });
  assert.equal((await claimsOf(narrowed.access_token, resource)).aud, resource);
});

test("a resource beyond the agent's audiences is invalid_target", async () => {
  const config = await bySecret(await newAgent({ audiences: [resource] }));
  assert.equal((await claimsOf((await client.clientCredentialsGrant(config, { resource })).access_token, resource)).aud, resource);
  for (const beyond of [other, "not a URI", `${resource}#fragment`]) {
    await assert.rejects(client.clientCredentialsGrant(config, { resource: beyond }), refused("invalid_target"), beyond);
  }
});

test("introspection tells the audience", async () => {
  const config = await configure(clientId, client.ClientSecretBasic(clientSecret));
  const { access_token } = await client.clientCredentialsGrant(config, { resource });
  const told = await client.tokenIntrospection(config, access_token);
  assert.deepEqual([told.active, told.aud, told.client_id], [true, resource, clientId]);
  assert.equal((await client.tokenIntrospection(config, access_token, { audience: resource })).active, true);
  assert.equal((await client.tokenIntrospection(config, access_token, { audience: other })).active, false);
});

for (const algorithm of ["ES256", "ES384", "EdDSA", "RS256", "PS256", "Ed25519"]) {
  test(`private_key_jwt with ${algorithm}: the lifecycle of a token without a secret`, async () => {
    const config = await byKey(await newKeyedAgent(algorithm));
    const first = await client.clientCredentialsGrant(config, { scope: "read" });
    assert.deepEqual((await claimsOf(first.access_token)).scopes, ["read"]);
    const next = await client.refreshTokenGrant(config, first.refresh_token);
    assert.equal((await client.tokenIntrospection(config, next.access_token)).active, true);
    await client.tokenRevocation(config, next.refresh_token);
    assert.equal((await client.tokenIntrospection(config, next.access_token)).active, false);
  });
}

test("an assertion counts once", async () => {
  const config = await byKey(await newKeyedAgent("ES256"));
  let sent;
  config[client.customFetch] = (url, options) => ((sent = options), fetch(url, options));
  await client.clientCredentialsGrant(config);
  config[client.customFetch] = (url) => fetch(url, sent);
  await assert.rejects(client.clientCredentialsGrant(config), (error) => error.status === 401 || error.cause?.status === 401);
});

test("the key of another agent is no credential", async () => {
  const [mine, another] = [await newKeyedAgent("ES256"), await newKeyedAgent("ES256")];
  const config = await byKey({ agent: mine.agent, key: another.key });
  await assert.rejects(client.clientCredentialsGrant(config), (error) => error.status === 401 || error.cause?.status === 401);
});

for (const algorithm of ["ES256", "ES384", "EdDSA", "PS256"]) {
  test(`DPoP with ${algorithm}: tokens and refresh tokens are bound to the key`, async () => {
    const config = await bySecret(await newAgent());
    const pair = await client.randomDPoPKeyPair(algorithm);
    const DPoP = client.getDPoPHandle(config, pair);
    const first = await client.clientCredentialsGrant(config, undefined, { DPoP });
    assert.equal(first.token_type, "dpop"); // the library writes it in lower case
    const jkt = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
    assert.deepEqual((await claimsOf(first.access_token)).cnf, { jkt });

    const another = client.getDPoPHandle(config, await client.randomDPoPKeyPair(algorithm));
    await assert.rejects(client.refreshTokenGrant(config, first.refresh_token), refused("invalid_grant"));
    await assert.rejects(client.refreshTokenGrant(config, first.refresh_token, undefined, { DPoP: another }),
      refused("invalid_grant"));
    const next = await client.refreshTokenGrant(config, first.refresh_token, undefined, { DPoP });
    assert.deepEqual((await claimsOf(next.access_token)).cnf, { jkt });

    const told = await client.tokenIntrospection(config, next.access_token);
    assert.deepEqual([told.token_type, told.cnf], ["DPoP", { jkt }]);
  });
}

test("DPoP: Remit's endpoints take a bound token with its proof only", async () => {
  const config = await bySecret(await newAgent());
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair());
  const { access_token } = await client.clientCredentialsGrant(config, undefined, { DPoP });
  const verify = new URL("/v1/auth/verify?scope=read", issuer);
  const response = await client.fetchProtectedResource(config, access_token, verify, "GET", null, undefined, { DPoP });
  assert.ok([200, 204].includes(response.status), String(response.status));
  assert.ok(response.headers.get("DPoP-Nonce"));
  const isRefused = (error) => error.name === "WWWAuthenticateChallengeError" && error.status === 401;
  await assert.rejects(client.fetchProtectedResource(config, access_token, verify, "GET"), isRefused);
  const thief = client.getDPoPHandle(config, await client.randomDPoPKeyPair());
  await assert.rejects(client.fetchProtectedResource(config, access_token, verify, "GET", null, undefined, { DPoP: thief }), isRefused);
});

test("DPoP: the library recovers from a nonce that is not the service's", async () => {
  const config = await bySecret(await newAgent());
  let wrong = 0; // how many more proofs get a wrong nonce
  const nonces = [];
  const spoil = (_, payload) => {
    if (wrong > 0) {
      wrong--;
      payload.nonce = "wrong";
    }
    nonces.push(payload.nonce);
  };
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair(), { [client.modifyAssertion]: spoil });
  wrong = 1;
  const { access_token } = await client.clientCredentialsGrant(config, undefined, { DPoP });
  assert.deepEqual([nonces.length, nonces[0], typeof nonces[1]], [2, "wrong", "string"]);
  wrong = 1;
  const verify = new URL("/v1/auth/verify", issuer);
  const { ok } = await client.fetchProtectedResource(config, access_token, verify, "GET", null, undefined, { DPoP });
  assert.ok(ok);
  assert.deepEqual([nonces.length, nonces[2], typeof nonces[3]], [4, "wrong", "string"]);
});

test("DPoP: an agent that must use it gets no token without it", async () => {
  const config = await bySecret(await newAgent({ dpop_required: true }));
  await assert.rejects(client.clientCredentialsGrant(config), refused("invalid_dpop_proof"));
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair());
  assert.equal((await client.clientCredentialsGrant(config, undefined, { DPoP })).token_type, "dpop");
});

const exchangeParameters = (subject, session) => ({
  subject_token: subject.access_token, subject_token_type: accessTokenType, session_id: session.id,
});

test("token exchange gives a token of a child session, which ends with it", async () => {
  const { parent, child, session } = await newDelegation();
  const subject = await client.clientCredentialsGrant(await bySecret(parent));
  const config = await configure(parent.id, client.None());
  const delegated = await client.genericGrantRequest(config, tokenExchange, exchangeParameters(subject, session));
  assert.equal(delegated.issued_token_type, accessTokenType);
  assert.equal(delegated.token_type, "bearer");
  assert.equal(delegated.refresh_token, undefined);
  assert.equal(delegated.scope, "read");
  const claims = await claimsOf(delegated.access_token);
  assert.deepEqual([claims.sub, claims.agent_id, claims.client_id, claims.session_id, claims.act],
    [child.id, child.id, parent.id, session.id, { sub: parent.id }]);

  const bearer = { Authorization: `Bearer ${delegated.access_token}` };
  const charge = () => call("POST", `/sessions/${session.id}/actions`, { value_usd: 0.5 }, bearer);
  await charge();
  await call("POST", `/v1/sessions/${session.id}/end`);
  await assert.rejects(charge(), /401/);
});

test("token exchange narrows, and never widens", async () => {
  const { parent, session } = await newDelegation();
  const forBoth = new URLSearchParams([["resource", issuer.origin], ["resource", resource]]);
  const subject = await client.clientCredentialsGrant(await bySecret(parent), forBoth);
  const config = await configure(parent.id, client.None());
  const exchange = (parameters) =>
    client.genericGrantRequest(config, tokenExchange, { ...exchangeParameters(subject, session), ...parameters });
  assert.equal((await claimsOf((await exchange({ resource })).access_token, resource)).aud, resource);
  assert.equal((await claimsOf((await exchange({ audience: resource })).access_token, resource)).aud, resource);
  await assert.rejects(exchange({ resource: "https://files.example/" }), refused("invalid_target"));
  await assert.rejects(exchange({ scope: "read write" }), refused("invalid_scope"));
  await assert.rejects(exchange({ subject_token: "not a token" }), refused("invalid_request"));
  const stranger = await newDelegation();
  await assert.rejects(exchange({ session_id: stranger.session.id }), { name: "ResponseBodyError", status: 400 });
});

test("token exchange binds the delegated token to the key of the proof", async () => {
  const { parent, session } = await newDelegation();
  const pair = await client.randomDPoPKeyPair();
  const withSecret = await bySecret(parent);
  const DPoP = client.getDPoPHandle(withSecret, pair);
  const subject = await client.clientCredentialsGrant(withSecret, undefined, { DPoP });
  const config = await configure(parent.id, client.None());
  await assert.rejects(client.genericGrantRequest(config, tokenExchange, exchangeParameters(subject, session)),
    { name: "ResponseBodyError", status: 400 });
  const delegated = await client.genericGrantRequest(config, tokenExchange, exchangeParameters(subject, session),
    { DPoP: client.getDPoPHandle(config, pair) });
  assert.equal(delegated.token_type, "dpop");
  assert.deepEqual((await claimsOf(delegated.access_token)).cnf,
    { jkt: await calculateJwkThumbprint(await exportJWK(pair.publicKey)) });
});

test("the token of a trusted issuer is exchanged for one of the agent", async () => {
  const agent = await newAgent({ secret: false });
  const workload = await newTrustedIssuer(agent, "system:serviceaccount:prod:scout");
  const config = await configure(agent.id, client.None());
  const exchange = async (claims, parameters) =>
    client.genericGrantRequest(config, jwtBearer, { assertion: await workload(claims), ...parameters });
  const tokens = await exchange({}, { scope: "read", resource });
  const claims = await claimsOf(tokens.access_token, resource);
  assert.deepEqual([claims.sub, claims.client_id, claims.scopes], [agent.id, agent.id, ["read"]]);
  assert.equal(tokens.refresh_token, undefined, "the workload presents its token again");
  for (const claims of [{ sub: "system:serviceaccount:prod:other" }, { aud: "https://elsewhere.example" }, { sub: undefined }]) {
    await assert.rejects(exchange(claims), refused("invalid_grant"), JSON.stringify(claims));
  }
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair());
  const bound = await client.genericGrantRequest(config, jwtBearer, { assertion: await workload() }, { DPoP });
  assert.equal(bound.token_type, "dpop");
});
