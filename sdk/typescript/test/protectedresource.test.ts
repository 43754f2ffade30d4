import assert from "node:assert/strict";
import test from "node:test";
import {
  InsufficientScope, InvalidProof, ProtectedResource, RateLimited, RemitError, Unauthorized, Unavailable, type Verified, type VerifyOptions,
} from "@remit/sdk";

const tools = new ProtectedResource({ resource: "https://tools.example/mcp", authorizationServers: ["https://remit.example"] });
const where = 'resource_metadata="https://tools.example/.well-known/oauth-protected-resource/mcp"';
const caller: Verified = { agentId: "a1", organizationId: "o1", scopes: ["read"], actorId: undefined, thumbprint: undefined };

const lacksScope = () => {
  const answer = { required_scope: "write" };
  return new InsufficientScope("verify", { status: 403, code: "insufficient_scope" }, answer);
};

/** A client whose answer is known, and what it was asked. */
function clientThat(answers: () => Verified) {
  const asked: unknown[] = [];
  const verify = async (token: string, scope?: string, { signal: _, ...options }: VerifyOptions = {}) => {
    asked.push([token, scope, options]);
    return answers();
  };
  return { asked, verify };
}

// The server itself is at another address than its clients see.
const request = (headers: Record<string, string> = {}, url = "http://10.0.0.7:3000/mcp?x=1", method = "POST") =>
  new Request(url, { method, headers });

test("the metadata is the document of RFC 9728", () => {
  assert.deepEqual(tools.metadata(), {
    resource: "https://tools.example/mcp", authorization_servers: ["https://remit.example"], bearer_methods_supported: ["header"],
    dpop_signing_alg_values_supported: ["ES256", "ES384", "EdDSA", "RS256", "PS256"],
  });
  const documented = new ProtectedResource({
    resource: "https://tools.example", authorizationServers: ["https://remit.example"], scopes: ["read"], name: "Tools",
    documentation: "https://tools.example/docs",
  });
  const { resource, scopes_supported, resource_name, resource_documentation } = documented.metadata();
  assert.deepEqual([resource, scopes_supported, resource_name, resource_documentation],
    ["https://tools.example", ["read"], "Tools", "https://tools.example/docs"]);
});

test("the metadata's URL has the well-known part before the path", () => {
  for (const [resource, url] of [
    ["https://tools.example", "https://tools.example/.well-known/oauth-protected-resource"],
    ["https://tools.example/", "https://tools.example/.well-known/oauth-protected-resource"],
    ["https://tools.example:8443/a/b", "https://tools.example:8443/.well-known/oauth-protected-resource/a/b"],
    ["https://tools.example/a/", "https://tools.example/.well-known/oauth-protected-resource/a"],
  ] as const) {
    assert.equal(new ProtectedResource({ resource, authorizationServers: [] }).metadataUrl, url);
  }
});

test("a challenge says what is wrong, and where to learn more", () => {
  assert.equal(tools.challenge(), `Bearer ${where}`);
  assert.equal(tools.challenge(new Unauthorized("verify", { status: 401, code: "invalid_token" })), `Bearer error="invalid_token", ${where}`);
  assert.equal(tools.challenge(lacksScope()), `Bearer error="insufficient_scope", scope="write", ${where}`);
  const proof = new InvalidProof("verify", { status: 401, code: "invalid_dpop_proof" });
  assert.equal(tools.challenge(proof), `DPoP error="invalid_dpop_proof", algs="ES256 ES384 EdDSA RS256 PS256", ${where}`);
});

test("its options are checked", () => {
  assert.throws(() => new ProtectedResource({ resource: "tools", authorizationServers: [] }), TypeError);
  const wrong = { resource: "https://tools.example/", authorizationServers: "https://remit.example" };
  assert.throws(() => new ProtectedResource(wrong as never), /authorizationServers must be a list/);
  assert.throws(() => new ProtectedResource({ ...wrong, authorization_servers: [] } as never), /no option authorization_servers/);
});

test("handle answers requests for the metadata", async () => {
  const client = clientThat(() => caller);
  const answer = await tools.handle(request({}, "http://10.0.0.7:3000/.well-known/oauth-protected-resource/mcp", "GET"), client);
  assert.ok(answer instanceof Response);
  assert.equal(answer.headers.get("Content-Type"), "application/json");
  assert.deepEqual(await answer.json(), tools.metadata());
  assert.deepEqual(client.asked, []);
});

test("handle returns whose a token is that is made for this server", async () => {
  const client = clientThat(() => caller);
  assert.deepEqual(await tools.handle(request({ Authorization: "Bearer a.b.c" }), client, "read"), caller);
  assert.deepEqual(await tools.handle(request({ Authorization: "DPoP a.b.c", DPoP: "proof" }), client), caller);
  const audience = "https://tools.example/mcp";
  assert.deepEqual(client.asked, [
    ["a.b.c", "read", { audience }],
    ["a.b.c", undefined, { audience, proof: "proof", method: "POST", url: "https://tools.example/mcp?x=1" }],
  ]);
});

test("handle refuses a request without a token, which Remit is not asked about", async () => {
  const client = clientThat(() => caller);
  for (const headers of [{}, { Authorization: "Basic eA==" }, { Authorization: "Bearer" }, { Authorization: "Bearer a b" }] as Record<string, string>[]) {
    const answer = await tools.handle(request(headers), client);
    assert.ok(answer instanceof Response);
    assert.deepEqual([answer.status, answer.headers.get("WWW-Authenticate")], [401, `Bearer ${where}`]);
  }
  const bare = await tools.handle(request({ Authorization: "DPoP a.b.c" }), client);
  assert.ok(bare instanceof Response);
  assert.match(bare.headers.get("WWW-Authenticate")!, /^DPoP error="invalid_dpop_proof"/);
  assert.deepEqual(client.asked, []);
});

test("handle answers what Remit refuses, and throws what is not Remit's", async () => {
  const errors: [RemitError, number, RegExp][] = [
    [new Unauthorized("verify", { status: 401, code: "invalid_token" }), 401, /^Bearer error="invalid_token"/],
    [lacksScope(), 403, /^Bearer error="insufficient_scope", scope="write"/],
    [new InvalidProof("verify", { status: 401, code: "invalid_dpop_proof" }), 401, /^DPoP /],
    [new Unavailable("verify", { status: 503 }), 503, /^$/],
    [new RateLimited("verify", { status: 429, retryAfter: 2.5 }), 503, /^$/],
    [new RemitError("verify", { status: 502 }), 503, /^$/],
  ];
  for (const [error, status, challenge] of errors) {
    const answer = await tools.handle(request({ Authorization: "Bearer a.b.c" }), clientThat(() => { throw error; }));
    assert.ok(answer instanceof Response);
    assert.equal(answer.status, status);
    assert.match(answer.headers.get("WWW-Authenticate") ?? "", challenge);
  }
  const strange = new Error("aborted");
  await assert.rejects(tools.handle(request({ Authorization: "Bearer a.b.c" }), clientThat(() => { throw strange; })), strange);
});
