import { keyed, signalOfWrite, type Call, type Caller, type WriteOptions } from "./call.js";
import { amount, array, flag, maybe, object, own, text, texts, time, whole, wholes, write, type JSONObject } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known, scopesOf, type Names } from "./options.js";
import { list } from "./pages.js";
import { sessionPath } from "./paths.js";
import { seconds } from "./seconds.js";

/** Limits of a session. In a new session, omitted limits get the service's defaults, which the response shows. In a change, they stay. */
export interface SessionLimits {
  readonly maxActions?: number; // 1 to 1,000,000,000
  readonly maxValue?: MicroUSD; // 0n is a limit
  readonly expiresInSeconds?: number; // from now, up to 30 days
  readonly maxLeaseSeconds?: number; // how long a lease of its budget may last, up to 3600; 0, the default, allows none
  readonly maxValuePerAction?: MicroUSD | null; // of one charge or hold; null, the default, is no limit
  readonly thresholds?: readonly number[]; // percents, 1 to 100, that the event budget.threshold tells; the default is 80 and 100
  readonly enforcement?: "enforce" | "observe"; // observe does and counts what limits would refuse; the default is enforce
}

/** A new session. */
export interface SessionParams extends SessionLimits {
  readonly agentId: string;
  readonly scopes?: readonly string[]; // a subset of the agent's scopes; the default is all of them
  readonly metadata?: object; // at most 16 KiB
  readonly parentSessionId?: string; // the session of which this one is a part; `Session.createChild` sets it
  readonly maxCommitted?: MicroUSD; // limits SessionInfo.valueCommitted, which rollbacks do not lower; the default is no limit
}

/** Changes of an active session. Omitted limits stay. */
export interface SessionChanges extends SessionLimits {
  // Relative, so concurrent top-ups all count. The service refuses addActions with maxActions, and addValue with maxValue.
  readonly addActions?: number;
  readonly addValue?: MicroUSD;
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
  readonly valueHeld: MicroUSD; // held by pending transactions and open leases
  readonly valueOverage: MicroUSD; // spent beyond limits, by transactions and leases
  readonly valueCommitted: MicroUSD; // sum of all charges and commits; rollbacks do not lower it
  readonly maxCommitted: MicroUSD | undefined; // the limit of valueCommitted
  readonly maxLeaseSeconds: number; // 0: no leases
  readonly maxValuePerAction: MicroUSD | undefined; // of one charge or hold
  readonly enforcement: string; // enforce or observe
  readonly thresholds: readonly number[] | undefined; // percents that the event budget.threshold tells; undefined: 80 and 100
  readonly observedRefusals: number; // what limits would have refused
  readonly suspendedAt: Date | undefined;
  readonly suspensionReason: string; // empty: none
  readonly parentSessionId: string | undefined;
  // What the session's open children hold of it. actionCount, valueUsed and valueHeld do not contain it.
  readonly actionsDelegated: number;
  readonly valueDelegated: MicroUSD;
  readonly scopes: readonly string[];
  readonly metadata: JSONObject;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly endedAt: Date | undefined;
}

/** A session with its descendants. */
export interface SessionTree extends SessionInfo {
  readonly children: readonly SessionTree[];
  /** Some children are missing, because a tree is read with at most 1,000 sessions. To see them, read the tree of this session. */
  readonly childrenTruncated: boolean;
}

/** A child session. By default it is for the agent of its parent. */
export type ChildParams = Omit<SessionParams, "agentId" | "parentSessionId"> & { readonly agentId?: string };

/** A session as lists show it. */
export interface SessionSummary {
  readonly id: string;
  readonly agentId: string;
  readonly status: string;
  readonly actionCount: number;
  readonly maxActions: number;
  readonly valueUsed: MicroUSD;
  readonly maxValue: MicroUSD;
  readonly expiresAt: Date;
}

/** Filters a list of sessions. */
export interface SessionFilter {
  readonly status?: "active" | "completed" | "expired" | "revoked";
  readonly agentId?: string;
}

export function createSession(caller: Caller, params: SessionParams, options: WriteOptions): Promise<SessionInfo> {
  const names: Names<SessionParams> = { ...limitNames, agentId: true, scopes: true, metadata: true, maxCommitted: true, parentSessionId: true };
  const { agentId, scopes, metadata, maxCommitted, parentSessionId } = known("a session", params, names);
  const own = { scopes: scopesOf(scopes), metadata, max_committed_usd: maxCommitted, parent_session_id: parentSessionId };
  const body = { agent_id: agentId, ...limits(params), ...own };
  return caller.do(keyed(caller.service, "/v1/sessions", write(body), options, sessionFrom), options.signal);
}

export function updateSession(
  caller: Caller,
  id: string,
  changes: SessionChanges,
  options: WriteOptions,
): Promise<SessionInfo> {
  const names: Names<SessionChanges> = { ...limitNames, addActions: true, addValue: true };
  const { addActions, addValue } = known("a change of a session", changes, names);
  const body = write({ ...limits(changes), add_actions: addActions, add_value_usd: addValue });
  const path = sessionPath(id);
  const relative = addActions !== undefined || addValue !== undefined; // repeated additions would count twice
  const call: Call<SessionInfo> =
    relative || options.idempotencyKey !== undefined
      ? keyed(caller.service, path, body, options, sessionFrom, "PATCH")
      : { method: "PATCH", path, body, semantics: "idempotent", read: sessionFrom };
  return caller.do(call, signalOfWrite(options));
}

export function getSession(id: string): Call<SessionInfo> {
  return { method: "GET", path: sessionPath(id), semantics: "safe", read: sessionFrom };
}

export function sessionTree(id: string): Call<SessionTree> {
  return { method: "GET", path: `${sessionPath(id)}/tree`, semantics: "safe", most: longestTree, read: treeFrom };
}

export function endSession(id: string): Call<unknown> {
  return { method: "POST", path: `${sessionPath(id)}/end`, semantics: "idempotent", read: object };
}

export function listSessions(caller: Caller, filter: SessionFilter, signal: AbortSignal | undefined) {
  const { status, agentId } = known("a filter of sessions", filter, { status: true, agentId: true });
  return list(caller, "/v1/sessions", { status, agent_id: agentId }, summaryFrom, signal);
}

const longestTree = 16 << 20; // bytes

const limitNames: Names<SessionLimits> = {
  maxActions: true, maxValue: true, expiresInSeconds: true, maxLeaseSeconds: true, maxValuePerAction: true, enforcement: true,
  thresholds: true,
};

function limits(given: SessionLimits) {
  return {
    max_actions: given.maxActions,
    max_value_usd: given.maxValue,
    expires_in_seconds: seconds(given.expiresInSeconds),
    max_lease_seconds: seconds(given.maxLeaseSeconds),
    max_value_usd_per_action: given.maxValuePerAction,
    enforcement: given.enforcement,
    thresholds: given.thresholds,
  };
}

function treeFrom(value: unknown): SessionTree {
  const answer = object(value);
  const childrenTruncated = maybe(answer, "children_truncated", flag) ?? false;
  return { ...sessionFrom(value), children: array(answer["children"], treeFrom), childrenTruncated };
}

export function sessionFrom(value: unknown): SessionInfo {
  const answer = object(value);
  return {
    ...summaryFrom(value),
    maxValue: amount(answer, "max_value_usd"),
    valueUsed: amount(answer, "value_used_usd"),
    valueHeld: amount(answer, "value_held_usd"),
    valueOverage: maybe(answer, "value_overage_usd", amount) ?? 0n,
    valueCommitted: maybe(answer, "value_committed_usd", amount) ?? 0n,
    maxCommitted: maybe(answer, "max_committed_usd", amount),
    maxLeaseSeconds: maybe(answer, "max_lease_seconds", whole) ?? 0,
    maxValuePerAction: maybe(answer, "max_value_usd_per_action", amount),
    enforcement: maybe(answer, "enforcement", text) ?? "enforce",
    thresholds: maybe(answer, "thresholds", wholes),
    observedRefusals: maybe(answer, "observed_refusals", whole) ?? 0,
    suspendedAt: maybe(answer, "suspended_at", time),
    suspensionReason: maybe(answer, "suspension_reason", text) ?? "",
    parentSessionId: maybe(answer, "parent_session_id", text),
    actionsDelegated: maybe(answer, "actions_delegated", whole) ?? 0,
    valueDelegated: maybe(answer, "value_delegated_usd", amount) ?? 0n,
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
    valueUsed: maybe(answer, "value_used_usd", amount) ?? 0n,
    maxValue: maybe(answer, "max_value_usd", amount) ?? 0n,
    expiresAt: time(answer, "expires_at"),
  };
}
