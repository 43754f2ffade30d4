// oauth4webapi, strict about every RFC it implements: a key instead of a secret, DPoP with nonces, token exchange, assertions of
// trusted issuers, and the metadata of a protected resource.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as oauth from "oauth4webapi";
import { claimsOf, newDelegation, newKeyedAgent, newTrustedIssuer, newAgent } from "./organization.mjs";
import { clientId, clientSecret, issuer } from "./settings.mjs";

const insecure = { [oauth.allowInsecureRequests]: true }; // plain HTTP, on loopback
const resource = "https://tools.example/mcp";
const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

const discover = () =>
  oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure }).then((response) => oauth.processDiscoveryResponse(issuer, response));
const secret = oauth.ClientSecretPost(clientSecret);

test("the metadata lists what the service supports", async () => {
  const server = await discover();
  assert.deepEqual([...server.grant_types_supported].sort(), [
    "client_credentials", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:ietf:params:oauth:grant-type:token-exchange",
  ]);
  for (const algorithm of ["ES256", "ES384", "EdDSA", "RS256", "PS256", "Ed25519"]) {
    assert.ok(server.dpop_signing_alg_values_supported.includes(algorithm), algorithm);
    for (const endpoint of ["token", "revocation", "introspection"]) {
      assert.ok(server[`${endpoint}_endpoint_auth_methods_supported`].includes("private_key_jwt"), endpoint);
      assert.ok(server[`${endpoint}_endpoint_auth_signing_alg_values_supported`].includes(algorithm), `${endpoint} ${algorithm}`);
    }
  }
  assert.ok(!server.dpop_signing_alg_values_supported.some((algorithm) => /^(HS|none)/.test(algorithm)));
});

test("Remit describes itself as a protected resource", async () => {
  const response = await oauth.resourceDiscoveryRequest(issuer, insecure);
  const described = await oauth.processResourceDiscoveryResponse(issuer, response);
  assert.equal(described.resource, issuer.origin);
  assert.deepEqual(described.authorization_servers, [issuer.origin]);
  const refused = await fetch(new URL("/v1/sessions", issuer), { headers: { Authorization: "Bearer x" } });
  const where = /resource_metadata="([^"]*)"/.exec(refused.headers.get("WWW-Authenticate"))?.[1];
  assert.equal((await (await fetch(where)).json()).resource, issuer.origin);
});

test("PrivateKeyJwt authenticates at every endpoint", async () => {
  const [server, { agent, key }] = [await discover(), await newKeyedAgent("ES256")];
  const client = { client_id: agent.id };
  const authentication = oauth.PrivateKeyJwt({ key: key.privateKey, kid: key.kid });
  const first = await oauth.clientCredentialsGrantRequest(server, client, authentication, { resource }, insecure)
    .then((response) => oauth.processClientCredentialsResponse(server, client, response));
  assert.equal((await claimsOf(first.access_token, resource)).sub, agent.id);
  const introspect = () => oauth.introspectionRequest(server, client, authentication, first.access_token, insecure)
    .then((response) => oauth.processIntrospectionResponse(server, client, response));
  const live = await introspect();
  assert.deepEqual([live.active, live.aud], [true, resource]);
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, authentication, first.refresh_token, insecure));
  assert.deepEqual(await introspect(), { active: false });
});

for (const [name, spoil] of Object.entries({
  "an audience that is another's": (_, payload) => { payload.aud = "https://elsewhere.example"; },
  "another agent's id": (_, payload) => { payload.sub = clientId; },
  "too long a life": (_, payload) => { payload.exp = payload.iat + 3600; },
  "a life that is over": (_, payload) => { payload.exp = payload.iat - 60; },
  "no id": (_, payload) => { delete payload.jti; },
})) {
  test(`an assertion with ${name} is refused`, async () => {
    const [server, { agent, key }] = [await discover(), await newKeyedAgent("ES256")];
    const authentication = oauth.PrivateKeyJwt({ key: key.privateKey, kid: key.kid }, { [oauth.modifyAssertion]: spoil });
    const response = await oauth.clientCredentialsGrantRequest(server, { client_id: agent.id }, authentication, {}, insecure);
    assert.equal(response.status, 401);
    assert.equal((await response.json()).error, "invalid_client");
  });
}

test("DPoP: a wrong nonce is answered with a new one, at the token endpoint and at the API", async () => {
  const [server, client] = [await discover(), { client_id: clientId }];
  let wrong = true;
  const DPoP = oauth.DPoP(client, await oauth.generateKeyPair("ES256"), {
    [oauth.modifyAssertion]: (_, payload) => { payload.nonce = wrong ? "wrong" : payload.nonce; },
  });
  const grant = () => oauth.clientCredentialsGrantRequest(server, client, secret, {}, { ...insecure, DPoP })
    .then((response) => oauth.processClientCredentialsResponse(server, client, response));
  await assert.rejects(grant(), oauth.isDPoPNonceError);
  wrong = false;
  const { access_token, token_type } = await grant();
  assert.equal(token_type, "dpop");

  const verify = () => oauth.protectedResourceRequest(access_token, "GET", new URL("/v1/auth/verify", issuer), undefined, undefined,
    { ...insecure, DPoP });
  wrong = true;
  await assert.rejects(verify(), oauth.isDPoPNonceError);
  wrong = false;
  assert.ok((await verify()).ok);
});

test("DPoP: a proof counts once", async () => {
  const [server, client] = [await discover(), { client_id: clientId }];
  const DPoP = oauth.DPoP(client, await oauth.generateKeyPair("ES256"));
  const { access_token } = await oauth.clientCredentialsGrantRequest(server, client, secret, {}, { ...insecure, DPoP })
    .then((response) => oauth.processClientCredentialsResponse(server, client, response));
  const verify = new URL("/v1/auth/verify", issuer);
  let sent;
  const keep = (url, options) => ((sent = options), fetch(url, options));
  await oauth.protectedResourceRequest(access_token, "GET", verify, undefined, undefined, { ...insecure, DPoP, [oauth.customFetch]: keep });
  const again = await fetch(verify, sent);
  assert.equal(again.status, 401);
  assert.match(again.headers.get("WWW-Authenticate"), /DPoP .*error="invalid_dpop_proof"/);
});

test("genericTokenEndpointRequest exchanges a token for one of a child session", async () => {
  const [server, { parent, child, session }] = [await discover(), await newDelegation()];
  const client = { client_id: parent.id };
  const subject = await oauth.clientCredentialsGrantRequest(server, client, oauth.ClientSecretPost(parent.secret), {}, insecure)
    .then((response) => oauth.processClientCredentialsResponse(server, client, response));
  const parameters = { subject_token: subject.access_token, subject_token_type: accessTokenType, session_id: session.id };
  for (const authentication of [oauth.None(), oauth.ClientSecretBasic(parent.secret)]) {
    const response = await oauth.genericTokenEndpointRequest(server, client, authentication,
      "urn:ietf:params:oauth:grant-type:token-exchange", parameters, insecure);
    const delegated = await oauth.processGenericTokenEndpointResponse(server, client, response);
    assert.equal(delegated.issued_token_type, accessTokenType);
    const { sub, client_id, act } = await claimsOf(delegated.access_token);
    assert.deepEqual([sub, client_id, act], [child.id, parent.id, { sub: parent.id }]);
  }
});

test("genericTokenEndpointRequest exchanges the token of a trusted issuer", async () => {
  const agent = await newAgent();
  const [server, workload] = [await discover(), await newTrustedIssuer(agent, "spiffe://acme.example/scout")];
  const client = { client_id: agent.id };
  const exchange = async (assertion) => {
    const response = await oauth.genericTokenEndpointRequest(server, client, oauth.None(),
      "urn:ietf:params:oauth:grant-type:jwt-bearer", { assertion }, insecure);
    return oauth.processGenericTokenEndpointResponse(server, client, response);
  };
  const assertion = await workload();
  assert.equal((await claimsOf((await exchange(assertion)).access_token)).sub, agent.id);
  assert.ok(await exchange(assertion), "a workload presents the same token again");
  await assert.rejects(exchange(await workload({ sub: "spiffe://acme.example/other" })), { error: "invalid_grant", status: 400 });
});
