import { Agent } from "./agent.js";
import { Caller, keyed, signalOf, type CallOptions, type Service, type WriteOptions } from "./call.js";
import { agentCaller, organizationCaller, serviceAt, type ClientOptions } from "./connect.js";
import { Credential, reveal } from "./credential.js";
import { address, ownEnvironment, type Environment } from "./environment.js";
import { object, text as member, Unreadable, whole, write } from "./json.js";
import { Organization, organizationFrom, type OrganizationInfo } from "./organization.js";
import { known } from "./options.js";
import { withQuery } from "./paths.js";

/** A new organization. */
export interface OrganizationParams {
  readonly name: string; // 1 to 200 characters
  readonly metadata?: object; // at most 16 KiB
  /** Required by services that run with --organizations=token. */
  readonly bootstrapToken?: string | Credential;
}

/** The tokens that an agent's secret is exchanged for. */
export interface TokenPair {
  readonly accessToken: Credential;
  readonly refreshToken: Credential;
  readonly tokenType: string; // bearer
  readonly expiresIn: number; // lifetime of the access token in seconds
}

/** The agent that an access token belongs to. */
export interface Verified {
  readonly agentId: string;
  readonly organizationId: string;
  readonly scopes: readonly string[];
}

/** One Remit service. `organization` and `agent` are the two ways to call it. */
export class Client {
  readonly #service: Service;

  /** Takes the base URL of a service, such as https://remit.example.com. Sends nothing. */
  constructor(baseURL: string | URL, options: ClientOptions = {}) {
    this.#service = serviceAt(baseURL, options);
  }

  /** Returns a Client for the service at REMIT_ADDR, or http://127.0.0.1:8080 if that is not set. */
  static fromEnv(options: ClientOptions = {}, environment: Environment = ownEnvironment()): Client {
    return new Client(address(environment), options);
  }

  /** Returns the organization with the API key. Sends nothing. */
  organization(apiKey: string | Credential): Organization {
    return new Organization(organizationCaller(this.#service, apiKey));
  }

  /** Returns the agent with this id and secret. It gets its first tokens when it needs them. */
  agent(id: string, secret: string | Credential): Agent {
    return new Agent(id, ...agentCaller(this.#service, id, secret));
  }

  /**
   * Exchanges an agent's secret for a new token pair. Use it only if you store and renew tokens yourself; an Agent does both
   * for you.
   */
  async exchange(agentId: string, secret: string | Credential, options: CallOptions = {}): Promise<TokenPair> {
    const caller = new Caller(this.#service, undefined);
    const body = write({ agent_id: agentId, secret: reveal(secret) });
    return caller.do({ method: "POST", path: "/v1/auth/token", body, semantics: "safe", read: pairFrom }, signalOf(options));
  }

  /** Creates an organization. Only this response has its API key. An idempotencyKey of your own needs at least 32 characters. */
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
   * Returns the agent that an access token belongs to. Throws Unauthorized if the token is not valid, and InsufficientScope if
   * it lacks the scope. Charges nothing.
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
