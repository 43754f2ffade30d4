// The calls of docs/sdks.md about keys, audiences and delegation; see test/same/identity.go.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AgentSuspended, DelegatedTokenRefused, DPoPRequired, generateKey, InsufficientScope, InvalidProof, InvalidTarget, IssuerExists, NotFound, ProtectedResource, publicJwks,
  Unauthorized, UnusableCredential, USD, type Agent, type AgentChanges, type Client, type Credential, type Key, type Organization, type Session,
} from "@remit/sdk";
import { add, refused } from "./steps.js";

const tools = "https://tools.example/mcp"; // a resource

/** Makes the calls to the service. */
export async function identity(remit: Client): Promise<void> {
  const organization = await remit.createOrganization({ name: "acme" });
  const o = remit.organization(organization.apiKey!);
  const [own, proofs] = [await generateKey("EdDSA"), await generateKey("ES256")];
  add("make a key", own.thumbprint.length, own.thumbprint !== proofs.thumbprint);
  const jwks = await publicJwks(own.text);
  add("the public part of a key", JSON.stringify(jwks) === JSON.stringify(own.jwks));
  const scopes = ["read", "pay", "sessions:delegate"];
  const scout = await o.createAgent({ name: "scout", scopes, secret: false, jwks, audiences: [tools] });
  add("register an agent's keys", scout.secret.reveal() === "", scout.hasSecret);
  add("limit an agent's audiences", scout.audiences);

  const key = own.text;
  const agent = remit.agent(scout.id, { key });
  add("an agent by other credentials", agent.id === scout.id);
  const session = agent.session((await o.createSession({ agentId: scout.id, maxActions: 10, maxValue: 5n * USD })).id);
  add("an agent by its private key", (await session.charge()).actionCount);
  await identityTokens(remit, o, scout.id, key, proofs);
  await identityDelegation(remit, o, session, agent);
  await identitySuspended(remit, o, session, agent);
  await identityProofs(remit, o, scout.id, key, proofs, session);
  await trustedIssuers(o, scout.id, own);
}

async function identityTokens(remit: Client, o: Organization, id: string, key: Credential, proofs: Key): Promise<void> {
  const access = await remit.agent(id, { key, resource: [tools], scopes: ["read"] }).token();
  const verified = await remit.verify(access, undefined, { audience: tools });
  add("verify for an audience", verified.agentId === id);
  add("tokens with fewer scopes", verified.scopes);
  await refused(Unauthorized, () => remit.verify(access));
  const introspection = await o.introspect(access);
  add("tokens for resources", true, introspection.active && introspection.audience);
  const elsewhere = remit.agent(id, { key, resource: ["https://elsewhere.example/"] });
  add("a resource is not allowed", (await refused(InvalidTarget, () => elsewhere.token())).code);
  const pair = await remit.exchange(id, { key, dpop: proofs });
  add("exchange another credential", pair.tokenType, pair.expiresIn, pair.refreshToken !== undefined);
  add("remove a field of an agent", (await o.updateAgent(id, { audiences: null })).audiences === undefined);
}

async function identityDelegation(remit: Client, o: Organization, parent: Session, agent: Agent): Promise<void> {
  const helper = await o.createAgent({ name: "helper", scopes: ["read"] });
  const child = await parent.createChild({ agentId: helper.id, maxActions: 2, maxValue: USD });
  const token = await agent.delegate(child.id, { scopes: ["read"] });
  add("delegate to a child session", token.agentId === helper.id, token.sessionId === child.id, token.tokenType, token.scopes);
  const alone = remit.agentWithToken(token.accessToken);
  add("an agent by a token alone", alone.id === helper.id, (await alone.session(child.id).charge()).actionCount);
  await refused(DelegatedTokenRefused, () => alone.events({ wait: false }).next());
  add("a delegated token may not", true);
}

async function identityProofs(
  remit: Client, o: Organization, id: string, key: Credential, proofs: Key, session: Session,
): Promise<void> {
  add("demand proofs of an agent", (await o.updateAgent(id, { dpopRequired: true })).dpopRequired);
  await refused(DPoPRequired, () => remit.agent(id, { key }).token());
  add("an agent must prove its key", true);
  const bound = remit.agent(id, { key, dpop: proofs });
  const charged = await bound.session(session.id).charge();
  const info = await o.introspect(await bound.token());
  add("tokens bound to a key", charged.actionCount, info.active && info.thumbprint === proofs.thumbprint, info.active && info.tokenType);
  await bound.refresh();
  add("tokens bound to a key", (await bound.session(session.id).charge()).actionCount);
}

// identitySuspended asks the token endpoint for what a suspended agent does not get.
async function identitySuspended(remit: Client, o: Organization, parent: Session, agent: Agent): Promise<void> {
  const key = await generateKey("EdDSA");
  const made = await o.createAgent({ name: "courier", secret: false, jwks: key.jwks });
  add("suspend an agent", (await o.suspendAgent(made.id, "leak")).id === made.id);
  const stopped = await refused(AgentSuspended, () => remit.agent(made.id, { key: key.text }).token());
  add("the agent is suspended", stopped.suspendedAt !== undefined, stopped.code);
  await refused(NotFound, () => agent.delegate(parent.id));
  add("delegate to a child session", true);
}

async function trustedIssuers(o: Organization, agentId: string, key: Key): Promise<void> {
  const rules = [{ agentId, claims: { sub: "repo:acme/agent:*", environment: "production" } }];
  const made = await o.createTrustedIssuer({ issuer: "https://ci.example", jwks: key.jwks, rules, description: "CI" });
  add("create a trusted issuer", made.issuer, made.rules[0]?.claims["sub"], made.description);
  await refused(IssuerExists, () => o.createTrustedIssuer({ issuer: "https://ci.example", jwks: key.jwks, rules }));
  add("an issuer is trusted already", true);
  add("list trusted issuers", (await o.trustedIssuers()).length);
  add("read a trusted issuer", (await o.getTrustedIssuer(made.id)).rules[0]?.agentId === agentId);
  const changed = await o.updateTrustedIssuer(made.id, { description: "builds" });
  add("change a trusted issuer", changed.description, changed.rules.length);
  await o.deleteTrustedIssuer(made.id);
  await refused(NotFound, () => o.getTrustedIssuer(made.id));
  add("delete a trusted issuer", true);
}

/** Makes those calls whose answers a test cannot bring about. */
export async function contractIdentity(remit: Client): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "same-"));
  try {
    await contractCredentials(remit, dir);
  } finally {
    await rm(dir, { recursive: true });
  }
  await contractProofs(remit);
  await contractResource(remit);
  await contractRegistration(remit.organization("rmk_1"));
}

async function contractCredentials(remit: Client, dir: string): Promise<void> {
  const [keyFile, tokenFile] = [join(dir, "key"), join(dir, "token")];
  await writeFile(keyFile, (await generateKey("ES256")).text.reveal());
  await writeFile(tokenFile, "e30.e30.c2ln\n");
  add("an agent by its private key", await remit.agent("a1", { keyFile }).token());
  const workload = remit.agent("a1", { assertion: () => readFile(tokenFile, "utf8"), resource: [tools, "urn:b"], scopes: ["read", "pay"] });
  add("an agent by its workload's token", await workload.token());
  const absent = join(dir, "absent");
  const unusable = await refused(UnusableCredential, () => remit.agent("a1", { assertionFile: absent }).token());
  add("a key or token file is unusable", unusable.source === absent);
}

async function contractProofs(remit: Client): Promise<void> {
  const dpop = await generateKey("ES256");
  const agent = remit.agent("nonce", { secret: "rms_1", dpop });
  add("tokens bound to a key", await agent.token());
  const proof = await refused(InvalidProof, () => remit.agent("skewed", { secret: "rms_1", dpop }).token());
  add("a proof is refused", proof.code, proof.clockSkew! > 86_400);
  const [method, url] = ["PUT", `${tools}?q=1`];
  const headers = await agent.prove(method, url);
  add("prove a request elsewhere", headers["Authorization"], headers["DPoP"] !== "");
  const verified = await remit.verify("t", "read", { audience: tools, proof: "p", method, url });
  add("verify a proof", verified.agentId, verified.actorId, verified.scopes, verified.thumbprint);
}

async function contractResource(remit: Client): Promise<void> {
  const resource = new ProtectedResource({ resource: tools, authorizationServers: ["https://remit.example"], scopes: ["read"] });
  const document = resource.metadata();
  add("describe a protected resource", Object.keys(document).length, document["resource"], resource.metadataUrl);
  add("describe a protected resource", resource.challenge());
  add("describe a protected resource", resource.challenge(await refused(InsufficientScope, () => remit.verify("t", "pay"))));
}

async function contractRegistration(o: Organization): Promise<void> {
  for (const token of ["delegated", "plain", "nonsense"]) {
    const of = await o.introspect(token);
    const live = of.active ? of : { audience: [], thumbprint: undefined, sessionId: undefined, actors: [] };
    add("introspect a token", of.active, live.audience, `${live.thumbprint ?? ""}.`, `${live.sessionId ?? ""}.`, live.actors);
  }
  const made = await o.createAgent({ name: "keys", jwksUri: "https://keys.example/jwks" });
  add("register an agent's keys", made.jwksUri, made.dpopRequired);
  const jwksUri = "https://ci.example/jwks";
  const issuer = await o.createTrustedIssuer({ issuer: "https://ci.example", jwksUri, rules: [{ agentId: "a1", claims: { sub: "x" } }] });
  add("create a trusted issuer", issuer.jwksUri, Math.floor(issuer.createdAt.getTime() / 1000));
  const rules = [{ agentId: "a1", claims: { sub: "x" } }, { agentId: "a2", claims: { aud: "y" } }];
  const changed = await o.updateTrustedIssuer("i1", { jwksUri: "https://ci.example/new", rules });
  add("change a trusted issuer", changed.jwksUri);
  const all: AgentChanges[] = [{ jwksUri: "https://keys.example/new", audiences: [] }, { jwks: null, jwksUri: null }, { dpopRequired: false }];
  for (const changes of all) {
    add("remove a field of an agent", (await o.updateAgent("a1", changes)).id === "a1");
  }
}
