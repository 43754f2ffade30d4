import { doMany, type Result, type SessionAction } from "./actions.js";
import { Agents } from "./agents.js";
import type { Caller, CallOptions, WriteOptions } from "./call.js";
import { Credential } from "./credential.js";
import { flag, maybe, object, own, text, time, whole, write, type Answer, type JSONObject } from "./json.js";
import { organizationPath } from "./paths.js";
import { seconds } from "./seconds.js";
import { Sessions } from "./sessions.js";
import { Transaction } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo } from "./transactions.js";

/** An organization as the service shows it. */
export interface OrganizationInfo {
  readonly id: string;
  readonly name: string;
  readonly apiKey: Credential | undefined; // in the answer to its creation only
  readonly metadata: JSONObject;
  readonly createdAt: Date;
}

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

/** Calls the service with an API key. */
export class Organization {
  readonly agents: Agents;
  readonly sessions: Sessions;
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
    this.agents = new Agents(caller);
    this.sessions = new Sessions(caller);
  }

  /** Reads the organization; the id must be its own. */
  async info(id: string, options: CallOptions = {}): Promise<OrganizationInfo> {
    const path = organizationPath(id);
    return this.#caller.do({ method: "GET", path, effect: "reads", read: organizationFrom }, options.signal);
  }

  /**
   * Gives the organization, by its id, a new API key; the present one stays valid for the grace time. This Organization
   * goes on with the key it has. If the answer is lost, so is the new key: without a grace time the organization is then
   * locked out.
   */
  async rotateKey(id: string, graceSeconds = 0, options: CallOptions = {}): Promise<RotatedKey> {
    const path = `${organizationPath(id)}/api-key/rotate`;
    const body = write({ grace_seconds: seconds(graceSeconds) });
    return this.#caller.do({ method: "POST", path, body, effect: "once", read: rotatedKeyFrom }, options.signal);
  }

  /** `Agent.doMany` for sessions of the whole organization. */
  async doMany(actions: readonly SessionAction[], options: WriteOptions = {}): Promise<Result[]> {
    return doMany(this.#caller, actions, options);
  }

  /** The organization's transactions, newest first, without their states and metadata. */
  transactions(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    return listTransactions(this.#caller, filter, options.signal);
  }

  /** The transaction with this id. An organization may read it and roll it back, and not commit it. Nothing is sent. */
  transaction(id: string): Transaction {
    return new Transaction(this.#caller, id);
  }

  /** Says whether a token of one of the organization's agents is live, and whose it is. */
  async introspect(token: string | Credential, options: CallOptions = {}): Promise<Introspection> {
    const body = write({ token: typeof token === "string" ? token : token.reveal() });
    const path = "/v1/auth/introspect";
    return this.#caller.do({ method: "POST", path, body, effect: "reads", read: introspectionFrom }, options.signal);
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
  };
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
