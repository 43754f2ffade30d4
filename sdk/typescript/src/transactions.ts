import type { OnLimit } from "./ask.js";
import type { Caller } from "./call.js";
import { amount, flag, maybe, object, own, text, time, whole, type JSONObject } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known } from "./options.js";
import { list } from "./pages.js";

/** A new transaction. The limits that onLimit asks for are those of its session. */
export interface TransactionParams extends OnLimit {
  readonly actionType: string; // 1 to 200 characters
  readonly preState?: object; // the state to restore after a rollback; at most 64 KiB; the default is {}
  readonly value?: MicroUSD; // the value to hold; needs a session
  readonly expiresInSeconds?: number; // when the hold is released, up to 30 days; the default is 5 minutes
  readonly reversible?: boolean; // false: it cannot be rolled back after the commit; the default is true
  readonly onExpiry?: "release" | "commit"; // commit: the hold is spent when it expires, also after its session has ended; the default is release
  readonly metadata?: object; // at most 16 KiB
}

/** The outcome of a transaction. Without value, the held value was spent. */
export interface CommitParams {
  /**
   * What was spent. If it is below the hold, the rest is released. If it is above, the session is charged up to its limit, and
   * TransactionInfo.overage is the remainder.
   */
  readonly value?: MicroUSD;
  readonly postState?: object; // the state after the action; at most 64 KiB
}

/** Changes of a pending transaction. Omitted members stay. */
export interface TransactionChanges {
  readonly value?: MicroUSD; // the value to hold from now on
  readonly expiresInSeconds?: number; // from now
}

/**
 * A transaction as the service shows it. Lists omit preState, postState and metadata. The service keeps the numbers in them
 * exactly, but JavaScript rounds them: 9007199254740993 becomes 9007199254740992. Use a string for such numbers.
 */
export interface TransactionInfo {
  readonly id: string;
  readonly agentId: string;
  readonly sessionId: string | undefined;
  readonly sequenceNumber: number | undefined; // numbers the transactions of a session from 1, without gaps
  readonly status: string; // pending, committed, rolled_back or expired
  readonly actionType: string;
  readonly preState: JSONObject | undefined;
  readonly postState: JSONObject | undefined;
  readonly value: MicroUSD; // the value it was begun with; once committed, the value that was charged
  readonly valueHeld: MicroUSD; // what the session holds for it while it is pending
  readonly overage: MicroUSD; // spent beyond the session's limit
  readonly late: boolean; // whether it was committed after it had expired
  readonly reversible: boolean;
  readonly onExpiry: string | undefined; // commit: its hold is spent when it expires
  readonly heldBy: string | undefined; // gateway: the metering gateway settles it, and no agent does
  readonly settledBy: string | undefined; // expiry: it is committed because its hold was spent; a commit may still correct it
  readonly reason: string | undefined; // the reason of the rollback
  readonly metadata: JSONObject | undefined;
  readonly expiresAt: Date;
  readonly createdAt: Date;
  readonly wouldRefuse: string | undefined; // at its begin, the limit of a session that only observes its limits
  readonly committedAt: Date | undefined;
  readonly rolledBackAt: Date | undefined;
}

/** Filters a list of transactions. */
export interface TransactionFilter {
  readonly status?: "pending" | "committed" | "rolled_back" | "expired";
  readonly sessionId?: string;
  readonly agentId?: string;
  readonly settledBy?: "expiry"; // those whose hold was spent because it expired
}

export function listTransactions(caller: Caller, filter: TransactionFilter, signal: AbortSignal | undefined) {
  const names = { status: true, sessionId: true, agentId: true, settledBy: true } as const;
  const { status, sessionId, agentId, settledBy } = known("a filter of transactions", filter, names);
  const parameters = { status, session_id: sessionId, agent_id: agentId, settled_by: settledBy };
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
    onExpiry: maybe(answer, "on_expiry", text),
    heldBy: maybe(answer, "held_by", text),
    settledBy: maybe(answer, "settled_by", text),
    reason: maybe(answer, "reason", text),
    metadata: maybe(answer, "metadata", own),
    expiresAt: time(answer, "expires_at"),
    createdAt: time(answer, "created_at"),
    wouldRefuse: maybe(answer, "would_refuse", text),
    committedAt: maybe(answer, "committed_at", time),
    rolledBackAt: maybe(answer, "rolled_back_at", time),
  };
}
