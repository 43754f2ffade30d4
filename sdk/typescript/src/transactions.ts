import type { Caller } from "./call.js";
import { amount, flag, maybe, object, own, text, time, whole, type JSONObject } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known } from "./options.js";
import { list } from "./pages.js";

/** What a new transaction is. */
export interface TransactionParams {
  readonly actionType: string; // 1 to 200 characters
  readonly preState?: object; // how things are now, to be restored by whoever rolls back; at most 64 KiB; left out: {}
  readonly value?: MicroUSD; // to be held; needs a session
  readonly expiresInSeconds?: number; // after which the hold is released, up to 30 days; left out: 5 minutes
  readonly reversible?: boolean; // false: once committed, it cannot be rolled back; left out: true
  readonly metadata?: object; // at most 16 KiB
}

/** How a transaction came out. Empty: what is held was spent. */
export interface CommitParams {
  /**
   * What was really spent. Of less than is held the rest is released. Of more the excess is charged as far as the session
   * allows; TransactionInfo.overage is what did not fit.
   */
  readonly value?: MicroUSD;
  readonly postState?: object; // how things are now; at most 64 KiB
}

/** Changes of a pending transaction. What is left out stays. */
export interface TransactionChanges {
  readonly value?: MicroUSD; // to be held from now on
  readonly expiresInSeconds?: number; // from now
}

/**
 * A transaction as the service shows it. Lists leave out preState, postState and metadata. The service keeps their numbers as
 * they were sent, but here they are a JavaScript number's: 9007199254740993 comes as 9007199254740992. Write such a one as a
 * string.
 */
export interface TransactionInfo {
  readonly id: string;
  readonly agentId: string;
  readonly sessionId: string | undefined;
  readonly sequenceNumber: number | undefined; // in its session, from 1, without gaps
  readonly status: string; // pending, committed, rolled_back or expired
  readonly actionType: string;
  readonly preState: JSONObject | undefined;
  readonly postState: JSONObject | undefined;
  readonly value: MicroUSD; // what it was begun with; once committed, what was charged
  readonly valueHeld: MicroUSD; // while it is pending
  readonly overage: MicroUSD; // spent beyond the session's limit
  readonly late: boolean; // committed after it had expired
  readonly reversible: boolean;
  readonly reason: string | undefined; // of the rollback
  readonly metadata: JSONObject | undefined;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly committedAt: Date | undefined;
  readonly rolledBackAt: Date | undefined;
}

/** Narrows a list of transactions. */
export interface TransactionFilter {
  readonly status?: "pending" | "committed" | "rolled_back" | "expired";
  readonly sessionId?: string;
  readonly agentId?: string;
}

export function listTransactions(caller: Caller, filter: TransactionFilter, signal: AbortSignal | undefined) {
  const { status, sessionId, agentId } = known("a filter of transactions", filter, { status: true, sessionId: true, agentId: true });
  const parameters = { status, session_id: sessionId, agent_id: agentId };
  return list(caller, "/v1/transactions", parameters, transactionFrom, signal);
}

export function transactionFrom(value: unknown): TransactionInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    agentId: text(answer, "agent_id"),
    sessionId: maybe(answer, "session_id", text),
    sequenceNumber: maybe(answer, "sequence_number", whole),
    status: text(answer, "status"),
    actionType: text(answer, "action_type"),
    preState: maybe(answer, "pre_state", own),
    postState: maybe(answer, "post_state", own),
    value: amount(answer, "value_usd"),
    valueHeld: amount(answer, "value_held_usd"),
    overage: amount(answer, "overage_usd"),
    late: maybe(answer, "late", flag) ?? false,
    reversible: flag(answer, "reversible"),
    reason: maybe(answer, "reason", text),
    metadata: maybe(answer, "metadata", own),
    expiresAt: time(answer, "expires_at"),
    createdAt: time(answer, "created_at"),
    committedAt: maybe(answer, "committed_at", time),
    rolledBackAt: maybe(answer, "rolled_back_at", time),
  };
}
