// The calls of leases, and what the service says about them.

import { keyed, type Call, type Caller } from "./call.js";
import { amount, maybe, object, text, time, whole, write, Written } from "./json.js";
import { leasePath, sessionPath } from "./paths.js";

/** Options of a lease. */
export interface LeaseOptions {
  /**
   * How long one grant of the service may be spent at most, from 1 to 3600; the default is 60. The session's maxLeaseSeconds
   * may shorten it. After a crash, what was granted and not settled counts as spent.
   */
  readonly expiresInSeconds?: number;
}

/** An amount of actions and of micro-dollars. Both are integers below 2^53, which a number keeps exactly. */
export interface Size {
  readonly actions: number;
  readonly value: number;
}

/** A lease as the service granted it. */
export interface Granted {
  readonly id: string;
  readonly size: Size;
  readonly lifetime: number; // milliseconds
}

/** What was spent of a lease, in all and by type of action. */
export interface Totals extends Size {
  readonly types: ReadonlyMap<string, Size>;
}

/** Why the service did not renew a lease. */
export interface Refusal {
  readonly code: string;
  readonly limit: string | undefined;
}

/** The result of a settlement. */
export interface Settled {
  readonly renewed: Granted | undefined;
  readonly refusal: Refusal | undefined;
}

/** Leases what fits of the size. A lease without a key could be lost for good, so it has one on a keyless client too. */
export function grantCall(caller: Caller, sessionId: string, size: Size, seconds: number): Call<Granted> {
  const service = { ...caller.service, keyless: false };
  return keyed(service, `${sessionPath(sessionId)}/leases`, write(grantBody(size, seconds)), {}, grantedFrom);
}

/**
 * Settles a lease, and asks for the next one if there is a size. It needs no key: the service answers the same numbers for the same
 * lease as it did the first time, with the same renewal, for an hour.
 */
export function settleCall(id: string, totals: Totals, renewal: Size | undefined, seconds: number): Call<Settled> {
  const body = write({
    action_count: totals.actions,
    value_used_usd: BigInt(totals.value),
    by_action_type: totals.types.size === 0 ? undefined : new Written(typesBody(totals.types)),
    renew: renewal && new Written(write(grantBody(renewal, seconds))),
  });
  return { method: "POST", path: `${leasePath(id)}/settle`, body, semantics: "idempotent", read: settledFrom };
}

function grantBody(size: Size, seconds: number) {
  const { actions, value } = size;
  return { max_actions: actions, max_value_usd: BigInt(value), expires_in_seconds: seconds, partial: true };
}

function typesBody(types: ReadonlyMap<string, Size>): string {
  const lines = [...types].map(([type, { actions, value }]) => {
    return `${JSON.stringify(type)}:${write({ action_count: actions, value_usd: BigInt(value) })}`;
  });
  return `{${lines.join(",")}}`;
}

function grantedFrom(value: unknown): Granted {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    size: { actions: whole(answer, "max_actions"), value: Number(amount(answer, "max_value_usd")) },
    lifetime: time(answer, "expires_at").getTime() - time(answer, "created_at").getTime(),
  };
}

function settledFrom(value: unknown): Settled {
  const answer = object(value);
  return {
    renewed: maybe(answer, "renewed", (from, name) => grantedFrom(from[name])),
    refusal: maybe(answer, "refusal", (from, name) => refusalFrom(from[name])),
  };
}

function refusalFrom(value: unknown): Refusal {
  const answer = object(value);
  return { code: text(answer, "code"), limit: maybe(answer, "limit", text) };
}
