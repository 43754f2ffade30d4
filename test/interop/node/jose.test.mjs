// jose in a resource server that knows only the issuer's URL.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRemoteJWKSet, decodeProtectedHeader, errors, jwtVerify } from "jose";
import { algorithm, clientId, clientSecret, issuer, organization, scopes } from "./settings.mjs";

const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", issuer));
const expected = { issuer: issuer.origin, audience: issuer.origin, typ: "at+jwt", algorithms: [algorithm] };

async function accessToken(parameters = {}) {
  const response = await fetch(new URL("/oauth2/token", issuer), {
    method: "POST",
    headers: { Authorization: "Basic " + btoa(`${clientId}:${clientSecret}`) },
    body: new URLSearchParams({ grant_type: "client_credentials", ...parameters }),
  });
  assert.equal(response.status, 200);
  return (await response.json()).access_token;
}

test(`a token signed with ${algorithm} verifies`, async () => {
  const { payload, protectedHeader } = await jwtVerify(await accessToken(), keys, expected);
  assert.equal(protectedHeader.alg, algorithm);
  assert.equal(payload.sub, clientId);
  assert.equal(payload.agent_id, clientId);
  assert.equal(payload.org_id, organization);
  assert.equal(payload.scopes.join(" "), scopes);
  assert.equal(payload.exp - payload.iat, 3600);
});

test("a token for a resource verifies there and nowhere else", async () => {
  const resource = "https://mail.example/mcp";
  const token = await accessToken({ resource });
  const { payload } = await jwtVerify(token, keys, { ...expected, audience: resource });
  assert.deepEqual([payload.aud, payload.client_id], [resource, clientId]);
  for (const audience of [issuer.origin, "https://mail.example", resource + "/"]) {
    await assert.rejects(jwtVerify(token, keys, { ...expected, audience }), errors.JWTClaimValidationFailed);
  }
});

test("another issuer, another type, another algorithm and a changed token do not", async () => {
  const token = await accessToken();
  const [header, payload, signature] = token.split(".");
  const claims = JSON.parse(Buffer.from(payload, "base64url"));
  const widened = Buffer.from(JSON.stringify({ ...claims, scopes: ["admin"] })).toString("base64url");
  const refuses = (token, options, failure) =>
    assert.rejects(jwtVerify(token, keys, { ...expected, ...options }), failure);
  await refuses(token, { issuer: "https://elsewhere.example" }, errors.JWTClaimValidationFailed);
  await refuses(token, { typ: "JWT" }, errors.JWTClaimValidationFailed);
  await refuses(token, { algorithms: ["PS256"] }, errors.JOSEAlgNotAllowed);
  await refuses(token, { currentDate: new Date((claims.exp + 1) * 1000) }, errors.JWTExpired);
  await refuses([header, widened, signature].join("."), {}, errors.JWSSignatureVerificationFailed);
});

test("a key of another service is not in the set", async () => {
  const token = await accessToken();
  const [header, ...rest] = token.split(".");
  const foreign = Buffer.from(JSON.stringify({ ...decodeProtectedHeader(token), kid: "another" })).toString("base64url");
  await assert.rejects(jwtVerify([foreign, ...rest].join("."), keys, expected), errors.JWKSNoMatchingKey);
});

test("a token for a resource verifies with this audience alone", async () => {
  const resource = "https://tools.example/mcp";
  const token = await accessToken({ resource });
  const { payload } = await jwtVerify(token, keys, { ...expected, audience: resource, requiredClaims: ["aud", "client_id", "jti"] });
  assert.deepEqual([payload.aud, payload.client_id], [resource, clientId]);
  for (const audience of [issuer.origin, `${resource}/`, "https://tools.example"]) {
    await assert.rejects(jwtVerify(token, keys, { ...expected, audience }), errors.JWTClaimValidationFailed);
  }
  assert.equal((await jwtVerify(await accessToken(), keys, { ...expected, audience: issuer.origin })).payload.aud, issuer.origin);
});
