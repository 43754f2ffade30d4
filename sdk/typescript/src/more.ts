// Requests for more than a session's limits allow, and their decisions.

import { sleep } from "./abort.js";
import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { OutcomeUnknown, RateLimited, RemitError, Unavailable } from "./errors.js";
import { amount, array, maybe, object, text, time, whole, write } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known } from "./options.js";
import { requestPath, requestsPath, withQuery } from "./paths.js";

const waitSeconds = 30; // how long the service holds a read of a pending request back; it may take up to 60
export const pollPause = 1_000; // milliseconds between two reads without a result at least: the service may return one at once
const shortestPatience = 1_000; // milliseconds between attempts while the service is unavailable, doubled up to the longest
const longestPatience = 30_000;

/** What to ask for. At least one of addActions and addValue is more than 0. */
export interface MoreParams {
  readonly addActions?: number;
  readonly addValue?: MicroUSD;
  readonly reason: string; // for who decides, 1 to 500 characters
}

/** An agent's request for more than its session's limits allow. */
export interface MoreRequest {
  readonly id: string;
  readonly sessionId: string;
  readonly agentId: string;
  readonly status: string; // pending, approved, denied or ended: its session ended first
  readonly addActions: number;
  readonly addValue: MicroUSD;
  readonly reason: string;
  readonly createdAt: Date;
  readonly grantedActions: number; // by an approval
  readonly grantedValue: MicroUSD;
  readonly comment: string; // of who decided; empty: none
  readonly decidedAt: Date | undefined;
}

/** Filters a list of requests. */
export interface MoreFilter {
  readonly status?: "pending" | "approved" | "denied" | "ended";
}

/** What an approval grants: by default all that was asked for. */
export interface ApprovalParams {
  readonly addActions?: number;
  readonly addValue?: MicroUSD;
  readonly comment?: string;
}

export function requestMore(caller: Caller, session: string, params: MoreParams, options: WriteOptions): Promise<MoreRequest> {
  const { addActions, addValue, reason } = known("a request for more", params, { addActions: true, addValue: true, reason: true });
  const body = write({ add_actions: addActions, add_value_usd: addValue, reason });
  return caller.do(keyed(caller.service, requestsPath(session), body, options, requestFrom), options.signal);
}

export function listRequests(session: string, filter: MoreFilter): Call<MoreRequest[]> {
  const { status } = known("a filter of requests", filter, { status: true });
  const path = withQuery(requestsPath(session), { status });
  return { method: "GET", path, semantics: "safe", read: (answer) => array(answer, requestFrom) };
}

export function getRequest(session: string, id: string): Call<MoreRequest> {
  return { method: "GET", path: requestPath(session, id), semantics: "safe", read: requestFrom };
}

export function approveRequest(session: string, id: string, params: ApprovalParams): Call<MoreRequest> {
  const names = { addActions: true, addValue: true, comment: true } as const;
  const { addActions, addValue, comment } = known("an approval", params, names);
  return decision(`${requestPath(session, id)}/approve`, write({ add_actions: addActions, add_value_usd: addValue, comment }));
}

export function denyRequest(session: string, id: string, comment: string | undefined): Call<MoreRequest> {
  return decision(`${requestPath(session, id)}/deny`, write({ comment }));
}

function decision(path: string, body: string): Call<MoreRequest> {
  return { method: "POST", path, body, semantics: "idempotent", read: requestFrom };
}

/** Waits until the request is decided or its session has ended, also while the service is unavailable. */
export async function awaitRequest(
  caller: Caller,
  session: string,
  id: string,
  signal: AbortSignal | undefined,
): Promise<MoreRequest> {
  const path = withQuery(requestPath(session, id), { wait: String(waitSeconds) });
  for (;;) {
    const begun = performance.now();
    const call: Call<MoreRequest> = { method: "GET", path, semantics: "safe", wait: waitSeconds * 1000, read: requestFrom };
    const request = await patiently(signal, () => caller.do(call, signal));
    if (request.status !== "pending") {
      return request;
    }
    await sleep(Math.max(begun + pollPause - performance.now(), 0), signal);
    signal?.throwIfAborted();
  }
}

/** Repeats an idempotent operation until it succeeds, the service refuses it, or the signal aborts. */
export async function patiently<T>(signal: AbortSignal | undefined, operation: () => Promise<T>): Promise<T> {
  for (let patience = shortestPatience; ; patience = Math.min(2 * patience, longestPatience)) {
    try {
      return await operation();
    } catch (error) {
      signal?.throwIfAborted();
      if (!passes(error)) {
        throw error;
      }
    }
    await sleep(patience * (0.5 + Math.random() / 2), signal); // jitter, so that many clients spread out
    signal?.throwIfAborted();
  }
}

function passes(error: unknown): boolean {
  return error instanceof RemitError && (error instanceof Unavailable || error instanceof OutcomeUnknown || error instanceof RateLimited);
}

function requestFrom(value: unknown): MoreRequest {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    sessionId: text(answer, "session_id"),
    agentId: text(answer, "agent_id"),
    status: text(answer, "status"),
    addActions: maybe(answer, "add_actions", whole) ?? 0,
    addValue: maybe(answer, "add_value_usd", amount) ?? 0n,
    reason: text(answer, "reason"),
    createdAt: time(answer, "created_at"),
    grantedActions: maybe(answer, "granted_actions", whole) ?? 0,
    grantedValue: maybe(answer, "granted_value_usd", amount) ?? 0n,
    comment: maybe(answer, "comment", text) ?? "",
    decidedAt: maybe(answer, "decided_at", time),
  };
}
