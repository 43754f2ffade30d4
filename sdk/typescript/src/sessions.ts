import { keyed, type Call, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { amount, maybe, object, own, text, texts, time, whole, write, type JSONObject } from "./json.js";
import type { MicroUSD } from "./money.js";
import { list } from "./pages.js";
import { sessionPath } from "./paths.js";
import { seconds } from "./seconds.js";

/** Limits of a session. What is left out gets the service's default, which its answer shows, or stays as it is. */
export interface SessionLimits {
  readonly maxActions?: number; // 1 to 1,000,000,000
  readonly maxValue?: MicroUSD; // 0n is a limit
  readonly expiresInSeconds?: number; // from now, up to 30 days
}

/** What a new session is. */
export interface SessionParams extends SessionLimits {
  readonly agentId: string;
  readonly scopes?: readonly string[]; // of the agent's; left out: all of them
  readonly metadata?: object; // at most 16 KiB
}

/** A session as the service shows it. */
export interface SessionInfo {
  readonly id: string;
  readonly agentId: string;
  readonly status: string; // active, completed, expired or revoked
  readonly maxActions: number;
  readonly actionCount: number;
  readonly maxValue: MicroUSD;
  readonly valueUsed: MicroUSD;
  readonly valueHeld: MicroUSD; // by pending transactions
  readonly valueOverage: MicroUSD; // spent by transactions, and beyond the limit
  readonly scopes: readonly string[];
  readonly metadata: JSONObject;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
}

/** A session as lists show it. */
export interface SessionSummary {
  readonly id: string;
  readonly agentId: string;
  readonly status: string;
  readonly actionCount: number;
  readonly maxActions: number;
  readonly expiresAt: Date;
}

/** Narrows a list of sessions. */
export interface SessionFilter {
  readonly status?: "active" | "completed" | "expired" | "revoked";
  readonly agentId?: string;
}

/** The sessions of an organization. */
export class Sessions {
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.#caller = caller;
  }

  /** Gives an agent a session. */
  async create(params: SessionParams, options: WriteOptions = {}): Promise<SessionInfo> {
    const { agentId, scopes, metadata } = params;
    const body = write({ agent_id: agentId, ...limits(params), scopes, metadata });
    const call = keyed(this.#caller.service, "/v1/sessions", body, options, sessionFrom);
    return this.#caller.do(call, options.signal);
  }

  /** Reads a session. */
  async get(id: string, options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(id), options.signal);
  }

  /** The organization's sessions, newest first. */
  list(filter: SessionFilter = {}, options: CallOptions = {}): AsyncGenerator<SessionSummary, void, undefined> {
    return listSessions(this.#caller, filter, options.signal);
  }

  /** Tops an active session up, or tightens it, but not below what is used and held: that is LimitBelowUsage. */
  async update(id: string, changes: SessionLimits, options: CallOptions = {}): Promise<SessionInfo> {
    const body = write(limits(changes));
    const path = sessionPath(id);
    return this.#caller.do({ method: "PATCH", path, body, effect: "repeats", read: sessionFrom }, options.signal);
  }

  /** Ends a session, as `Session.end` does. */
  async end(id: string, options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(id), options.signal);
  }
}

export function getSession(id: string): Call<SessionInfo> {
  return { method: "GET", path: sessionPath(id), effect: "reads", read: sessionFrom };
}

export function endSession(id: string): Call<unknown> {
  return { method: "POST", path: `${sessionPath(id)}/end`, effect: "repeats", read: object };
}

export function listSessions(caller: Caller, filter: SessionFilter, signal: AbortSignal | undefined) {
  return list(caller, "/v1/sessions", { status: filter.status, agent_id: filter.agentId }, summaryFrom, signal);
}

function limits(given: SessionLimits) {
  return {
    max_actions: given.maxActions,
    max_value_usd: given.maxValue,
    expires_in_seconds: seconds(given.expiresInSeconds),
  };
}

function sessionFrom(value: unknown): SessionInfo {
  const answer = object(value);
  return {
    ...summaryFrom(value),
    maxValue: amount(answer, "max_value_usd"),
    valueUsed: amount(answer, "value_used_usd"),
    valueHeld: amount(answer, "value_held_usd"),
    valueOverage: amount(answer, "value_overage_usd"),
    scopes: texts(answer, "scopes"),
    metadata: own(answer, "metadata"),
    createdAt: time(answer, "created_at"),
    endedAt: maybe(answer, "ended_at", time),
  };
}

function summaryFrom(value: unknown): SessionSummary {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    agentId: text(answer, "agent_id"),
    status: text(answer, "status"),
    actionCount: whole(answer, "action_count"),
    maxActions: whole(answer, "max_actions"),
    expiresAt: time(answer, "expires_at"),
  };
}
