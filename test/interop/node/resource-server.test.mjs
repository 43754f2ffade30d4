// Resource servers that demand an audience: Express with Auth0's JWT middleware, and oauth4webapi's validation by RFC 9068 and
// RFC 9449. Both find the keys from the issuer's URL alone, and accept no token that was made for another.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import express from "express";
import { auth } from "express-oauth2-jwt-bearer";
import * as oauth from "oauth4webapi";
import * as client from "openid-client";
import { newDelegation } from "./organization.mjs";
import { algorithm, clientId, clientSecret, issuer } from "./settings.mjs";

const insecure = { [oauth.allowInsecureRequests]: true }; // plain HTTP, on loopback
const configure = (id, secret) =>
  client.discovery(issuer, id, undefined, client.ClientSecretPost(secret),
    { algorithm: "oauth2", execute: [client.allowInsecureRequests] });

let server;
let config;
let resource; // the server's URL, which is its name too

before(async () => {
  config = await configure(clientId, clientSecret);
  const app = express();
  server = app.listen(0, "127.0.0.1");
  await new Promise((listening) => server.once("listening", listening));
  resource = `http://127.0.0.1:${server.address().port}/tools`;
  const settings = { issuerBaseURL: issuer.origin, audience: resource, tokenSigningAlg: algorithm, strict: true };
  const answer = (request, response) => response.json({ agent: request.auth.payload.sub, actor: request.auth.payload.act?.sub });
  app.get("/tools", auth(settings), answer);
  app.get("/bound", auth({ ...settings, dpop: { enabled: true, required: true } }), answer);
  app.use((error, _request, response, _next) =>
    response.set(error.headers ?? {}).status(error.status ?? 500).json({ error: error.code, message: error.message }));
});

after(() => {
  server.closeAllConnections();
  server.close();
  setTimeout(() => process.exit(), 1000).unref(); // the middleware's store of proofs keeps a timer, which would keep the process
});

const grant = (parameters, options) => client.clientCredentialsGrant(config, parameters, options);
const asks = (token, path = "/tools") => fetch(new URL(path, resource), { headers: { Authorization: `Bearer ${token}` } });

test("Express accepts a token that was made for it", async () => {
  const response = await asks((await grant({ resource })).access_token);
  assert.equal(response.status, 200, await response.clone().text());
  assert.deepEqual(await response.json(), { agent: clientId });
});

test("Express accepts one that was made for it and for others", async () => {
  const several = new URLSearchParams([["resource", "https://files.example/"], ["resource", resource]]);
  assert.equal((await asks((await grant(several)).access_token)).status, 200);
});

test("Express refuses a token for another, and one for Remit itself", async () => {
  for (const parameters of [{ resource: "https://files.example/" }, { resource: `${resource}/` }, {}]) {
    const response = await asks((await grant(parameters)).access_token);
    assert.equal(response.status, 401);
    assert.match(response.headers.get("WWW-Authenticate"), /invalid_token/);
  }
});

test("Remit refuses a token that was made for another, unless it is asked about that audience", async () => {
  const { access_token } = await grant({ resource });
  const verify = (query) =>
    fetch(new URL(`/v1/auth/verify${query}`, issuer), { headers: { Authorization: `Bearer ${access_token}` } });
  assert.equal((await verify("")).status, 401);
  assert.equal((await verify(`?audience=${encodeURIComponent(resource)}`)).status, 200);
  assert.equal((await verify("?audience=https://files.example/")).status, 401);
});

test("Express learns from a delegated token which agent acts", async () => {
  const { parent, child, session } = await newDelegation();
  const delegating = await configure(parent.id, parent.secret);
  const subject = await client.clientCredentialsGrant(delegating, new URLSearchParams([["resource", issuer.origin], ["resource", resource]]));
  const delegated = await client.genericGrantRequest(delegating, "urn:ietf:params:oauth:grant-type:token-exchange", {
    subject_token: subject.access_token, subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
    session_id: session.id, resource,
  });
  assert.deepEqual(await (await asks(delegated.access_token)).json(), { agent: child.id, actor: parent.id });
});

test("Express demands the proof of a bound token", async () => {
  const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
  const { access_token } = await grant({ resource }, { DPoP });
  const bound = new URL("/bound", resource);
  const response = await client.fetchProtectedResource(config, access_token, bound, "GET", null, undefined, { DPoP });
  assert.deepEqual(await response.json(), { agent: clientId });
  const thief = client.getDPoPHandle(config, await client.randomDPoPKeyPair("ES256"));
  await assert.rejects(client.fetchProtectedResource(config, access_token, bound, "GET", null, undefined, { DPoP: thief }),
    { name: "WWWAuthenticateChallengeError", status: 401 });
  assert.notEqual((await asks(access_token, "/bound")).status, 200);
  assert.notEqual((await asks((await grant({ resource })).access_token, "/bound")).status, 200);
});

// validate is what a resource server does with a request, by oauth4webapi.
async function validate(headers, expected, options) {
  const metadata = await oauth.processDiscoveryResponse(issuer,
    await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure }));
  return oauth.validateJwtAccessToken(metadata, new Request(resource, { headers }), expected, { ...insecure, ...options });
}

test("an access token has every claim that RFC 9068 requires", async () => {
  const { access_token } = await grant({ resource });
  const headers = { Authorization: `Bearer ${access_token}` };
  const claims = await validate(headers, resource);
  assert.deepEqual([claims.client_id, claims.sub, claims.aud], [clientId, clientId, resource]);
  await assert.rejects(validate(headers, issuer.origin), { name: "OperationProcessingError" });
});

test("oauth4webapi verifies a bound token by its thumbprint", async () => {
  const pair = await oauth.generateKeyPair("ES256");
  const DPoP = client.getDPoPHandle(config, pair);
  const { access_token } = await grant({ resource }, { DPoP });
  const headers = new Headers({ Authorization: `DPoP ${access_token}` });
  await oauth.DPoP({ client_id: clientId }, pair).addProof(new URL(resource), headers, "GET", access_token);
  assert.equal((await validate(headers, resource, { requireDPoP: true })).sub, clientId);
  headers.delete("DPoP");
  await assert.rejects(validate(headers, resource), { name: "OperationProcessingError" });
});
