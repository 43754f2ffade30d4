/// <reference lib="esnext.disposable" preserve="true" />
import { bounded } from "./abort.js";
import { Asking } from "./ask.js";
import { keyed, signalOf, type Call, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { OutcomeUnknown, TransactionDone, TransactionNotPending, TransactionNotReversible } from "./errors.js";
import { maybe, object, text, write } from "./json.js";
import { known, type Names } from "./options.js";
import { transactionPath } from "./paths.js";
import { seconds } from "./seconds.js";
import {
  transactionFrom, type CommitParams, type TransactionChanges, type TransactionInfo, type TransactionParams,
} from "./transactions.js";

// Milliseconds for a rollback. It ignores the signal of the work that it undoes.
const rollbackLimit = 10_000;
const notFinished = "not finished";

/**
 * An action with a prior state. It ends with `commit` or `rollback`.
 *
 * ```ts
 * await session.begin({ actionType: "payment", preState: before, value: price }, async (tx) => {
 *   // … act …
 *   await tx.commit({ value: spent, postState: after }); // without it, the held value is committed
 * });
 * ```
 *
 * With `await using tx = await session.begin(…)`, commit it explicitly: the end of the scope rolls back a pending transaction,
 * because it cannot know whether an error left the scope.
 *
 * Begin, commit and rollback are idempotent. A transaction that is neither committed nor rolled back expires, and its hold is
 * released.
 */
export class Transaction implements AsyncDisposable {
  readonly id: string;
  readonly #caller: Caller;
  #info: TransactionInfo | undefined;
  #givenUp: string | undefined; // the reason of the last rollback that failed
  #done = false; // committed or rolled back, in progress, or a commit with an unknown outcome

  /** @internal */
  constructor(caller: Caller, id: string, info?: TransactionInfo) {
    this.#caller = caller;
    this.id = id;
    this.#info = info;
  }

  /** The state in the service's last response; undefined before the first one. Sends nothing. */
  get info(): TransactionInfo | undefined {
    return this.#info;
  }

  /** Gets the transaction, and updates info. */
  async get(options: CallOptions = {}): Promise<TransactionInfo> {
    const path = transactionPath(this.id);
    return this.#ask({ method: "GET", path, semantics: "safe", read: transactionFrom }, signalOf(options));
  }

  /**
   * Commits the transaction. After success and after OutcomeUnknown, the end of its scope does nothing, because an action that
   * has happened must stay accounted for. To resolve an unknown outcome, call `get` or `reverse`. After any other error except
   * TransactionNotPending, the transaction is still pending.
   *
   * A commit after the transaction has expired still succeeds, and late is then true: spending must be accounted for.
   */
  async commit(params: CommitParams = {}, options: WriteOptions = {}): Promise<TransactionInfo> {
    const { value, postState } = known("a commit", params, { value: true, postState: true });
    const path = `${transactionPath(this.id)}/commit`;
    const body = write({ value_usd: value, post_state: postState });
    const call = keyed(this.#caller.service, path, body, options, transactionFrom);
    this.#givenUp = undefined;
    return this.#settle("commit", () => this.#ask(call, options.signal));
  }

  /**
   * Rolls back the transaction and releases its hold. The result has the prior state to restore. The action stays counted. After
   * a commit or rollback it throws TransactionDone and sends nothing. It takes at most 10 seconds. An agent may always release
   * its own hold.
   */
  async rollback(reason?: string): Promise<TransactionInfo> {
    this.#givenUp = reason ?? "";
    return this.#settle("rollback", () => this.#rollBack(reason));
  }

  /**
   * Rolls back the transaction even if it is committed, and refunds the value to the session. An agent needs the scope
   * transactions:rollback or admin for that, in its token and its session; otherwise it throws InsufficientScope. It also throws
   * the errors of `rollback`, and TransactionNotReversible.
   */
  async reverse(reason?: string): Promise<TransactionInfo> {
    this.#givenUp = reason ?? "";
    const info = await this.#rollBack(reason);
    this.#done = true;
    return info;
  }

  /**
   * Changes the hold or the expiry of a pending transaction. Throws LimitReached if the new hold does not fit, and
   * TransactionNotPending if the transaction is not pending. Then nothing changes.
   */
  async update(changes: TransactionChanges, options: CallOptions = {}): Promise<TransactionInfo> {
    const { value, expiresInSeconds } = known("a change of a transaction", changes, { value: true, expiresInSeconds: true });
    const body = write({ value_usd: value, expires_in_seconds: seconds(expiresInSeconds) });
    const path = transactionPath(this.id);
    return this.#ask({ method: "PATCH", path, body, semantics: "idempotent", read: transactionFrom }, signalOf(options));
  }

  /** Rolls back unless the transaction is committed or rolled back. `await using` calls it. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#done) {
      await this.rollback(this.#givenUp || notFinished);
    }
  }

  /** @internal Ends the transaction after work that ended normally without a commit or rollback. */
  async finish(): Promise<void> {
    if (this.#givenUp !== undefined) {
      await this[Symbol.asyncDispose]().catch(() => {}); // the work has already seen the error; the hold expires
    } else if (!this.#done) {
      await this.commit();
    }
  }

  async #settle(how: "commit" | "rollback", ask: () => Promise<TransactionInfo>): Promise<TransactionInfo> {
    if (this.#done) {
      const detail = "the transaction is committed or rolled back already";
      throw new TransactionDone(`${how} of transaction ${this.id}`, { status: 0, detail });
    }
    this.#done = true;
    try {
      return await ask();
    } catch (error) {
      const settled = error instanceof TransactionNotPending || error instanceof TransactionNotReversible;
      this.#done = settled || (how === "commit" && error instanceof OutcomeUnknown);
      throw error;
    }
  }

  #rollBack(reason: string | undefined): Promise<TransactionInfo> {
    const path = `${transactionPath(this.id)}/rollback`;
    const call = keyed(this.#caller.service, path, write({ reason }), {}, transactionFrom);
    return bounded(undefined, rollbackLimit, (signal) => this.#ask(call, signal));
  }

  async #ask(call: Call<TransactionInfo>, signal: AbortSignal | undefined): Promise<TransactionInfo> {
    this.#info = await this.#caller.do(call, signal);
    return this.#info;
  }
}

/** The work in a transaction. */
export type Work<T> = (transaction: Transaction) => Promise<T>;

const paramNames: Names<TransactionParams> = {
  actionType: true, preState: true, value: true, expiresInSeconds: true, reversible: true, onExpiry: true, metadata: true, onLimit: true, reason: true,
};

export async function beginOrWork<T>(
  caller: Caller,
  session: string | undefined,
  params: TransactionParams,
  first: WriteOptions | Work<T> = {}, // if it is the work, second has the options
  second: WriteOptions = {},
): Promise<Transaction | T> {
  if (typeof first !== "function") {
    return begin(caller, session, params, first);
  }
  return within(await begin(caller, session, params, second), first);
}

async function begin(
  caller: Caller,
  session: string | undefined,
  params: TransactionParams,
  options: WriteOptions,
): Promise<Transaction> {
  const { onLimit, reason } = params;
  const body = write(beginBody(session, params));
  const once = (write: WriteOptions) => caller.do(keyed(caller.service, place, body, write, transactionFrom), write.signal);
  const asks = onLimit !== undefined && session !== undefined;
  const need = { actions: 1, value: params.value ?? 0n };
  const info = await (asks ? new Asking(caller, session, need, { onLimit, reason }).charge(options, once) : once(options));
  return new Transaction(caller, info.id, info);
}

const place = "/v1/transactions";

function beginBody(session: string | undefined, params: TransactionParams) {
  const { actionType, preState = {}, value, expiresInSeconds, reversible, onExpiry, metadata } = known("a transaction", params, paramNames);
  return {
    action_type: actionType,
    pre_state: preState, // always sent, because older services require it
    session_id: session,
    value_usd: value,
    expires_in_seconds: seconds(expiresInSeconds),
    reversible,
    on_expiry: onExpiry,
    metadata,
  };
}

/** Asks whether a transaction would begin now, and begins none. */
export function dryRunBegin(session: string, params: TransactionParams): Call<DryRun> {
  const body = write({ ...beginBody(session, params), dry_run: true });
  const read = (answer: unknown) => ({ wouldRefuse: maybe(object(answer), "would_refuse", text) });
  return { method: "POST", path: place, body, semantics: "safe", read };
}

/** What a transaction that was only tried would have met. */
export interface DryRun {
  /** The limit that would have refused it, if the session did not only observe its limits. */
  readonly wouldRefuse: string | undefined;
}

// within runs work in a transaction, and ends the transaction if the work has not.
async function within<T>(transaction: Transaction, work: Work<T>): Promise<T> {
  let result: T;
  try {
    result = await work(transaction);
  } catch (error) {
    await transaction[Symbol.asyncDispose]().catch(() => {}); // the work's error matters more; the hold expires
    throw error;
  }
  await transaction.finish();
  return result;
}
