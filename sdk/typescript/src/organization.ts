import {
  createAgent, getAgent, listAgents, listFamilies, revokeAgent, revokeFamily, rotateAgentSecret,
  type AgentFilter, type AgentInfo, type AgentParams, type CreatedAgent, type Family, type RotatedSecret, type RotateSecretParams,
} from "./agents.js";
import { updateAgent, type AgentChanges } from "./agentlimits.js";
import { deleteBudget, getBudget, setBudget, type Budget, type BudgetParams } from "./budget.js";
import { keyed, signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeMany, type Result, type SessionCharge } from "./charges.js";
import { organizationCaller, serviceFromEnv } from "./connect.js";
import { Credential } from "./credential.js";
import { ownEnvironment, required, type Environment } from "./environment.js";
import { events, type Event, type EventOptions } from "./events.js";
import { flag, maybe, object, own, text, time, whole, write, type Answer, type JSONObject } from "./json.js";
import {
  approveRequest, denyRequest, getRequest, listRequests, type ApprovalParams, type MoreFilter, type MoreRequest,
} from "./more.js";
import { known } from "./options.js";
import { organizationPath } from "./paths.js";
import { seconds } from "./seconds.js";
import {
  createSession, endSession, getSession, listSessions, sessionTree, updateSession,
  type SessionChanges, type SessionFilter, type SessionInfo, type SessionParams, type SessionSummary, type SessionTree,
} from "./sessions.js";
import { changeAgent, changeAllAgents, changeSession } from "./suspension.js";
import { Transaction } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo } from "./transactions.js";

/** An organization as the service shows it. */
export interface OrganizationInfo {
  readonly id: string;
  readonly name: string;
  readonly apiKey: Credential | undefined; // only in the response to createOrganization
  readonly metadata: JSONObject;
  readonly createdAt: Date;
  readonly quotas: Quantities; // the maximum of each resource; empty if the service does not report quotas
  readonly usage: Quantities; // how much of each resource the organization uses
}

/** Numbers by resource name, such as agents. The service may add names. */
export type Quantities = { readonly [name: string]: number };

/** A new API key. The previous one ends at previousExpiresAt, or has ended. */
export interface RotatedKey {
  readonly apiKey: Credential;
  readonly previousExpiresAt: Date;
}

/** The current state of a token (RFC 7662). For an inactive token only active is set. */
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

/** Options of an API key rotation. */
export interface RotateKeyParams {
  /**
   * How long the old key stays valid; the service's default is 5 minutes. 0 ends it at once: if the response is then lost for
   * good, the organization is locked out.
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

  /** Returns the organization whose API key is in REMIT_API_KEY, at the service of `Client.fromEnv`. */
  static fromEnv(environment: Environment = ownEnvironment()): Organization {
    const [key] = required(environment, "REMIT_API_KEY") as [string];
    return new Organization(organizationCaller(serviceFromEnv(environment), key));
  }

  /** Gets the organization. The id must be that of the API key's own organization. */
  async info(id: string, options: CallOptions = {}): Promise<OrganizationInfo> {
    const path = organizationPath(id);
    return this.#caller.do({ method: "GET", path, semantics: "safe", read: organizationFrom }, signalOf(options));
  }

  /**
   * Rotates the API key of the organization with this id. This Organization object keeps using the old key, which stays valid
   * for the grace period.
   */
  async rotateKey(id: string, params: RotateKeyParams = {}, options: WriteOptions = {}): Promise<RotatedKey> {
    const { graceSeconds } = known("a rotation of a key", params, { graceSeconds: true });
    const path = `${organizationPath(id)}/api-key/rotate`;
    const body = write({ grace_seconds: seconds(graceSeconds) });
    return this.#caller.do(keyed(this.#caller.service, path, body, options, rotatedKeyFrom), options.signal);
  }

  /** Creates an agent. Only this response has its secret. */
  async createAgent(params: AgentParams, options: WriteOptions = {}): Promise<CreatedAgent> {
    return createAgent(this.#caller, params, options);
  }

  /** Gets an agent. */
  async getAgent(id: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do(getAgent(id), signalOf(options));
  }

  /** Yields the organization's agents, newest first. */
  agents(filter: AgentFilter = {}, options: CallOptions = {}): AsyncGenerator<AgentInfo, void, undefined> {
    return listAgents(this.#caller, filter, signalOf(options));
  }

  /** Changes an agent. A scope that it loses is refused from now on, whatever its tokens and sessions say. */
  async updateAgent(id: string, changes: AgentChanges, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do(updateAgent(id, changes), signalOf(options));
  }

  /**
   * Suspends an agent at once: until it is resumed, it gets no tokens, charges nothing, begins nothing and leases nothing. What it
   * has begun and leased may still be settled, and its sessions' time runs on. The reason is for people. Suspending it again keeps
   * the first time and reason.
   */
  async suspendAgent(id: string, reason?: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do(changeAgent(id, "suspend", reason), signalOf(options));
  }

  /** Lets a suspended agent go on. Idempotent. */
  async resumeAgent(id: string, reason?: string, options: CallOptions = {}): Promise<AgentInfo> {
    return this.#caller.do(changeAgent(id, "resume", reason), signalOf(options));
  }

  /** Suspends every agent of the organization, and returns how many live agents are suspended then. Idempotent. */
  async suspendAllAgents(reason?: string, options: CallOptions = {}): Promise<number> {
    return this.#caller.do(changeAllAgents("suspend", reason), signalOf(options));
  }

  /** Resumes every agent of the organization, and returns how many live agents are not suspended then. Idempotent. */
  async resumeAllAgents(options: CallOptions = {}): Promise<number> {
    return this.#caller.do(changeAllAgents("resume", undefined), signalOf(options));
  }

  /** Revokes an agent at once, with its secret, its tokens and its open sessions. Idempotent. */
  async revokeAgent(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(revokeAgent(id), signalOf(options));
  }

  /** Rotates an agent's secret. */
  async rotateAgentSecret(id: string, params: RotateSecretParams = {}, options: WriteOptions = {}): Promise<RotatedSecret> {
    return rotateAgentSecret(this.#caller, id, params, options);
  }

  /** Yields the agent's valid refresh-token families, newest first. One that you do not recognize may come from a stolen secret. */
  families(agentId: string, options: CallOptions = {}): AsyncGenerator<Family, void, undefined> {
    return listFamilies(this.#caller, agentId, signalOf(options));
  }

  /** Revokes a family at once, with its access tokens. Idempotent. */
  async revokeFamily(agentId: string, familyId: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(revokeFamily(agentId, familyId), signalOf(options));
  }

  /** Creates a session for an agent. */
  async createSession(params: SessionParams, options: WriteOptions = {}): Promise<SessionInfo> {
    return createSession(this.#caller, params, options);
  }

  /** Changes the limits of an active session. Throws LimitBelowUsage if a limit is below what is used and held. */
  async updateSession(id: string, changes: SessionChanges, options: WriteOptions = {}): Promise<SessionInfo> {
    return updateSession(this.#caller, id, changes, options);
  }

  /** Reads a session. */
  async getSession(id: string, options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(id), signalOf(options));
  }

  /** Gets a session with its descendants. */
  async sessionTree(id: string, options: CallOptions = {}): Promise<SessionTree> {
    return this.#caller.do(sessionTree(id), signalOf(options));
  }

  /** Suspends an active session and its descendants at once, as `suspendAgent` does an agent. */
  async suspendSession(id: string, reason?: string, options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(changeSession(id, "suspend", reason), signalOf(options));
  }

  /** Lets a suspended session go on. Idempotent. */
  async resumeSession(id: string, reason?: string, options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(changeSession(id, "resume", reason), signalOf(options));
  }

  /** Lists a session's requests for more, as `Session.requests` does. */
  async requests(sessionId: string, filter: MoreFilter = {}, options: CallOptions = {}): Promise<MoreRequest[]> {
    return this.#caller.do(listRequests(sessionId, filter), signalOf(options));
  }

  /** Gets a request for more. */
  async getRequest(sessionId: string, id: string, options: CallOptions = {}): Promise<MoreRequest> {
    return this.#caller.do(getRequest(sessionId, id), signalOf(options));
  }

  /**
   * Approves a request for more: it raises the session's limits by what it grants, by default all that was asked for. Idempotent.
   * Throws RequestDecided if it was decided otherwise.
   */
  async approveRequest(sessionId: string, id: string, params: ApprovalParams = {}, options: CallOptions = {}): Promise<MoreRequest> {
    return this.#caller.do(approveRequest(sessionId, id, params), signalOf(options));
  }

  /** Denies a request for more, with a comment for the agent. Idempotent. Throws RequestDecided if it was approved. */
  async denyRequest(sessionId: string, id: string, comment?: string, options: CallOptions = {}): Promise<MoreRequest> {
    return this.#caller.do(denyRequest(sessionId, id, comment), signalOf(options));
  }

  /** Sets the organization's budget or changes it. Throws LimitBelowUsage for a value below what is reserved and used. */
  async setBudget(params: BudgetParams, options: CallOptions = {}): Promise<Budget> {
    return this.#caller.do(setBudget(params), signalOf(options));
  }

  /** Gets the organization's budget. Throws NotFound if there is none. */
  async getBudget(options: CallOptions = {}): Promise<Budget> {
    return this.#caller.do(getBudget(), signalOf(options));
  }

  /** Removes the organization's budget: nothing bounds its root sessions together any more. Sessions keep their limits. */
  async deleteBudget(options: CallOptions = {}): Promise<void> {
    await this.#caller.do(deleteBudget(), signalOf(options));
  }

  /** The organization's sessions, newest first. */
  sessions(filter: SessionFilter = {}, options: CallOptions = {}): AsyncGenerator<SessionSummary, void, undefined> {
    return listSessions(this.#caller, filter, signalOf(options));
  }

  /** Ends a session, as `Session.end` does. */
  async endSession(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(id), signalOf(options));
  }

  /** Like `Agent.chargeMany`, for sessions of the whole organization. */
  async chargeMany(charges: readonly SessionCharge[], options: WriteOptions = {}): Promise<Result[]> {
    return chargeMany(this.#caller, charges, options);
  }

  /** Yields the organization's transactions, newest first, without preState, postState and metadata. */
  transactions(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    return listTransactions(this.#caller, filter, signalOf(options));
  }

  /** Yields an agent's audit trail, like `Agent.events`. */
  events(agentId: string, options: EventOptions = {}): AsyncGenerator<Event, void, undefined> {
    return events(this.#caller, agentId, options);
  }

  /** Returns the transaction with this id. Sends nothing. An organization can read it and roll it back, but not commit it. */
  transaction(id: string): Transaction {
    return new Transaction(this.#caller, id);
  }

  /** Returns the current state of an access or refresh token of the organization's agents. */
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

// quantities skips members that are not integers. A missing object is empty.
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

// date reads seconds since 1970, as in tokens.
function date(answer: Answer, name: string): Date {
  return new Date(whole(answer, name) * 1000);
}
