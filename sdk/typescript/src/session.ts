import { Agent } from "./agent.js";
import { keyed, signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeBody, chargeMany, type Charge, type Result } from "./charges.js";
import { ownEnvironment, required, type Environment } from "./environment.js";
import { write } from "./json.js";
import { sessionPath } from "./paths.js";
import { endSession, getSession, type SessionInfo } from "./sessions.js";
import { beginOrWork, type Transaction, type Work } from "./transaction.js";
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

  /** The session whose id is in REMIT_SESSION, of the agent of `Agent.fromEnv`. */
  static fromEnv(environment: Environment = ownEnvironment()): Session {
    const [, , id] = required(environment, "REMIT_AGENT", "REMIT_SECRET", "REMIT_SESSION") as [string, string, string];
    return Agent.fromEnv(environment).session(id);
  }

  /**
   * Charges an action to the session, before it is taken, and returns what is used and remains then. It is all or nothing:
   * LimitReached, SessionNotActive and InsufficientScope charged nothing.
   */
  async charge(charge: Charge = {}, options: WriteOptions = {}): Promise<Usage> {
    const path = `${sessionPath(this.id)}/actions`;
    const call = keyed(this.#caller.service, path, write(chargeBody(charge)), options, usageFrom);
    return this.#caller.do(call, options.signal);
  }

  /** Makes up to 500 charges to this session in one request, each all or nothing; see `Agent.chargeMany`. */
  async chargeMany(charges: readonly Charge[], options: WriteOptions = {}): Promise<Result[]> {
    const here = charges.map((charge) => ({ ...charge, sessionId: this.id }));
    return chargeMany(this.#caller, here, options);
  }

  /**
   * Begins a transaction: it counts one action and holds the value until it is committed, rolled back or expires. Errors are
   * those of `charge`. After OutcomeUnknown there is nothing to settle: what it may hold is released when it expires.
   *
   * Given work to do, it begins a transaction, works in it and returns what the work returns. When the work ends normally and
   * has settled nothing, what is held is committed: what has happened must not leave the books by accident. When it fails,
   * the transaction is rolled back and the work's error is thrown, whatever becomes of the rollback. Work that asked for a
   * rollback which failed is not committed: the rollback is asked for once more.
   */
  async begin<T>(params: TransactionParams, work: Work<T>, options?: WriteOptions): Promise<T>;
  async begin(params: TransactionParams, options?: WriteOptions): Promise<Transaction>;
  async begin<T>(params: TransactionParams, first?: WriteOptions | Work<T>, second?: WriteOptions): Promise<Transaction | T> {
    return beginOrWork(this.#caller, this.id, params, first, second);
  }

  /** Reads the session. */
  async get(options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(this.id), signalOf(options));
  }

  /**
   * Ends the session and rolls its pending transactions back. To end it again changes nothing; of one that has expired or
   * was revoked, SessionNotActive tells.
   */
  async end(options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(this.id), signalOf(options));
  }
}
