// The Model Context Protocol's SDK on both sides. An agent knows only the URL of an MCP server: it learns from the server's 401
// that Remit makes its tokens, gets one for this server, and calls a tool. The server accepts no token made for another.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { auth } from "@modelcontextprotocol/sdk/client/auth.js";
import { ClientCredentialsProvider, PrivateKeyJwtProvider } from "@modelcontextprotocol/sdk/client/auth-extensions.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import express from "express";
import { exportJWK } from "jose";
import { call, claimsOf, newAgent, newKeyedAgent } from "./organization.mjs";
import { clientId, clientSecret, issuer, scopes } from "./settings.mjs";

// Two ways in which an MCP server verifies a token that must be made for it.

/** With the published keys: no request per call, and a revoked token works until it expires. */
const byKeys = (resource) => async (token) => {
  try {
    const claims = await claimsOf(token, resource.href);
    return { token, clientId: claims.client_id, scopes: claims.scopes, expiresAt: claims.exp, resource };
  } catch (error) {
    throw new InvalidTokenError(error.message);
  }
};

/** By asking Remit: a revoked token ends at once. */
const byRemit = (resource) => async (token) => {
  const verify = new URL("/v1/auth/verify", issuer);
  verify.searchParams.set("audience", resource.href);
  const response = await fetch(verify, { headers: { Authorization: `Bearer ${token}` } });
  if (!response.ok) {
    throw new InvalidTokenError("Remit refuses it");
  }
  const [agent, held] = [response.headers.get("X-Agent-Id"), response.headers.get("X-Scopes")];
  return { token, clientId: agent, scopes: held.split(" "), expiresAt: Date.now() / 1000 + 60, resource };
};

const running = [];

/** Starts an MCP server with a tool that says who calls it, and returns its URL. */
async function start(verifierOf) {
  const app = express();
  const server = app.listen(0, "127.0.0.1");
  running.push(server);
  await new Promise((listening) => server.once("listening", listening));
  const resource = new URL(`http://127.0.0.1:${server.address().port}/mcp`);
  const oauthMetadata = await (await fetch(new URL("/.well-known/oauth-authorization-server", issuer))).json();
  app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: resource }));
  const guard = requireBearerAuth({
    verifier: { verifyAccessToken: verifierOf(resource) }, requiredScopes: ["read"], expectedResource: resource,
    resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
  });
  app.post("/mcp", guard, express.json(), async (request, response) => {
    const tools = new McpServer({ name: "tools", version: "1.0.0" });
    tools.registerTool("whoami", {}, (extra) => ({ content: [{ type: "text", text: extra.authInfo.clientId }] }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => tools.close());
    await tools.connect(transport);
    await transport.handleRequest(request, response, request.body);
  });
  app.get("/mcp", (_, response) => response.status(405).end()); // no stream of the server's own
  return resource;
}

let tools;
let files;
before(async () => {
  tools = await start(byKeys);
  files = await start(byRemit);
});
after(() => {
  for (const server of running) {
    server.closeAllConnections();
    server.close();
  }
});

/** Calls the tool of a server, and returns who it says is calling. */
async function whoami(url, authProvider) {
  const mcp = new Client({ name: "agent", version: "1.0.0" });
  try {
    await mcp.connect(new StreamableHTTPClientTransport(url, { authProvider }));
    return (await mcp.callTool({ name: "whoami" })).content[0].text;
  } finally {
    await mcp.close();
  }
}

const bySecret = (agent = { id: clientId, secret: clientSecret }) =>
  new ClientCredentialsProvider({ clientId: agent.id, clientSecret: agent.secret, expectedIssuer: issuer.origin });

const initialize = (url, token) =>
  fetch(url, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", Authorization: `Bearer ${token}` },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize",
      params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "agent", version: "1" } } }),
  });

for (const [name, url] of [["the published keys", () => tools], ["Remit's verify", () => files]]) {
  test(`from its URL alone an agent calls a tool of a server that verifies with ${name}`, async () => {
    const provider = bySecret();
    assert.equal(await whoami(url(), provider), clientId);
    const claims = await claimsOf(provider.tokens().access_token, url().href);
    assert.deepEqual([claims.aud, claims.scopes.join(" ")], [url().href, scopes]);
  });

  test(`a server that verifies with ${name} refuses what was made for another, and says where to get more`, async () => {
    const foreign = new URL(url() === tools ? files : tools);
    const provider = bySecret();
    assert.equal(await whoami(foreign, provider), clientId);
    const { access_token: ofRemit } = await call("POST", "/v1/auth/token", { agent_id: clientId, secret: clientSecret });
    for (const token of [provider.tokens().access_token, ofRemit, "not a token"]) {
      const response = await initialize(url(), token);
      assert.equal(response.status, 401);
      const challenge = response.headers.get("WWW-Authenticate");
      assert.ok(challenge.includes(`resource_metadata="${getOAuthProtectedResourceMetadataUrl(url())}"`), challenge);
    }
    assert.equal((await initialize(foreign, provider.tokens().access_token)).status, 200);
  });
}

test("an MCP server cannot use the token that it was sent at Remit", async () => {
  const provider = bySecret();
  await whoami(tools, provider);
  const headers = { Authorization: `Bearer ${provider.tokens().access_token}` };
  assert.equal((await fetch(new URL("/v1/sessions", issuer), { headers })).status, 401);
});

for (const algorithm of ["ES256", "RS256"]) {
  test(`an agent without a secret authorizes with its ${algorithm} key`, async () => {
    const { agent, key } = await newKeyedAgent(algorithm);
    const privateKey = { ...(await exportJWK(key.privateKey)), kid: key.kid, alg: algorithm };
    const provider = new PrivateKeyJwtProvider({ clientId: agent.id, privateKey, algorithm, expectedIssuer: issuer.origin });
    assert.equal(await whoami(tools, provider), agent.id);
  });
}

test("an agent that may not have this audience ends in InvalidTargetError", async () => {
  const provider = bySecret(await newAgent({ audiences: [files.href] }));
  await assert.rejects(auth(provider, { serverUrl: tools }), { name: "InvalidTargetError" });
  assert.equal(await auth(provider, { serverUrl: files }), "AUTHORIZED");
});

test("a server that asks Remit refuses a revoked agent at once", async () => {
  const agent = await newAgent();
  const provider = bySecret(agent);
  assert.equal(await whoami(files, provider), agent.id);
  const { access_token } = provider.tokens();
  assert.equal((await initialize(files, access_token)).status, 200);
  await call("POST", `/v1/agents/${agent.id}/revoke`);
  assert.equal((await initialize(files, access_token)).status, 401);
});

test("an MCP server may be Remit itself: its URL with a slash at the end means the issuer", async () => {
  const provider = bySecret();
  assert.equal(await auth(provider, { serverUrl: issuer }), "AUTHORIZED");
  assert.equal((await claimsOf(provider.tokens().access_token)).aud, issuer.origin);
});
