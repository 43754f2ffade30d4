import {
  createAgent, getAgent, listAgents, listFamilies, revokeAgent, revokeFamily, rotateAgentSecret,
  type AgentFilter, type AgentInfo, type AgentParams, type CreatedAgent, type Family, type RotatedSecret, type RotateSecretParams,
} from "./agents.js";
import { keyed, signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeMany, type Result, type SessionCharge } from "./charges.js";
import { Client } from "./client.js";
import { Credential } from "./credential.js";
import { ownEnvironment, required, type Environment } from "./environment.js";
import { events, type Event, type EventOptions } from "./events.js";
import { flag, maybe, object, own, text, time, whole, write, type Answer, type JSONObject } from "./json.js";
import { known } from "./options.js";
import { organizationPath } from "./paths.js";
import { seconds } from "./seconds.js";
import {
  createSession, endSession, getSession, listSessions, updateSession,
  type SessionChanges, type SessionFilter, type SessionInfo, type SessionParams, type SessionSummary,
} from "./sessions.js";
import { Transaction } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo } from "./transactions.js";

/** An organization as the service shows it. */
export interface OrganizationInfo {
  readonly id: string;
  readonly name: string;
  readonly apiKey: Credential | undefined; // in the answer to its creation only
  readonly metadata: JSONObject;
  readonly createdAt: Date;
  readonly quotas: Quantities; // how much of each it may have; empty: the service does not say
  readonly usage: Quantities; // how much of each it has
}

/** Numbers by name, such as agents. A name may be new. */
export type Quantities = { readonly [name: string]: number };

/** A new API key. The one before it ends at previousExpiresAt, or has ended. */
export interface RotatedKey {
  readonly apiKey: Credential;
  readonly previousExpiresAt: Date;
}

/** What the service says of a token: RFC 7662. Of one that is not live it says nothing but that. */
export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true;
      readonly agentId: string;
      readonly organizationId: string;
      readonly scopes: readonly string[];
      readonly tokenType: string | undefined;
      readonly issuer: string | undefined;
      readonly issuedAt: Date | undefined;
      readonly expiresAt: Date;
    };

/** How an API key is rotated. */
export interface RotateKeyParams {
  /**
   * How long the present key stays valid; left out: the service's default, 5 minutes. 0 ends it at once: if the answer is lost
   * then for good, the organization is locked out.
   */
  readonly graceSeconds?: number;
}

/** Calls the service with an API key. */
export class Organization {
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** The organization whose API key is in REMIT_API_KEY, at the service of `Client.fromEnv`. */
  static fromEnv(environment: Environment = ownEnvironment()): Organization {
    const [key] = required(environment, "REMIT_API_KEY") as [string];
    return Client.fromEnv({}, environment).organization(key);
  }

  /** Reads the organization; the id must be its own. */
  async info(id: string, options: CallOptions = {}): Promise<OrganizationInfo> {
    const path = organizationPath(id);
    return this.#caller.do({ method: "GET", path, semantics: "safe", read: organizationFrom }, signalOf(options));
  }

  /**
   * Gives the organization, by its id, a new API key. This Organization goes on with the key it has, which stays valid for the
   * grace time.
   */
  async rotateKey(id: string, params: RotateKeyParams = {}, options: WriteOptions = {}): Promise<RotatedKey> {
    const { graceSeconds } = known("a rotation of a key", params, { graceSeconds: true });
    const path = `${organizationPath(id)}/api-key/rotate`;
    const body = write({ grace_seconds: seconds(graceSeconds) });
    return this.#caller.do(keyed(this.#caller.service, path, body, options, rotatedKeyFrom), options.signal);
  }

  /** Creates an agent. Its secret is in this answer only. */
  async createAgent(params: AgentParams, options: WriteOptions = {}): Promise<CreatedAgent> {
    return createAgent(this.#caller, params, options);
  }

  /** Reads an agent. */
  async getAgent(id: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do(getAgent(id), signalOf(options));
  }

  /** The organization's agents, newest first. */
  agents(filter: AgentFilter = {}, options: CallOptions = {}): AsyncGenerator<AgentInfo, void, undefined> {
    return listAgents(this.#caller, filter, signalOf(options));
  }

  /** Ends an agent at once: its secret, its tokens and its open sessions. To revoke it again changes nothing. */
  async revokeAgent(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(revokeAgent(id), signalOf(options));
  }

  /** Gives an agent a new secret. */
  async rotateAgentSecret(id: string, params: RotateSecretParams = {}, options: WriteOptions = {}): Promise<RotatedSecret> {
    return rotateAgentSecret(this.#caller, id, params, options);
  }

  /** An agent's families that are live, newest first. One that nobody knows of may be a thief's. */
  families(agentId: string, options: CallOptions = {}): AsyncGenerator<Family, void, undefined> {
    return listFamilies(this.#caller, agentId, signalOf(options));
  }

  /** Ends a family at once, with its access tokens. To revoke it again changes nothing. */
  async revokeFamily(agentId: string, familyId: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(revokeFamily(agentId, familyId), signalOf(options));
  }

  /** Gives an agent a session. */
  async createSession(params: SessionParams, options: WriteOptions = {}): Promise<SessionInfo> {
    return createSession(this.#caller, params, options);
  }

  /** Tops an active session up, or tightens it, but not below what is used and held: that is LimitBelowUsage. */
  async updateSession(id: string, changes: SessionChanges, options: WriteOptions = {}): Promise<SessionInfo> {
    return updateSession(this.#caller, id, changes, options);
  }

  /** Reads a session. */
  async getSession(id: string, options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(id), signalOf(options));
  }

  /** The organization's sessions, newest first. */
  sessions(filter: SessionFilter = {}, options: CallOptions = {}): AsyncGenerator<SessionSummary, void, undefined> {
    return listSessions(this.#caller, filter, signalOf(options));
  }

  /** Ends a session, as `Session.end` does. */
  async endSession(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(id), signalOf(options));
  }

  /** `Agent.chargeMany` for sessions of the whole organization. */
  async chargeMany(charges: readonly SessionCharge[], options: WriteOptions = {}): Promise<Result[]> {
    return chargeMany(this.#caller, charges, options);
  }

  /** The organization's transactions, newest first, without their states and metadata. */
  transactions(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    return listTransactions(this.#caller, filter, signalOf(options));
  }

  /** An agent's audit trail, as `Agent.events` yields it. */
  events(agentId: string, options: EventOptions = {}): AsyncGenerator<Event, void, undefined> {
    return events(this.#caller, agentId, options);
  }

  /** The transaction with this id. An organization may read it and roll it back, and not commit it. Nothing is sent. */
  transaction(id: string): Transaction {
    return new Transaction(this.#caller, id);
  }

  /** Says whether a token of one of the organization's agents is live, and whose it is. */
  async introspect(token: string | Credential, options: CallOptions = {}): Promise<Introspection> {
    const body = write({ token: typeof token === "string" ? token : token.reveal() });
    const path = "/v1/auth/introspect";
    return this.#caller.do({ method: "POST", path, body, semantics: "safe", read: introspectionFrom }, signalOf(options));
  }
}

export function organizationFrom(value: unknown): OrganizationInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    name: text(answer, "name"),
    apiKey: maybe(answer, "api_key", credential),
    metadata: own(answer, "metadata"),
    createdAt: time(answer, "created_at"),
    quotas: quantities(answer, "quotas"),
    usage: quantities(answer, "usage"),
  };
}

// quantities leaves out what is no whole number, and is empty of what is not there.
function quantities(answer: Answer, name: string): Quantities {
  const said = answer[name];
  const members = typeof said === "object" && said !== null ? Object.entries(said) : [];
  return Object.fromEntries(members.filter(([, value]) => Number.isSafeInteger(value)));
}

function rotatedKeyFrom(value: unknown): RotatedKey {
  const answer = object(value);
  return { apiKey: credential(answer, "api_key"), previousExpiresAt: time(answer, "previous_expires_at") };
}

function credential(answer: Answer, name: string): Credential {
  return new Credential(text(answer, name));
}

function introspectionFrom(value: unknown): Introspection {
  const answer = object(value);
  if (!flag(answer, "active")) {
    return { active: false };
  }
  return {
    active: true,
    agentId: text(answer, "agent_id"),
    organizationId: text(answer, "org_id"),
    scopes: (maybe(answer, "scope", text) ?? "").split(" ").filter((scope) => scope !== ""),
    tokenType: maybe(answer, "token_type", text),
    issuer: maybe(answer, "iss", text),
    issuedAt: maybe(answer, "iat", date),
    expiresAt: date(answer, "exp"),
  };
}

// date reads seconds since 1970, as tokens have them.
function date(answer: Answer, name: string): Date {
  return new Date(whole(answer, name) * 1000);
}
