import {
  createAgent, getAgent, listAgents, listFamilies, revokeAgent, revokeFamily, rotateAgentSecret,
  type AgentFilter, type AgentInfo, type AgentParams, type CreatedAgent, type Family, type RotatedSecret, type RotateSecretParams,
} from "./agents.js";
import { allEvents, checkpoint, type AllEventsOptions, type OrganizationEvent } from "./allevents.js";
import {
  createApiKey, deleteApiKey, listApiKeys, rotateKey,
  type ApiKeyInfo, type ApiKeyParams, type CreatedApiKey, type RotatedKey, type RotateKeyParams,
} from "./apikeys.js";
import { updateAgent, type AgentChanges } from "./agentlimits.js";
import { deleteBudget, getBudget, setBudget, type Budget, type BudgetParams } from "./budget.js";
import { signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeMany, type Result, type SessionCharge } from "./charges.js";
import { organizationCaller, serviceFromEnv } from "./connect.js";
import { Credential } from "./credential.js";
import { ownEnvironment, required, type Environment } from "./environment.js";
import { events, type Event, type EventOptions } from "./events.js";
import { flag, maybe, object, own, text, texts, time, whole, write, type Answer, type JSONObject } from "./json.js";
import {
  approveRequest, denyRequest, getRequest, listRequests, type ApprovalParams, type MoreFilter, type MoreRequest,
} from "./more.js";
import { apiKeyPath, organizationPath } from "./paths.js";
import {
  createSessionKey, deleteSessionKey, listSessionKeys, type CreatedSessionKey, type SessionKeyInfo, type SessionKeyParams,
} from "./sessionkeys.js";
import {
  createSession, endSession, getSession, listSessions, sessionTree, updateSession,
  type SessionChanges, type SessionFilter, type SessionInfo, type SessionParams, type SessionSummary, type SessionTree,
} from "./sessions.js";
import { changeAgent, changeAllAgents, changeSession } from "./suspension.js";
import { Transaction } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo } from "./transactions.js";
import {
  createTrustedIssuer, deleteTrustedIssuer, getTrustedIssuer, listTrustedIssuers, updateTrustedIssuer,
  type TrustedIssuerChanges, type TrustedIssuerInfo, type TrustedIssuerParams,
} from "./trustedissuers.js";
import { sessionUsage, usage, usageCsv, type UsageLine, type UsageParams } from "./usagereport.js";
import {
  createWebhook, deleteWebhook, getWebhook, listDeliveries, listWebhooks, retryDelivery, rotateWebhookSecret, testWebhook, updateWebhook,
  type CreatedWebhook, type Delivery, type DeliveryFilter, type RotatedWebhookSecret, type RotateWebhookParams, type WebhookChanges,
  type WebhookInfo, type WebhookParams,
} from "./webhooks.js";

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
      readonly audience: readonly string[]; // the servers that accept the token; empty: Remit
      readonly thumbprint: string | undefined; // of the key to which it is bound
      readonly sessionId: string | undefined; // of a delegated token: it is good for this session only
      readonly actors: readonly string[]; // of a delegated token: the agent that asked for it, then the one that it had its own from
    };

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
    return rotateKey(this.#caller, `${organizationPath(id)}/api-key/rotate`, params, options);
  }

  /** Creates an API key with a role. Only this response has it. Throws QuotaExceeded beyond 64 keys. */
  async createApiKey(params: ApiKeyParams, options: WriteOptions = {}): Promise<CreatedApiKey> {
    return createApiKey(this.#caller, params, options);
  }

  /** Lists the organization's API keys, newest first. */
  async apiKeys(options: CallOptions = {}): Promise<ApiKeyInfo[]> {
    return this.#caller.do(listApiKeys(), signalOf(options));
  }

  /** Rotates one of the API keys. Its id, name, role and expiry stay. The old key stays valid for the grace period. */
  async rotateApiKey(id: string, params: RotateKeyParams = {}, options: WriteOptions = {}): Promise<RotatedKey> {
    return rotateKey(this.#caller, `${apiKeyPath(id)}/rotate`, params, options);
  }

  /** Deletes an API key: it ends at once. Throws LastAdminKey for the last admin key that never expires. */
  async deleteApiKey(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(deleteApiKey(id), signalOf(options));
  }

  /**
   * Creates a key of an active session, for programs that take nothing but an API key: with it they act as the session's agent in
   * that session alone. Only this response has it. Throws TooManySessionKeys beyond 8 at a time.
   */
  async createSessionKey(sessionId: string, params: SessionKeyParams = {}, options: WriteOptions = {}): Promise<CreatedSessionKey> {
    return createSessionKey(this.#caller, sessionId, params, options);
  }

  /** Lists the keys of a session, newest first. */
  async sessionKeys(sessionId: string, options: CallOptions = {}): Promise<SessionKeyInfo[]> {
    return this.#caller.do(listSessionKeys(sessionId), signalOf(options));
  }

  /** Deletes a session key: it ends at once. */
  async deleteSessionKey(sessionId: string, id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(deleteSessionKey(sessionId, id), signalOf(options));
  }

  /** Reports what the organization used. The service refuses a report of more than 10,000 lines: ask for fewer days or one agent. */
  async usage(params: UsageParams = {}, options: CallOptions = {}): Promise<UsageLine[]> {
    return this.#caller.do(usage(params), signalOf(options));
  }

  /** Like `usage`, as a table with a header (RFC 4180), in which no action type is a formula to a spreadsheet. */
  async usageCsv(params: UsageParams = {}, options: CallOptions = {}): Promise<string> {
    return this.#caller.do(usageCsv(params), signalOf(options));
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

  /** Reports what a session was used for, as `Session.usage` does. */
  async sessionUsage(id: string, options: CallOptions = {}): Promise<UsageLine[]> {
    return this.#caller.do(sessionUsage(id), signalOf(options));
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

  /**
   * Yields the events of all agents, numbered without gaps and in order for each agent, and then waits for new ones. It goes on
   * after a break, also when the service is unavailable for long, and misses nothing that the service keeps. Remember the sequence
   * of the last event that you have processed: after a crash, go on after it. You then get those again that you had processed and
   * not remembered.
   */
  allEvents(options: AllEventsOptions = {}): AsyncGenerator<OrganizationEvent, void, undefined> {
    return allEvents(this.#caller, options);
  }

  /** Returns a statement of where the organization's events end, signed by the issuer: a JWS in its compact form. */
  async checkpoint(options: CallOptions = {}): Promise<string> {
    return this.#caller.do(checkpoint(), signalOf(options));
  }

  /** Creates a webhook. Only this response has its secret. Throws QuotaExceeded beyond 32 webhooks. */
  async createWebhook(params: WebhookParams, options: WriteOptions = {}): Promise<CreatedWebhook> {
    return createWebhook(this.#caller, params, options);
  }

  /** Lists the organization's webhooks, newest first. */
  async webhooks(options: CallOptions = {}): Promise<WebhookInfo[]> {
    return this.#caller.do(listWebhooks(), signalOf(options));
  }

  /** Gets a webhook. */
  async getWebhook(id: string, options: CallOptions = {}): Promise<WebhookInfo> {
    return this.#caller.do(getWebhook(id), signalOf(options));
  }

  /** Changes a webhook. */
  async updateWebhook(id: string, changes: WebhookChanges, options: CallOptions = {}): Promise<WebhookInfo> {
    return this.#caller.do(updateWebhook(id, changes), signalOf(options));
  }

  /** Deletes a webhook with its deliveries. A request that is under way may still arrive. */
  async deleteWebhook(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(deleteWebhook(id), signalOf(options));
  }

  /** Rotates a webhook's secret. Until previousExpiresAt requests carry signatures by both. */
  async rotateWebhookSecret(id: string, params: RotateWebhookParams = {}, options: WriteOptions = {}): Promise<RotatedWebhookSecret> {
    return rotateWebhookSecret(this.#caller, id, params, options);
  }

  /** Sends an event of the type webhook.test to a webhook. Returns the delivery before its first attempt. */
  async testWebhook(id: string, options: WriteOptions = {}): Promise<Delivery> {
    return testWebhook(this.#caller, id, options);
  }

  /** Yields a webhook's deliveries, newest first: those that wait, and those last delivered and last given up. */
  deliveries(webhookId: string, filter: DeliveryFilter = {}, options: CallOptions = {}): AsyncGenerator<Delivery, void, undefined> {
    return listDeliveries(this.#caller, webhookId, filter, signalOf(options));
  }

  /** Sends a delivery again at once, under the same id, and with the service's retries before it. */
  async retryDelivery(webhookId: string, id: string, options: CallOptions = {}): Promise<Delivery> {
    return this.#caller.do(retryDelivery(webhookId, id), signalOf(options));
  }

  /** Trusts an issuer: what its rules name stands for the agent. Throws QuotaExceeded beyond 32 issuers. */
  async createTrustedIssuer(params: TrustedIssuerParams, options: WriteOptions = {}): Promise<TrustedIssuerInfo> {
    return createTrustedIssuer(this.#caller, params, options);
  }

  /** Lists the trusted issuers, newest first. */
  async trustedIssuers(options: CallOptions = {}): Promise<TrustedIssuerInfo[]> {
    return this.#caller.do(listTrustedIssuers(), signalOf(options));
  }

  /** Gets a trusted issuer. */
  async getTrustedIssuer(id: string, options: CallOptions = {}): Promise<TrustedIssuerInfo> {
    return this.#caller.do(getTrustedIssuer(id), signalOf(options));
  }

  /** Changes a trusted issuer, for the tokens that come from now on. */
  async updateTrustedIssuer(id: string, changes: TrustedIssuerChanges, options: CallOptions = {}): Promise<TrustedIssuerInfo> {
    return this.#caller.do(updateTrustedIssuer(id, changes), signalOf(options));
  }

  /** Deletes a trusted issuer. The access tokens that agents got with its tokens live on, for at most an hour. */
  async deleteTrustedIssuer(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(deleteTrustedIssuer(id), signalOf(options));
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
    audience: typeof answer["aud"] === "string" ? [answer["aud"]] : (maybe(answer, "aud", texts) ?? []),
    thumbprint: maybe(maybe(answer, "cnf", own) ?? {}, "jkt", text),
    sessionId: maybe(answer, "session_id", text),
    actors: actorsOf(maybe(answer, "act", own)),
  };
}

// actorsOf returns the chain of an act claim, outermost first (RFC 8693 §4.1).
function actorsOf(act: Answer | undefined): string[] {
  const actors: string[] = [];
  for (let actor = act; actor !== undefined; actor = maybe(actor, "act", own)) {
    actors.push(text(actor, "sub"));
  }
  return actors;
}

// date reads seconds since 1970, as in tokens.
function date(answer: Answer, name: string): Date {
  return new Date(whole(answer, name) * 1000);
}
