import { actionBody, doMany, type Action, type Result } from "./actions.js";
import { keyed, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { write } from "./json.js";
import { sessionPath } from "./paths.js";
import { endSession, getSession, type SessionInfo } from "./sessions.js";
import { begin, within, type Transaction } from "./transaction.js";
import type { TransactionParams } from "./transactions.js";
import { usageFrom, type Usage } from "./usage.js";

/** A budget that an agent acts within. `Agent.session` makes one. */
export class Session {
  readonly id: string;
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller, id: string) {
    this.#caller = caller;
    this.id = id;
  }

  /**
   * Charges an action to the session, before it is taken, and returns what is used and remains then. It is all or nothing:
   * LimitReached, SessionNotActive and InsufficientScope charged nothing.
   */
  async do(action: Action = {}, options: WriteOptions = {}): Promise<Usage> {
    const path = `${sessionPath(this.id)}/actions`;
    const call = keyed(this.#caller.service, path, write(actionBody(action)), options, usageFrom);
    return this.#caller.do(call, options.signal);
  }

  /** Does up to 500 actions in one request, each all or nothing, and returns their results in the same order. */
  async doMany(actions: readonly Action[], options: WriteOptions = {}): Promise<Result[]> {
    const here = actions.map((action) => ({ ...action, sessionId: this.id }));
    return doMany(this.#caller, here, options);
  }

  /**
   * Begins a transaction: it counts one action and holds the value until it is committed, rolled back or expires. Errors are
   * those of `do`. After OutcomeUnknown there is nothing to settle: what it may hold is released when it expires.
   */
  async begin(params: TransactionParams, options: WriteOptions = {}): Promise<Transaction> {
    return begin(this.#caller, this.id, params, options);
  }

  /**
   * Begins a transaction, works in it and returns what the work returns. Whatever the work has not committed is rolled back
   * when it ends, in either way. If both the work and the rollback fail, the work's error is thrown.
   */
  async transaction<T>(
    params: TransactionParams,
    work: (transaction: Transaction) => Promise<T>,
    options: WriteOptions = {},
  ): Promise<T> {
    return within(await this.begin(params, options), work);
  }

  /** Reads the session. */
  async get(options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(this.id), options.signal);
  }

  /**
   * Ends the session and rolls its pending transactions back. To end it again changes nothing; of one that has expired or
   * was revoked, SessionNotActive tells.
   */
  async end(options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(this.id), options.signal);
  }
}
