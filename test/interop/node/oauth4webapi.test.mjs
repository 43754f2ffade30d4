// oauth4webapi, strict about every RFC it implements: discovery, both grants, introspection and revocation.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as oauth from "oauth4webapi";
import { clientId, clientSecret, issuer, scopes } from "./settings.mjs";

const insecure = { [oauth.allowInsecureRequests]: true }; // plain HTTP, on loopback
const client = { client_id: clientId };

async function discover() {
  const response = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
  return oauth.processDiscoveryResponse(issuer, response);
}

const authentications = {
  ClientSecretBasic: oauth.ClientSecretBasic(clientSecret),
  ClientSecretPost: oauth.ClientSecretPost(clientSecret),
};

for (const [name, authentication] of Object.entries(authentications)) {
  test(`${name}: the lifecycle of a token`, async () => {
    const server = await discover();
    const grant = (parameters) =>
      oauth.clientCredentialsGrantRequest(server, client, authentication, parameters, insecure)
        .then((response) => oauth.processClientCredentialsResponse(server, client, response));
    const introspect = (token) =>
      oauth.introspectionRequest(server, client, authentication, token, insecure)
        .then((response) => oauth.processIntrospectionResponse(server, client, response));

    const first = await grant({});
    assert.equal(first.token_type, "bearer"); // the library writes it in lower case
    assert.equal(first.expires_in, 3600);
    assert.equal(first.scope, scopes);

    const refreshed = await oauth.refreshTokenGrantRequest(server, client, authentication, first.refresh_token, insecure)
      .then((response) => oauth.processRefreshTokenResponse(server, client, response));
    assert.notEqual(refreshed.refresh_token, first.refresh_token);
    assert.notEqual(refreshed.access_token, first.access_token);

    const live = await introspect(refreshed.access_token);
    assert.equal(live.active, true);
    assert.equal(live.client_id, clientId);
    assert.equal(live.sub, clientId);
    assert.equal(live.scope, scopes);
    assert.equal(live.iss, server.issuer);
    assert.equal(live.exp - live.iat, 3600);
    assert.equal((await introspect(refreshed.refresh_token)).active, true);

    const other = await grant({});
    const revocation = await oauth.revocationRequest(server, client, authentication, refreshed.refresh_token, insecure);
    await oauth.processRevocationResponse(revocation);
    for (const token of [first.access_token, refreshed.access_token, refreshed.refresh_token]) {
      assert.deepEqual(await introspect(token), { active: false });
    }
    assert.equal((await introspect(other.access_token)).active, true, "another grant of the agent lives on");
  });

  test(`${name}: scopes are narrowed, and never widened`, async () => {
    const server = await discover();
    const grant = (scope) =>
      oauth.clientCredentialsGrantRequest(server, client, authentication, { scope }, insecure)
        .then((response) => oauth.processClientCredentialsResponse(server, client, response));
    const narrowed = await grant("read");
    assert.equal(narrowed.scope, "read");
    await assert.rejects(grant("read admin"), { name: "ResponseBodyError", error: "invalid_scope", status: 400 });

    const refresh = (scope) =>
      oauth.refreshTokenGrantRequest(server, client, authentication, narrowed.refresh_token,
        { ...insecure, additionalParameters: { scope } })
        .then((response) => oauth.processRefreshTokenResponse(server, client, response));
    await assert.rejects(refresh("write"), { name: "ResponseBodyError", error: "invalid_scope" });
    assert.equal((await refresh("read")).scope, "read");
  });
}

test("a wrong secret is refused with a challenge", async () => {
  const server = await discover();
  for (const authentication of [oauth.ClientSecretBasic("wrong"), oauth.ClientSecretPost("wrong")]) {
    const response = await oauth.clientCredentialsGrantRequest(server, client, authentication, {}, insecure);
    assert.equal(response.status, 401);
    await assert.rejects(oauth.processClientCredentialsResponse(server, client, response),
      (error) => error instanceof oauth.WWWAuthenticateChallengeError && error.cause[0].scheme === "basic");
  }
});

test("the metadata lists exactly what the service supports", async () => {
  const server = await discover();
  assert.deepEqual([...server.grant_types_supported].sort(), [
    "client_credentials", "refresh_token", "urn:ietf:params:oauth:grant-type:jwt-bearer", "urn:ietf:params:oauth:grant-type:token-exchange",
  ]);
  assert.deepEqual(server.response_types_supported, []);
  for (const endpoint of ["token", "revocation", "introspection"]) {
    assert.ok(server[`${endpoint}_endpoint`].startsWith(server.issuer));
    assert.deepEqual(server[`${endpoint}_endpoint_auth_methods_supported`],
      ["client_secret_basic", "client_secret_post", "private_key_jwt", ...(endpoint === "token" ? ["none"] : [])]);
  }
});
