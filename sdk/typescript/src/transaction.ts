/// <reference lib="esnext.disposable" preserve="true" />
import { bounded } from "./abort.js";
import { keyed, type Call, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { OutcomeUnknown, TransactionDone, TransactionNotPending, TransactionNotReversible } from "./errors.js";
import { write } from "./json.js";
import { transactionPath } from "./paths.js";
import { seconds } from "./seconds.js";
import { transactionFrom, type CommitParams, type TransactionInfo, type TransactionParams } from "./transactions.js";

// A rollback does not end with the signal of the work that it undoes, but after so many milliseconds.
const rollbackLimit = 10_000;
const notFinished = "not finished";

/**
 * An action with a prior state, to be settled by `commit` or `rollback`.
 *
 * ```ts
 * await using tx = await session.begin({ actionType: "payment", preState: before, value: price });
 * // … act …
 * await tx.commit({ postState: after });
 * ```
 *
 * Begin, commit and rollback are each done once however often they are sent. A transaction that nobody settles expires, and
 * its hold is released.
 */
export class Transaction implements AsyncDisposable {
  readonly id: string;
  readonly #caller: Caller;
  #info: TransactionInfo | undefined;
  #done = false; // settled, or being settled, or committed for all we know

  /** @internal */
  constructor(caller: Caller, id: string, info?: TransactionInfo) {
    this.#caller = caller;
    this.id = id;
    this.#info = info;
  }

  /** What the service said of the transaction last; undefined: nothing yet. Nothing is sent. */
  get info(): TransactionInfo | undefined {
    return this.#info;
  }

  /** Reads the transaction, which is then its info. */
  async get(options: CallOptions = {}): Promise<TransactionInfo> {
    const path = transactionPath(this.id);
    return this.#ask({ method: "GET", path, effect: "reads", read: transactionFrom }, options.signal);
  }

  /**
   * Settles the transaction as done. After success, and after OutcomeUnknown, it is done with: the rollback at the end of
   * its scope then does nothing, for what has happened must not be taken out of the books by accident. To settle a commit
   * in doubt, call `get` or `reverse`. After any other error it is pending still, unless that is TransactionNotPending.
   */
  async commit(params: CommitParams = {}, options: WriteOptions = {}): Promise<TransactionInfo> {
    const path = `${transactionPath(this.id)}/commit`;
    const body = write({ value_usd: params.value, post_state: params.postState });
    const call = keyed(this.#caller.service, path, body, options, transactionFrom);
    return this.#settle("commit", () => this.#ask(call, options.signal));
  }

  /**
   * Settles the transaction as not done and releases its hold; the answer has the prior state to restore. The action stays
   * counted. After a commit or rollback it is TransactionDone, and nothing is sent.
   *
   * It takes 10 seconds at most. An agent needs the scope transactions:rollback, or admin, else it is InsufficientScope and
   * the hold lasts until it expires.
   */
  async rollback(reason?: string): Promise<TransactionInfo> {
    return this.#settle("rollback", () => this.#rollBack(reason));
  }

  /**
   * Rolls the transaction back even if it is committed, which `rollback` does not; the value is given back to the session.
   * Errors are those of `rollback`, and TransactionNotReversible.
   */
  async reverse(reason?: string): Promise<TransactionInfo> {
    const info = await this.#rollBack(reason);
    this.#done = true;
    return info;
  }

  /** Rolls back what is neither committed nor rolled back: the end of `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#done) {
      await this.rollback(notFinished);
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

export async function begin(
  caller: Caller,
  session: string | undefined,
  params: TransactionParams,
  options: WriteOptions,
): Promise<Transaction> {
  const body = write({
    action_type: params.actionType,
    pre_state: params.preState,
    session_id: session,
    value_usd: params.value,
    expires_in_seconds: seconds(params.expiresInSeconds),
    reversible: params.irreversible !== true,
    metadata: params.metadata,
  });
  const call = keyed(caller.service, "/v1/transactions", body, options, transactionFrom);
  const info = await caller.do(call, options.signal);
  return new Transaction(caller, info.id, info);
}

/** Works in a transaction, and rolls it back when the work ends without having settled it. */
export async function within<T>(transaction: Transaction, work: (transaction: Transaction) => Promise<T>): Promise<T> {
  let result: T;
  try {
    result = await work(transaction);
  } catch (error) {
    await transaction[Symbol.asyncDispose]().catch(() => {}); // why the work failed says more; the hold expires
    throw error;
  }
  await transaction[Symbol.asyncDispose]();
  return result;
}
