import { Agent } from "./agent.js";
import { agentOptions, opening, proverOf, type AgentOptions } from "./agentoptions.js";
import { Caller, keyed, signalOf, type CallOptions, type Service, type WriteOptions } from "./call.js";
import { agentCallers, keyCaller, organizationCaller, serviceAt, tokenCallers, type ClientOptions } from "./connect.js";
import { Credential } from "./credential.js";
import { address, ownEnvironment, type Environment } from "./environment.js";
import type { TokenOptions } from "./fixedtoken.js";
import { maybe, object, text as member, whole, write } from "./json.js";
import { Organization, organizationFrom, type OrganizationInfo } from "./organization.js";
import { known } from "./options.js";
import { Session } from "./session.js";
import { namedBy } from "./sessionkeys.js";
import { tokenType } from "./tokens.js";
import { verify, type Verified, type VerifyOptions } from "./verify.js";

/** A new organization. */
export interface OrganizationParams {
  readonly name: string; // 1 to 200 characters
  readonly metadata?: object; // at most 16 KiB
  /** Required by services that run with --organizations=token. */
  readonly bootstrapToken?: string | Credential;
}

/** The tokens that an agent's credential is exchanged for. */
export interface TokenPair {
  readonly accessToken: Credential;
  readonly refreshToken: Credential | undefined; // undefined: the workload presents its own token again
  readonly tokenType: string; // bearer or DPoP
  readonly expiresIn: number; // lifetime of the access token in seconds
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

  /**
   * Returns the agent with this id and secret, or with another credential. It gets its first tokens when it needs them. Throws
   * UnusableCredential for a key that is none.
   */
  agent(id: string, credential: string | Credential | AgentOptions): Agent {
    return new Agent(id, agentCallers(this.#service, id, agentOptions(credential)));
  }

  /**
   * Returns the agent of an access token, such as a delegated one. It can do what the token allows, until the token ends: it
   * cannot renew it.
   */
  agentWithToken(accessToken: string | Credential, options: TokenOptions = {}): Agent {
    return new Agent(...tokenCallers(this.#service, accessToken, options));
  }

  /**
   * Returns the session of a session key. It charges, leases, begins and settles transactions, asks for more and reads; what
   * concerns more than the session throws SessionKeyOnly. Throws UnusableCredential for what is no such key.
   */
  sessionWithKey(key: string | Credential): Session {
    const [agent, session] = namedBy(key);
    return new Session(keyCaller(this.#service, key), agent, session);
  }

  /**
   * Exchanges an agent's secret, or another credential, for new tokens. Use it only if you store and renew tokens yourself; an
   * Agent does both for you.
   */
  async exchange(agentId: string, credential: string | Credential | AgentOptions, options: CallOptions = {}): Promise<TokenPair> {
    const settings = agentOptions(credential);
    const caller = new Caller(this.#service, undefined, proverOf(settings));
    const read = (answer: unknown) => pairFrom(answer, caller.proves);
    const call = { method: "POST", semantics: "safe", ...opening(agentId, settings, this.#service), read } as const;
    return caller.do(call, signalOf(options));
  }

  /** Creates an organization. Only this response has its API key. An idempotencyKey of your own needs at least 32 characters. */
  async createOrganization(params: OrganizationParams, options: WriteOptions = {}): Promise<OrganizationInfo> {
    const names = { name: true, metadata: true, bootstrapToken: true } as const;
    const { name, metadata, bootstrapToken } = known("an organization", params, names);
    const creator = new Caller(
      this.#service,
      bootstrapToken === undefined ? undefined : { header: "Bearer", credential: bootstrapToken },
    );
    const body = write({ name, metadata });
    return creator.do(keyed(this.#service, "/v1/organizations", body, options, organizationFrom), options.signal);
  }

  /**
   * Returns the agent that an access token belongs to. Throws Unauthorized if the token is not valid or is for another audience,
   * and InsufficientScope if it lacks the scope. Charges nothing.
   */
  async verify(accessToken: string | Credential, scope?: string, options: VerifyOptions = {}): Promise<Verified> {
    return verify(this.#service, accessToken, scope, options);
  }
}

function pairFrom(value: unknown, bound: boolean): TokenPair {
  const answer = object(value);
  return {
    accessToken: new Credential(member(answer, "access_token")),
    refreshToken: maybe(answer, "refresh_token", (from, name) => new Credential(member(from, name))),
    tokenType: tokenType(answer, bound),
    expiresIn: whole(answer, "expires_in"),
  };
}
