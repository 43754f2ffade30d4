// What the organization sets up for a test, with its API key and jose.
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import { algorithm, apiKey, issuer } from "./settings.mjs";

/** Calls the API and returns the answer, which must be a success. */
export async function call(method, path, body, credential = { "X-API-Key": apiKey }) {
  const request = { method, headers: { "Content-Type": "application/json", ...credential } };
  const response = await fetch(new URL(path, issuer), body === undefined ? request : { ...request, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) {
    throw new Error(`${method} ${path}: ${response.status} ${text}`);
  }
  return text === "" ? undefined : JSON.parse(text);
}

export const newAgent = (fields = {}) => call("POST", "/v1/agents", { name: "scout", scopes: ["read", "write"], ...fields });

let keys = 0;

/** Returns a key pair and its public half as a JWK with a name. */
export async function newKey(alg) {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const kid = `${alg}-${++keys}`;
  return { alg, kid, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
}

/** Returns an agent without a secret, whose only credential is a key. */
export async function newKeyedAgent(alg, fields = {}) {
  const key = await newKey(alg);
  return { key, agent: await newAgent({ secret: false, jwks: { keys: [key.publicJwk] }, ...fields }) };
}

/** Returns a trusted issuer with a key, whose tokens with the subject stand for the agent. */
export async function newTrustedIssuer(agent, subject) {
  const key = await newKey("RS256");
  const name = `https://issuer-${crypto.randomUUID()}.example`;
  await call("POST", "/v1/trusted-issuers", {
    issuer: name, jwks: { keys: [key.publicJwk] }, rules: [{ agent_id: agent.id, claims: { sub: subject } }],
  });
  /** Returns a token like those that a platform gives its workloads. */
  return (claims = {}) =>
    new SignJWT({ sub: subject, aud: issuer.origin, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid }).setIssuer(name).setIssuedAt().setExpirationTime("1h")
      .sign(key.privateKey);
}

/** Returns a parent agent, and a child session that it has opened for a child agent. */
export async function newDelegation(fields = {}) {
  const parent = await newAgent({ scopes: ["read", "write", "sessions:delegate"], ...fields });
  const child = await newAgent();
  const root = await call("POST", "/v1/sessions", { agent_id: parent.id, max_actions: 100, max_value_usd: 10 });
  const below = { agent_id: child.id, parent_session_id: root.id, max_actions: 10, max_value_usd: 1, scopes: ["read"] };
  return { parent, child, root, session: await call("POST", "/v1/sessions", below) };
}

const published = createRemoteJWKSet(new URL("/.well-known/jwks.json", issuer));

/** Returns the claims of an access token that was made for the audience. */
export async function claimsOf(token, audience = issuer.origin) {
  const expected = { issuer: issuer.origin, typ: "at+jwt", algorithms: [algorithm], audience };
  return (await jwtVerify(token, published, expected)).payload;
}
