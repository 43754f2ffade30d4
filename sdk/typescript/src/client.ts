import { Agent } from "./agent.js";
import { Caller, keyed, signalOf, type CallOptions, type Service, type WriteOptions } from "./call.js";
import { Credential, reveal } from "./credential.js";
import { address, ownEnvironment, type Environment } from "./environment.js";
import { object, text as member, Unreadable, whole, write } from "./json.js";
import { Organization, organizationFrom, type OrganizationInfo } from "./organization.js";
import { known } from "./options.js";
import { withQuery } from "./paths.js";
import { Tokens } from "./tokens.js";

const defaultAttempts = 4;
const defaultTimeout = 10_000;

/** Settings of a Client. None is needed. */
export interface ClientOptions {
  /** Sends the requests; left out: the global fetch. It is told not to follow redirects, which would carry credentials elsewhere. */
  readonly fetch?: typeof fetch;
  /** How often one call is sent at most, the first time included; left out: 4 times. */
  readonly maxAttempts?: number;
  /** Milliseconds for one attempt, up to the last byte of the answer; left out: 10,000; Infinity: none. Events wait for 30 seconds more. */
  readonly timeout?: number;
  /**
   * false sends writes without a key unless the caller gives one; left out: true. The service then keeps nothing for 24 hours
   * per write, but a lost answer stays in doubt: such a write is not sent again.
   */
  readonly idempotencyKeys?: boolean;
}

/** What a new organization is. */
export interface OrganizationParams {
  readonly name: string; // 1 to 200 characters
  readonly metadata?: object; // at most 16 KiB
  /** Needed by services that run with --organizations=token. */
  readonly bootstrapToken?: string | Credential;
}

/** What an agent's secret is exchanged for. */
export interface TokenPair {
  readonly accessToken: Credential;
  readonly refreshToken: Credential;
  readonly tokenType: string; // bearer
  readonly expiresIn: number; // seconds that the access token lives
}

/** Whose an access token is. */
export interface Verified {
  readonly agentId: string;
  readonly organizationId: string;
  readonly scopes: readonly string[];
}

/** One Remit service. `organization` and `agent` are the two ways to call it. */
export class Client {
  readonly #service: Service;

  /** For the base URL of a service, such as https://remit.example.com. Nothing is sent. */
  constructor(baseURL: string | URL, options: ClientOptions = {}) {
    known("the options of a Client", options, { fetch: true, maxAttempts: true, timeout: true, idempotencyKeys: true });
    this.#service = {
      base: baseOf(String(baseURL)),
      // Called as a function of nobody: browsers and Workers refuse it as a method of something else.
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
      attempts: positive("maxAttempts", options.maxAttempts ?? defaultAttempts),
      timeout: positive("timeout", options.timeout ?? defaultTimeout),
      keyless: options.idempotencyKeys === false,
    };
  }

  /** For the service at REMIT_ADDR, or http://127.0.0.1:8080 when that is not set. */
  static fromEnv(options: ClientOptions = {}, environment: Environment = ownEnvironment()): Client {
    return new Client(address(environment), options);
  }

  /** The organization that holds the API key. */
  organization(apiKey: string | Credential): Organization {
    return new Organization(new Caller(this.#service, { header: "X-API-Key", credential: apiKey }));
  }

  /** The agent with this id and secret. It gets its first tokens when it needs them. */
  agent(id: string, secret: string | Credential): Agent {
    const tokens = new Tokens(new Caller(this.#service, undefined), id, secret);
    return new Agent(id, new Caller(this.#service, { tokens }), tokens);
  }

  /**
   * Exchanges an agent's secret for a new pair of tokens, for whoever keeps and renews them by other means. An Agent does it
   * by itself.
   */
  async exchange(agentId: string, secret: string | Credential, options: CallOptions = {}): Promise<TokenPair> {
    const caller = new Caller(this.#service, undefined);
    const body = write({ agent_id: agentId, secret: reveal(secret) });
    return caller.do({ method: "POST", path: "/v1/auth/token", body, semantics: "safe", read: pairFrom }, signalOf(options));
  }

  /** Creates an organization. Its API key is in this answer only. A key of your own has at least 32 characters. */
  async createOrganization(params: OrganizationParams, options: WriteOptions = {}): Promise<OrganizationInfo> {
    const names = { name: true, metadata: true, bootstrapToken: true } as const;
    const { name, metadata, bootstrapToken } = known("an organization", params, names);
    const creator = new Caller(
      this.#service,
      bootstrapToken === undefined ? undefined : { header: "Authorization", credential: bootstrapToken },
    );
    const body = write({ name, metadata });
    return creator.do(keyed(this.#service, "/v1/organizations", body, options, organizationFrom), options.signal);
  }

  /**
   * Says whose an access token is, as a gateway would ask. One that is not valid is Unauthorized, and one without the
   * scope, if that is given, InsufficientScope.
   */
  async verify(accessToken: string | Credential, scope?: string, options: CallOptions = {}): Promise<Verified> {
    const caller = new Caller(this.#service, { header: "Authorization", credential: accessToken });
    const path = withQuery("/v1/auth/verify", { scope });
    return caller.do({ method: "GET", path, semantics: "safe", read: verifiedFrom }, signalOf(options));
  }
}

function pairFrom(value: unknown): TokenPair {
  const answer = object(value);
  return {
    accessToken: new Credential(member(answer, "access_token")),
    refreshToken: new Credential(member(answer, "refresh_token")),
    tokenType: member(answer, "token_type"),
    expiresIn: whole(answer, "expires_in"),
  };
}

function verifiedFrom(_: unknown, headers: Headers): Verified {
  const said = { agentId: headers.get("X-Agent-Id"), organizationId: headers.get("X-Org-Id") };
  if (headers.get("X-Scopes") === null) {
    throw new Unreadable("X-Scopes is missing");
  }
  return {
    agentId: member(said, "agentId"),
    organizationId: member(said, "organizationId"),
    scopes: (headers.get("X-Scopes") ?? "").split(" ").filter((scope) => scope !== ""),
  };
}

function baseOf(text: string): string {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError("remit: the base URL cannot be read"); // the error would quote it, with its password
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
