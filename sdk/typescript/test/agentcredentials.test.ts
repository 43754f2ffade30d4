// What an agent sends for its tokens, by each of its credentials. The network answers instead of the service.
import assert from "node:assert/strict";
import { createPrivateKey, webcrypto } from "node:crypto";
import { mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { type TestContext } from "node:test";
import {
  Agent, AgentSuspended, DPoPRequired, generateKey, InsufficientScope, NotFound, OrganizationSuspended, QuotaExceeded, RemitError, Session, Unauthorized,
  Unavailable, UnusableCredential, type AgentOptions,
} from "@remit/sdk";
import { isSigned, part } from "./jws.js";
import { newNetwork, type Fate, type Network, type Seen } from "./network.js";
import { failure } from "./outcome.js";

const issuer = "https://remit.example";
const jsonToken = "POST /v1/auth/token";
const token = "POST /oauth2/token";
const metadata = "GET /.well-known/oauth-authorization-server";
const json = (value: unknown, status = 200): Fate => ({ status, body: JSON.stringify(value) });
const pair = { access_token: "access", refresh_token: "refresh", token_type: "Bearer", expires_in: 3600, scope: "read" };

async function newAgent(t: TestContext, options: AgentOptions, answer: (seen: Seen) => Fate = () => json(pair)) {
  const network = await newNetwork(t);
  network.fate = (seen) => (seen.place === metadata ? json({ issuer }) : answer(seen));
  return { network, agent: network.client({ maxAttempts: 3 }).agent("a1", options) };
}

const formOf = (seen: Seen) => [...new URLSearchParams(seen.body)];
const sent = (network: Network, place: string) => network.seen.filter((s) => s.place === place);

test("a secret goes to the JSON endpoint, with the resources", async (t) => {
  const { network, agent } = await newAgent(t, { secret: "s", resource: ["https://a.example/", "https://b.example/"] });
  assert.equal(await agent.token(), "access");
  assert.deepEqual(JSON.parse(sent(network, jsonToken)[0]!.body),
    { agent_id: "a1", secret: "s", resource: ["https://a.example/", "https://b.example/"] });
});

test("a secret with scopes goes to the OAuth endpoint", async (t) => {
  const { network, agent } = await newAgent(t, { secret: "s", scopes: ["read", "pay"], resource: ["https://a.example/"] });
  await agent.token();
  const [request] = sent(network, token);
  assert.equal(request!.headers["content-type"], "application/x-www-form-urlencoded");
  assert.deepEqual(formOf(request!), [["grant_type", "client_credentials"], ["client_id", "a1"], ["client_secret", "s"],
    ["scope", "read pay"], ["resource", "https://a.example/"]]);
});

test("a key signs a statement for the issuer, and a new one for every attempt", async (t) => {
  const key = await generateKey();
  const { network, agent } = await newAgent(t, { key, resource: ["https://a.example/"] },
    (seen) => (seen.nth < 3 ? { status: 503 } : json(pair)));
  await agent.token();
  assert.equal(network.count(metadata), 1);
  const all = sent(network, token).map((request) => Object.fromEntries(formOf(request)));
  assert.equal(all.length, 3);
  for (const { client_assertion: assertion, ...rest } of all) {
    assert.deepEqual(rest, {
      grant_type: "client_credentials", client_id: "a1", resource: "https://a.example/",
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    });
    assert.deepEqual(part(assertion!, 0), { alg: "ES256", kid: key.thumbprint, typ: "client-authentication+jwt" });
    const { iat, exp, jti, ...claims } = part(assertion!, 1);
    assert.deepEqual(claims, { iss: "a1", sub: "a1", aud: issuer });
    assert.deepEqual([Number(exp) - Number(iat), String(jti).length], [60, 22]);
    assert.ok(Math.abs(Date.now() / 1000 - Number(iat)) < 10);
    assert.ok(isSigned(assertion!, createPrivateKey({ key: JSON.parse(key.text.reveal()), format: "jwk" }), "ES256"));
  }
  assert.equal(new Set(all.map((form) => part(form["client_assertion"]!, 1)["jti"])).size, 3);
});

test("keys of WebCrypto sign, also those that nobody can export", async (t) => {
  const made = await webcrypto.subtle.generateKey({ name: "ECDSA", namedCurve: "P-384" }, false, ["sign", "verify"]);
  const { privateKey, publicKey } = made as webcrypto.CryptoKeyPair;
  for (const key of [privateKey, { privateKey, publicKey }]) {
    const { network, agent } = await newAgent(t, { key });
    await agent.token();
    const { alg, kid } = part(new URLSearchParams(sent(network, token)[0]!.body).get("client_assertion")!, 0);
    assert.deepEqual([alg, kid], ["ES384", undefined]);
  }
  await failure((await newAgent(t, { key: publicKey })).agent.token(), UnusableCredential);
  await failure((await newAgent(t, { secret: "s", dpop: privateKey })).agent.token(), UnusableCredential);
});

test("a statement names its key only if the key has a name", async (t) => {
  const { kid: _, ...nameless } = JSON.parse((await generateKey()).text.reveal()) as Record<string, string>;
  const pem = createPrivateKey({ key: nameless, format: "jwk" }).export({ type: "pkcs8", format: "pem" }) as string;
  for (const [key, name] of [[nameless, undefined], [pem, undefined], [{ ...nameless, kid: "mine" }, "mine"]] as const) {
    const { network, agent } = await newAgent(t, { key });
    await agent.token();
    assert.equal(part(new URLSearchParams(sent(network, token)[0]!.body).get("client_assertion")!, 0)["kid"], name);
  }
});

test("a key file counts as it is at each exchange", async (t) => {
  const path = join(await mkdtemp(join(tmpdir(), "remit-")), "key.pem");
  const keyFile = await generateKey();
  await writeFile(path, keyFile.text.reveal());
  const { network, agent } = await newAgent(t, { keyFile: path }, () => json({ ...pair, refresh_token: undefined }));
  await agent.token();
  const next = await generateKey("EdDSA");
  await writeFile(`${path}.new`, next.text.reveal());
  await rename(`${path}.new`, path);
  await agent.refresh();
  const kids = sent(network, token).map((s) => part(new URLSearchParams(s.body).get("client_assertion")!, 0)["kid"]);
  assert.deepEqual(kids, [keyFile.thumbprint, next.thumbprint]);
});

test("a workload's token is presented at each exchange, without a refresh token", async (t) => {
  const path = join(await mkdtemp(join(tmpdir(), "remit-")), "token");
  await writeFile(path, "first\n");
  const { network, agent } = await newAgent(t, { assertionFile: path, scopes: ["read"] }, () => json({ ...pair, refresh_token: undefined }));
  await agent.token();
  await writeFile(path, " second ");
  await agent.refresh();
  assert.deepEqual(sent(network, token).map(formOf), ["first", "second"].map((assertion) => [
    ["grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"], ["client_id", "a1"], ["assertion", assertion], ["scope", "read"],
  ]));

  let asked = 0;
  const own = await newAgent(t, { assertion: async () => `token-${++asked}` });
  await own.agent.token();
  assert.equal(new URLSearchParams(sent(own.network, token)[0]!.body).get("assertion"), "token-1");
});

test("any credential is exchanged for tokens to renew oneself", async (t) => {
  const { network } = await newAgent(t, { secret: "s" });
  const client = network.client();
  const first = await client.exchange("a1", { secret: "s", resource: ["https://a.example/"] });
  assert.equal(first.refreshToken?.reveal(), "refresh");
  network.fate = () => json({ ...pair, refresh_token: undefined, token_type: "DPoP" });
  const second = await client.exchange("a1", { assertion: () => "workload", dpop: true });
  assert.deepEqual([second.refreshToken, second.tokenType], [undefined, "DPoP"]);
  assert.ok(sent(network, token)[0]!.headers["dpop"]);
});

test("an agent with a key refreshes as any other", async (t) => {
  const { network, agent } = await newAgent(t, { key: await generateKey() });
  await agent.token();
  await agent.refresh();
  assert.deepEqual(JSON.parse(sent(network, "POST /v1/auth/refresh")[0]!.body), { refresh_token: "refresh" });
  network.fate = (seen) => (seen.place === token ? json(pair) : json({ status: 401, code: "invalid_refresh_token" }, 401));
  await agent.refresh();
  assert.deepEqual([network.count(token), network.count("POST /v1/auth/refresh"), network.count(metadata)], [2, 2, 1]);
});

test("an unusable key or token sends nothing, is not retried, and is not quoted", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "remit-"));
  const file = async (name: string, content: string) => (await writeFile(join(dir, name), content), join(dir, name));
  const wrong: [AgentOptions, string, RegExp][] = [
    [{ keyFile: join(dir, "none") }, join(dir, "none"), /cannot be read \(ENOENT\)/],
    [{ assertionFile: dir }, dir, /cannot be read \(EISDIR\)/],
    [{ keyFile: await file("empty", "") }, join(dir, "empty"), /neither a private key/],
    [{ keyFile: await file("word", "hunter2") }, join(dir, "word"), /neither a private key/],
    [{ assertionFile: await file("blank", " \n") }, join(dir, "blank"), /no token/],
    [{ assertionFile: await file("long", "x".repeat(8193)) }, join(dir, "long"), /longer than 8 KiB/],
    [{ assertion: () => "hunter2 hunter2" }, "assertion", /no token/],
    [{ assertion: () => undefined as unknown as string }, "assertion", /no token/],
  ];
  for (const [options, source, why] of wrong) {
    const { network, agent } = await newAgent(t, options);
    const error = await failure(agent.session("s1").charge(), UnusableCredential);
    assert.equal(error.source, source);
    assert.match(error.message, why);
    assert.ok(!error.message.includes("hunter2"));
    assert.deepEqual([network.count(token), network.count("POST /v1/sessions/s1/actions")], [0, 0]);
  }
});

test("a key that is none is refused at once, and so are options that cannot be meant", async (t) => {
  const client = (await newNetwork(t)).client();
  assert.throws(() => client.agent("a1", { key: "hunter2" }), UnusableCredential);
  assert.throws(() => client.agent("a1", { secret: "s", dpop: "hunter2" }), UnusableCredential);
  const wrong = (options: object) => () => client.agent("a1", options as AgentOptions);
  assert.throws(wrong({}), /TypeError: remit: an agent needs exactly one of secret, key, keyFile, assertion, assertionFile, not none/);
  assert.throws(wrong({ secret: "s", keyFile: "k" }), /not secret and keyFile/);
  assert.throws(wrong({ secret: "s", resource: "https://a.example/" }), /TypeError: remit: resource must be a list/);
  assert.throws(wrong({ secret: "s", scopes: "read" }), /TypeError: remit: scopes must be a list/);
  assert.throws(wrong({ secret: "s", key_file: "k" }), /no option key_file: it is keyFile/);
});

test("errors of the OAuth endpoint are errors like others", async (t) => {
  const refused = async (status: number, error: string) => {
    const { agent } = await newAgent(t, { key: await generateKey() }, () => json({ error, error_description: "words" }, status));
    return failure(agent.token(), Error);
  };
  const client = await refused(401, "invalid_client");
  assert.ok(client instanceof Unauthorized);
  assert.deepEqual([client.status, client.code, client.detail], [401, "invalid_client", "words"]);
  assert.ok((await refused(400, "invalid_grant")) instanceof Unauthorized);
  assert.ok((await refused(503, "temporarily_unavailable")) instanceof Unavailable);
});

test("an OAuth error with the service's own code has its type", async (t) => {
  const refused = async (status: number, cause: object, error = "temporarily_unavailable") => {
    const body = { error, error_description: "words", ...cause };
    const { agent } = await newAgent(t, { key: await generateKey() }, () => json(body, status));
    return failure(agent.token(), RemitError);
  };
  const suspended = await refused(400, { code: "agent_suspended", suspended_at: "2026-02-28T23:59:59Z" }, "unauthorized_client");
  assert.ok(suspended instanceof AgentSuspended);
  assert.deepEqual([suspended.suspendedAt?.getTime(), suspended.code, suspended.detail], [1772323199000, "agent_suspended", "words"]);
  const quota = await refused(403, { code: "quota_exceeded", quota: "bytes", used: 7, max: 8 });
  assert.ok(quota instanceof QuotaExceeded && quota.quota === "bytes");
  const scope = await refused(400, { code: "insufficient_scope", required_scope: "pay" }, "invalid_scope");
  assert.ok(scope instanceof InsufficientScope && scope.requiredScope === "pay");
  assert.ok((await refused(400, { code: "organization_suspended" }, "unauthorized_client")) instanceof OrganizationSuspended);
  assert.ok((await refused(400, { code: "dpop_required" }, "invalid_dpop_proof")) instanceof DPoPRequired);
  assert.ok((await refused(400, { code: "not_found" }, "invalid_request")) instanceof NotFound);
  assert.ok((await refused(503, { code: "unavailable" })) instanceof Unavailable);
});

test("the issuer is asked for again after its answer was lost", async (t) => {
  const network = await newNetwork(t);
  const agent = network.client({ maxAttempts: 1 }).agent("a1", { key: await generateKey() });
  network.fate = (seen) => (seen.place === metadata ? { status: 503 } : json(pair));
  await failure(agent.token(), Unavailable);
  network.fate = (seen) => (seen.place === metadata ? json({ issuer }) : json(pair));
  assert.equal(await agent.token(), "access");
  assert.deepEqual([network.count(metadata), network.count(token)], [2, 1]);
});

test("the environment names a secret, a key file or a token file", async (t) => {
  const network = await newNetwork(t);
  network.fate = (seen) => (seen.place === metadata ? json({ issuer }) : json({ ...pair, token_type: "DPoP" }));
  const [key, own] = [await generateKey(), await generateKey("EdDSA")];
  const dir = await mkdtemp(join(tmpdir(), "remit-"));
  await writeFile(join(dir, "key"), key.text.reveal());
  await writeFile(join(dir, "dpop"), own.text.reveal());
  const common = { REMIT_ADDR: network.url, REMIT_AGENT: "a1" };
  const settings = { ...common, REMIT_KEY_FILE: ` ${join(dir, "key")} `, REMIT_DPOP: join(dir, "dpop"), REMIT_RESOURCE: " https://a.example/  urn:b " };
  await Agent.fromEnv(settings).token();
  const [request] = sent(network, token);
  assert.deepEqual(new URLSearchParams(request!.body).getAll("resource"), ["https://a.example/", "urn:b"]);
  assert.equal(part(new URLSearchParams(request!.body).get("client_assertion")!, 0)["kid"], key.thumbprint);
  assert.equal(part(request!.headers["dpop"] as string, 0)["alg"], "EdDSA");

  await writeFile(join(dir, "token"), "workload");
  await Session.fromEnv({ ...common, REMIT_ASSERTION_FILE: join(dir, "token"), REMIT_SESSION: "s1", REMIT_DPOP: "1" }).get().catch(() => {});
  const next = sent(network, token)[1]!;
  assert.equal(new URLSearchParams(next.body).get("assertion"), "workload");
  assert.equal(part(next.headers["dpop"] as string, 0)["alg"], "ES256");
  await Agent.fromEnv({ ...common, REMIT_SECRET: "s", REMIT_DPOP: "0" }).token();
  assert.equal(sent(network, jsonToken)[0]!.headers["dpop"], undefined);

  const both = { ...common, REMIT_SECRET: "s", REMIT_KEY_FILE: "k" };
  assert.throws(() => Agent.fromEnv(both), /TypeError: remit: set only one of REMIT_SECRET, REMIT_KEY_FILE$/);
  assert.throws(() => Agent.fromEnv({}), /set REMIT_AGENT, REMIT_SECRET \(or REMIT_KEY_FILE or REMIT_ASSERTION_FILE instead of REMIT_SECRET\)$/);
  assert.throws(() => Agent.fromEnv({ REMIT_KEY_FILE: "k" }), /set REMIT_AGENT$/);
});
