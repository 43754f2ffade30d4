// Makes the callers of a service. Client and the fromEnv methods share it.

import { opening, proverOf, type AgentSettings } from "./agentoptions.js";
import { Caller, type Service, type TokenSource } from "./call.js";
import type { Credential } from "./credential.js";
import { address, type Environment } from "./environment.js";
import { UnusableCredential } from "./errors.js";
import { FixedToken, type TokenOptions } from "./fixedtoken.js";
import { known } from "./options.js";
import { Tokens } from "./tokens.js";

const defaultAttempts = 4;
const defaultTimeout = 10_000;

/** Settings of a Client. All are optional. */
export interface ClientOptions {
  /** Sends the requests; the default is the global fetch. The SDK forbids redirects, which would carry credentials elsewhere. */
  readonly fetch?: typeof fetch;
  /** How often the SDK sends one call at most, the first attempt included; the default is 4. */
  readonly maxAttempts?: number;
  /** Milliseconds for one attempt, up to the last byte of the response; the default is 10,000; Infinity: no limit. Events wait for 30 seconds more. */
  readonly timeout?: number;
  /**
   * false sends writes without a key unless the caller passes one; the default is true. The service then stores nothing for 24
   * hours per write, but the SDK cannot retry the write, and a lost response leaves its outcome unknown.
   */
  readonly idempotencyKeys?: boolean;
}

/** The service at a base URL, such as https://remit.example.com. */
export function serviceAt(baseURL: string | URL, options: ClientOptions = {}): Service {
  known("the options of a Client", options, { fetch: true, maxAttempts: true, timeout: true, idempotencyKeys: true });
  return {
    base: baseOf(String(baseURL)),
    // A plain function: browsers and Workers refuse fetch as a method of another object.
    fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    attempts: positive("maxAttempts", options.maxAttempts ?? defaultAttempts),
    timeout: positive("timeout", options.timeout ?? defaultTimeout),
    keyless: options.idempotencyKeys === false,
  };
}

/** The service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set. */
export function serviceFromEnv(environment: Environment): Service {
  return serviceAt(address(environment));
}

/** A caller that authenticates with an API key. */
export function organizationCaller(service: Service, apiKey: string | Credential): Caller {
  return new Caller(service, { header: "X-API-Key", credential: apiKey });
}

/** A caller that authenticates with a session key. */
export function keyCaller(service: Service, key: string | Credential): Caller {
  return new Caller(service, { header: "Bearer", credential: key });
}

/** What calls as an agent. */
export interface AgentCallers {
  readonly caller: Caller;
  readonly tokens: TokenSource;
  readonly issuer: Caller; // asks for tokens: it has no access token, and the agent's proofs
}

/** Returns what calls as an agent with these options. */
export function agentCallers(service: Service, id: string, settings: AgentSettings): AgentCallers {
  const prover = proverOf(settings);
  const issuer = new Caller(service, undefined, prover);
  const tokens = new Tokens(issuer, opening(id, settings, service));
  return { caller: new Caller(service, { tokens }, prover), tokens, issuer };
}

/** Returns what calls as an agent with a token that it cannot renew, and the agent's id. */
export function tokenCallers(service: Service, token: string | Credential, options: TokenOptions): readonly [string, AgentCallers] {
  const { dpop } = known("the options of an agent", options, { dpop: true });
  const tokens = new FixedToken(token);
  if (tokens.isBound && dpop === undefined) {
    throw new UnusableCredential("token", "it is bound to a key: pass the key as dpop");
  }
  const prover = tokens.isBound ? proverOf({ dpop: dpop! }) : undefined;
  const issuer = new Caller(service, undefined, prover);
  return [tokens.agent, { caller: new Caller(service, { tokens }, prover), tokens, issuer }];
}

function baseOf(text: string): string {
  if (!text.includes("://")) {
    throw new TypeError("remit: the base URL needs http:// or https:// before the host");
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError("remit: the base URL cannot be read"); // the original error would quote it, with its password
  }
  const plain = url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (!["http:", "https:"].includes(url.protocol) || !plain) {
    throw new TypeError(`remit: base URL at ${url.host}: want https://host, with a path at most`);
  }
  return url.href.replace(/\/+$/, "");
}

function positive(name: string, value: number): number {
  if (!(value >= 1)) {
    throw new RangeError(`remit: ${name} must be 1 or more`);
  }
  return value;
}
