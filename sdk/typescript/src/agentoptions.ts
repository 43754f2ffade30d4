// How an agent gets its first tokens: with its secret, its key, or the token of the workload that it runs in.

import { Caller, type Call, type Service } from "./call.js";
import { Credential, isVisible, reveal } from "./credential.js";
import { UnusableCredential } from "./errors.js";
import { object, text, write } from "./json.js";
import { checkKey, generateOwnKey, keyOf, type Key, type PrivateKey } from "./keys.js";
import { once } from "./once.js";
import { known, listOf, scopesOf, type Names } from "./options.js";
import { readFile } from "./platform.js";
import { Prover, randomId } from "./prover.js";

/** How an agent authenticates, and what its tokens are for. Exactly one of the first five. */
export interface AgentOptions {
  readonly secret?: string | Credential;
  /** Its private key: it signs a statement for each exchange, and never leaves this program. */
  readonly key?: PrivateKey;
  /** A file with its private key, which is read at each exchange: a file that is replaced counts from then on. */
  readonly keyFile?: string;
  /** Returns the token of the workload, by an issuer that the organization trusts. It is asked for at each exchange. */
  readonly assertion?: () => string | Promise<string>;
  /** A file with that token, such as Kubernetes projects into a pod. It is read at each exchange. */
  readonly assertionFile?: string;
  /** The audiences of the tokens; the default is Remit. */
  readonly resource?: readonly string[];
  /** The tokens' scopes; the default is all that the agent has. */
  readonly scopes?: readonly string[];
  /** Binds the tokens to a key: true to a new one that never leaves this program. */
  readonly dpop?: true | PrivateKey;
}

/** The options, and a key file of the environment. */
export interface AgentSettings extends AgentOptions {
  readonly dpopFile?: string;
}

/** A request for tokens. Each attempt to send it makes its form anew, because an assertion counts once. */
export type Opening = Pick<Call<unknown>, "path" | "body" | "form">;

const longestAssertion = 8 << 10; // bytes
const longestKey = 64 << 10;

const credentialNames = ["secret", "key", "keyFile", "assertion", "assertionFile"] as const;
const names: Names<AgentOptions> = {
  secret: true, key: true, keyFile: true, assertion: true, assertionFile: true, resource: true, scopes: true, dpop: true,
};

/** Returns the options of an agent. Throws TypeError and UnusableCredential for those that cannot work. */
export function agentOptions(given: string | Credential | AgentOptions): AgentOptions {
  const options = typeof given === "string" || given instanceof Credential ? { secret: given } : known("the options of an agent", given, names);
  const chosen = credentialNames.filter((name) => options[name] !== undefined);
  if (chosen.length !== 1) {
    throw new TypeError(`remit: an agent needs exactly one of ${credentialNames.join(", ")}, not ${chosen.join(" and ") || "none"}`);
  }
  scopesOf(options.scopes);
  listOf("resource", options.resource, "https://tools.example/mcp");
  if (options.key !== undefined) {
    checkKey(options.key, "key");
  }
  if (options.dpop !== undefined && options.dpop !== true) {
    checkKey(options.dpop, "dpop");
  }
  return options;
}

/** Returns what makes the proofs of an agent; undefined: its tokens are bearer tokens. */
export function proverOf({ dpop, dpopFile }: AgentSettings): Prover | undefined {
  if (dpopFile !== undefined) {
    return new Prover(() => keyIn(dpopFile));
  }
  return dpop === undefined ? undefined : new Prover(() => (dpop === true ? generateOwnKey() : keyOf(dpop, "dpop")));
}

/** Returns the request that gets an agent's first tokens. */
export function opening(agent: string, options: AgentOptions, service: Service): Opening {
  const { secret, scopes, resource } = options;
  if (secret !== undefined && scopes === undefined) {
    return { path: "/v1/auth/token", body: write({ agent_id: agent, secret: reveal(secret), resource }) };
  }
  const credential = formOf(agent, options, service);
  const form = async (signal: AbortSignal | undefined) =>
    withTargets(new URLSearchParams(await credential(signal)), scopes, resource);
  return { path: "/oauth2/token", form };
}

/** Adds scopes and resources to a form, and returns it. */
export function withTargets(form: URLSearchParams, scopes?: readonly string[], resource?: readonly string[]): URLSearchParams {
  if (scopes !== undefined) {
    form.set("scope", scopes.join(" "));
  }
  for (const target of resource ?? []) {
    form.append("resource", target);
  }
  return form;
}

type Fields = Record<string, string>;

function formOf(agent: string, options: AgentOptions, service: Service): (signal: AbortSignal | undefined) => Promise<Fields> {
  const { secret, key, keyFile, assertion, assertionFile } = options;
  if (secret !== undefined) {
    return async () => ({ grant_type: "client_credentials", client_id: agent, client_secret: reveal(secret) });
  }
  if (assertion !== undefined || assertionFile !== undefined) {
    return async () => ({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", client_id: agent,
      assertion: assertion !== undefined ? tokenText(await assertion(), "assertion") : await tokenIn(assertionFile!),
    });
  }
  const read = keyFile === undefined ? once(() => keyOf(key!, "key")) : () => keyIn(keyFile);
  return async (signal) => ({
    grant_type: "client_credentials", client_id: agent,
    client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    client_assertion: await statement(agent, await issuerOf(service, signal), await read()),
  });
}

// statement returns a JWT by which an agent authenticates once, within a minute (RFC 7523 §2.2).
async function statement(agent: string, audience: string, key: Key): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const header = { ...(key.id === undefined ? {} : { kid: key.id }), typ: "client-authentication+jwt" };
  return key.sign(header, { iss: agent, sub: agent, aud: audience, iat: now, exp: now + 60, jti: await randomId() });
}

const issuers = new WeakMap<Service, Promise<string>>(); // by service

// issuerOf returns the name of the service, which is not always the URL that reaches it. It asks once.
function issuerOf(service: Service, signal: AbortSignal | undefined): Promise<string> {
  let asked = issuers.get(service);
  if (asked === undefined) {
    const read = (answer: unknown) => text(object(answer), "issuer");
    asked = new Caller(service, undefined).do({ method: "GET", path: "/.well-known/oauth-authorization-server", semantics: "safe", read }, signal);
    issuers.set(service, asked);
    asked.catch(() => issuers.delete(service));
  }
  return asked;
}

async function keyIn(path: string): Promise<Key> {
  return keyOf(await contentOf(path, longestKey), path);
}

async function tokenIn(path: string): Promise<string> {
  return tokenText(await contentOf(path, longestAssertion), path);
}

async function contentOf(path: string, most: number): Promise<string> {
  try {
    return (await readFile(path, most)).trim();
  } catch (error) {
    const { code } = error as { code?: unknown };
    throw new UnusableCredential(path, typeof code === "string" ? `it cannot be read (${code})` : `it cannot be read, or is longer than ${most >> 10} KiB`);
  }
}

function tokenText(token: unknown, source: string): string {
  if (typeof token !== "string" || !isVisible(token.trim()) || token.trim().length > longestAssertion) {
    throw new UnusableCredential(source, "it is no token");
  }
  return token.trim();
}
