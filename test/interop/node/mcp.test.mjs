// The Model Context Protocol's SDK in an agent without a user. From the URL of an MCP server it finds the authorization server,
// which is Remit, and authorizes with its client credentials.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { algorithm, clientId, clientSecret, issuer, scopes } from "./settings.mjs";

// The part of an MCP server that names its authorization server (RFC 9728).
async function withResource(use) {
  const server = createServer((request, response) => {
    const resource = `http://127.0.0.1:${server.address().port}/mcp`;
    const found = request.url === "/.well-known/oauth-protected-resource/mcp";
    response.writeHead(found ? 200 : 404, { "Content-Type": "application/json" });
    response.end(found ? JSON.stringify({ resource, authorization_servers: [issuer.origin] }) : "{}");
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  try {
    await use(`http://127.0.0.1:${server.address().port}/mcp`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function verified(tokens, serverUrl) {
  const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", issuer));
  const { payload } = await jwtVerify(tokens.access_token, keys,
    { issuer: issuer.origin, audience: serverUrl, typ: "at+jwt", algorithms: [algorithm] });
  return payload;
}

test("client credentials authorize from the MCP server's URL alone", () => withResource(async (serverUrl) => {
  const provider = new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer.origin });
  assert.equal(await auth(provider, { serverUrl }), "AUTHORIZED");
  const payload = await verified(provider.tokens(), serverUrl);
  assert.equal(payload.sub, clientId);
  assert.equal(payload.scopes.join(" "), scopes);
}));

test("the provider's scope narrows the token", () => withResource(async (serverUrl) => {
  const provider = new ClientCredentialsProvider({ clientId, clientSecret, expectedIssuer: issuer.origin, scope: "read" });
  assert.equal(await auth(provider, { serverUrl }), "AUTHORIZED");
  assert.deepEqual((await verified(provider.tokens(), serverUrl)).scopes, ["read"]);
}));

test("a wrong secret ends in InvalidClientError", () => withResource(async (serverUrl) => {
  const provider = new ClientCredentialsProvider({ clientId, clientSecret: "wrong", expectedIssuer: issuer.origin });
  await assert.rejects(auth(provider, { serverUrl }), { name: "InvalidClientError" });
}));
