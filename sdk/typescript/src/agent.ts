import { signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeMany, type Result, type SessionCharge } from "./charges.js";
import { Client } from "./client.js";
import { ownEnvironment, required, type Environment } from "./environment.js";
import { events, type Event, type EventOptions } from "./events.js";
import { Session } from "./session.js";
import { listSessions, type SessionFilter, type SessionSummary } from "./sessions.js";
import type { Tokens } from "./tokens.js";
import { beginOrWork, Transaction, type Work } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo, type TransactionParams } from "./transactions.js";

/**
 * Calls the service as one agent, with tokens that it gets, keeps and renews by itself. It should live as long as the
 * process: each new Agent exchanges the secret anew.
 */
export class Agent {
  readonly id: string;
  readonly #caller: Caller;
  readonly #tokens: Tokens;

  /** @internal */
  constructor(id: string, caller: Caller, tokens: Tokens) {
    this.id = id;
    this.#caller = caller;
    this.#tokens = tokens;
  }

  /** The agent whose id and secret are in REMIT_AGENT and REMIT_SECRET, at the service of `Client.fromEnv`. */
  static fromEnv(environment: Environment = ownEnvironment()): Agent {
    const [id, secret] = required(environment, "REMIT_AGENT", "REMIT_SECRET") as [string, string];
    return Client.fromEnv({}, environment).agent(id, secret);
  }

  /**
   * An access token for calls that this package does not make, such as those through a gateway. It is valid for a while yet;
   * ask again before each use instead of keeping it.
   */
  async token(options: CallOptions = {}): Promise<string> {
    return this.#tokens.get("", signalOf(options));
  }

  /** Replaces the access token now, however long it would live. The one before stays valid until it expires. */
  async refresh(options: CallOptions = {}): Promise<void> {
    await this.#tokens.renew(signalOf(options));
  }

  /** The agent's session with this id. Nothing is sent. */
  session(id: string): Session {
    return new Session(this.#caller, id);
  }

  /** The agent's sessions, newest first. The filter's agentId is not needed. */
  sessions(filter: SessionFilter = {}, options: CallOptions = {}): AsyncGenerator<SessionSummary, void, undefined> {
    return listSessions(this.#caller, filter, signalOf(options));
  }

  /**
   * Makes up to 500 charges in one request, each all or nothing, and returns their results in the same order. It throws when
   * there are no results, and not when all of them are refusals.
   */
  async chargeMany(charges: readonly SessionCharge[], options: WriteOptions = {}): Promise<Result[]> {
    return chargeMany(this.#caller, charges, options);
  }

  /**
   * Begins a transaction without a session: it keeps a prior state and a decision, and holds no value. Given work to do, it
   * is as that of `Session.begin`.
   */
  async begin<T>(params: Omit<TransactionParams, "value">, work: Work<T>, options?: WriteOptions): Promise<T>;
  async begin(params: Omit<TransactionParams, "value">, options?: WriteOptions): Promise<Transaction>;
  async begin<T>(params: TransactionParams, first?: WriteOptions | Work<T>, second?: WriteOptions): Promise<Transaction | T> {
    return beginOrWork(this.#caller, undefined, params, first, second);
  }

  /** The agent's transaction with this id, in whatever state it is. Nothing is sent. */
  transaction(id: string): Transaction {
    return new Transaction(this.#caller, id);
  }

  /** The agent's transactions, newest first, without their states and metadata. */
  transactions(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    return listTransactions(this.#caller, filter, signalOf(options));
  }

  /**
   * The agent's audit trail, oldest first. At the end of the trail it waits for what comes next. It ends with the signal, or
   * with the first error that retries did not mend; to go on, call it again with the id of the last event.
   */
  events(options: EventOptions = {}): AsyncGenerator<Event, void, undefined> {
    return events(this.#caller, this.id, options);
  }
}
