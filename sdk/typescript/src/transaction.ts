/// <reference lib="esnext.disposable" preserve="true" />
import { bounded } from "./abort.js";
import { keyed, signalOf, type Call, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { OutcomeUnknown, TransactionDone, TransactionNotPending, TransactionNotReversible } from "./errors.js";
import { write } from "./json.js";
import { known, type Names } from "./options.js";
import { transactionPath } from "./paths.js";
import { seconds } from "./seconds.js";
import {
  transactionFrom, type CommitParams, type TransactionChanges, type TransactionInfo, type TransactionParams,
} from "./transactions.js";

// A rollback does not end with the signal of the work that it undoes, but after so many milliseconds.
const rollbackLimit = 10_000;
const notFinished = "not finished";

/**
 * An action with a prior state, to be settled by `commit` or `rollback`.
 *
 * ```ts
 * await session.begin({ actionType: "payment", preState: before, value: price }, async (tx) => {
 *   // … act …
 *   await tx.commit({ value: spent, postState: after }); // left out: what is held is committed
 * });
 * ```
 *
 * With `await using tx = await session.begin(…)` it has to be committed: what the scope has not settled is rolled back at its
 * end, for the end of a scope does not know whether it was left by an error.
 *
 * Begin, commit and rollback are each done once however often they are sent. A transaction that nobody settles expires, and
 * its hold is released.
 */
export class Transaction implements AsyncDisposable {
  readonly id: string;
  readonly #caller: Caller;
  #info: TransactionInfo | undefined;
  #givenUp: string | undefined; // the reason of the rollback that was asked for last, of those that failed
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
    return this.#ask({ method: "GET", path, semantics: "safe", read: transactionFrom }, signalOf(options));
  }

  /**
   * Settles the transaction as done. After success, and after OutcomeUnknown, it is done with: the rollback at the end of
   * its scope then does nothing, for what has happened must not be taken out of the books by accident. To settle a commit
   * in doubt, call `get` or `reverse`. After any other error it is pending still, unless that is TransactionNotPending.
   *
   * A commit that comes after the transaction has expired is still taken, and its answer is late: what was spent must not be
   * missing from the books.
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
   * Settles the transaction as not done and releases its hold; the answer has the prior state to restore. The action stays
   * counted. After a commit or rollback it is TransactionDone, and nothing is sent. It takes 10 seconds at most. An agent may
   * always give back its own hold.
   */
  async rollback(reason?: string): Promise<TransactionInfo> {
    this.#givenUp = reason ?? "";
    return this.#settle("rollback", () => this.#rollBack(reason));
  }

  /**
   * Rolls the transaction back even if it is committed, which `rollback` does not; the value is given back to the session.
   * For that an agent needs the scope transactions:rollback, or admin, in its token and its session, else it is
   * InsufficientScope. Further errors are those of `rollback`, and TransactionNotReversible.
   */
  async reverse(reason?: string): Promise<TransactionInfo> {
    this.#givenUp = reason ?? "";
    const info = await this.#rollBack(reason);
    this.#done = true;
    return info;
  }

  /**
   * Changes a pending transaction: it raises or lowers what is held, or gives it more time. What does not fit is LimitReached
   * and changes nothing; of one that is not pending, TransactionNotPending tells.
   */
  async update(changes: TransactionChanges, options: CallOptions = {}): Promise<TransactionInfo> {
    const { value, expiresInSeconds } = known("a change of a transaction", changes, { value: true, expiresInSeconds: true });
    const body = write({ value_usd: value, expires_in_seconds: seconds(expiresInSeconds) });
    const path = transactionPath(this.id);
    return this.#ask({ method: "PATCH", path, body, semantics: "idempotent", read: transactionFrom }, signalOf(options));
  }

  /** Rolls back what is neither committed nor rolled back: the end of `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#done) {
      await this.rollback(this.#givenUp || notFinished);
    }
  }

  /** @internal Settles what the work, which ended normally, has left open. */
  async finish(): Promise<void> {
    if (this.#givenUp !== undefined) {
      await this[Symbol.asyncDispose]().catch(() => {}); // the work has seen why; the hold expires
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

/** What is done in a transaction. */
export type Work<T> = (transaction: Transaction) => Promise<T>;

const paramNames: Names<TransactionParams> = {
  actionType: true, preState: true, value: true, expiresInSeconds: true, reversible: true, metadata: true,
};

export async function beginOrWork<T>(
  caller: Caller,
  session: string | undefined,
  params: TransactionParams,
  first: WriteOptions | Work<T> = {}, // work is followed by the options
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
  const { actionType, preState = {}, value, expiresInSeconds, reversible, metadata } = known("a transaction", params, paramNames);
  const body = write({
    action_type: actionType,
    pre_state: preState, // sent also when there is none, as services before this SDK's required it
    session_id: session,
    value_usd: value,
    expires_in_seconds: seconds(expiresInSeconds),
    reversible,
    metadata,
  });
  const call = keyed(caller.service, "/v1/transactions", body, options, transactionFrom);
  const info = await caller.do(call, options.signal);
  return new Transaction(caller, info.id, info);
}

// within works in a transaction, and settles it when the work has not.
async function within<T>(transaction: Transaction, work: Work<T>): Promise<T> {
  let result: T;
  try {
    result = await work(transaction);
  } catch (error) {
    await transaction[Symbol.asyncDispose]().catch(() => {}); // why the work failed says more; the hold expires
    throw error;
  }
  await transaction.finish();
  return result;
}
