import { signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeMany, type Result, type SessionCharge } from "./charges.js";
import { agentCallers, serviceFromEnv, type AgentCallers } from "./connect.js";
import { delegate, type DelegatedToken, type DelegateParams } from "./delegation.js";
import { agentFrom, ownEnvironment, type Environment } from "./environment.js";
import { events, type Event, type EventOptions } from "./events.js";
import { Session } from "./session.js";
import { listSessions, type SessionFilter, type SessionSummary } from "./sessions.js";
import { beginOrWork, Transaction, type Work } from "./transaction.js";
import { listTransactions, type TransactionFilter, type TransactionInfo, type TransactionParams } from "./transactions.js";

/**
 * Calls the service as one agent. It gets, caches and renews its tokens. Keep one Agent for the lifetime of the process,
 * because each new Agent presents its credential again.
 */
export class Agent {
  readonly id: string;
  readonly #caller: Caller;
  readonly #callers: AgentCallers;

  /** @internal */
  constructor(id: string, callers: AgentCallers) {
    this.id = id;
    this.#caller = callers.caller;
    this.#callers = callers;
  }

  /**
   * Returns the agent whose id is in REMIT_AGENT, at the service of `Client.fromEnv`. Its credential is in REMIT_SECRET, or in the
   * file that REMIT_KEY_FILE or REMIT_ASSERTION_FILE names. REMIT_RESOURCE and REMIT_DPOP are optional.
   */
  static fromEnv(environment: Environment = ownEnvironment()): Agent {
    const { id, settings } = agentFrom(environment);
    return new Agent(id, agentCallers(serviceFromEnv(environment), id, settings));
  }

  /**
   * Returns an access token for your own HTTP calls, such as those through a proxy. It stays valid for a while. Call token
   * again before each use instead of storing the token.
   */
  async token(options: CallOptions = {}): Promise<string> {
    return this.#callers.tokens.get("", signalOf(options));
  }

  /**
   * Returns the headers of one request to another server, such as one behind a proxy: Authorization with the access token, and
   * with the option `dpop` also a proof, which is good for this request alone.
   */
  async prove(method: string, url: string | URL, options: CallOptions = {}): Promise<Record<string, string>> {
    return this.#caller.headersElsewhere(method, new URL(url), await this.token(options));
  }

  /** Replaces the access token now. The previous one stays valid until it expires. */
  async refresh(options: CallOptions = {}): Promise<void> {
    await this.#callers.tokens.renew(signalOf(options));
  }

  /**
   * Returns a token for the agent of a child session of one of this agent's sessions. It is good for that session only, with at
   * most the scopes and the lifetime of this agent's own token, and ends with the session.
   */
  async delegate(childSessionId: string, params: DelegateParams = {}, options: CallOptions = {}): Promise<DelegatedToken> {
    return delegate(this.#callers.issuer, this.#callers.tokens, childSessionId, params, signalOf(options));
  }

  /** Returns the agent's session with this id. Sends nothing. */
  session(id: string): Session {
    return new Session(this.#caller, this.id, id);
  }

  /** Yields the agent's sessions, newest first. The filter needs no agentId. */
  sessions(filter: SessionFilter = {}, options: CallOptions = {}): AsyncGenerator<SessionSummary, void, undefined> {
    return listSessions(this.#caller, filter, signalOf(options));
  }

  /**
   * Sends up to 500 charges in one request and returns their results in the same order. Each charge succeeds or fails on its
   * own. chargeMany throws only if there are no results, not if all charges fail.
   */
  async chargeMany(charges: readonly SessionCharge[], options: WriteOptions = {}): Promise<Result[]> {
    return chargeMany(this.#caller, charges, options);
  }

  /**
   * Begins a transaction without a session. It records the state before an action and the outcome, and holds no value. With
   * work, it behaves like `Session.begin`.
   */
  async begin<T>(params: Omit<TransactionParams, "value">, work: Work<T>, options?: WriteOptions): Promise<T>;
  async begin(params: Omit<TransactionParams, "value">, options?: WriteOptions): Promise<Transaction>;
  async begin<T>(params: TransactionParams, first?: WriteOptions | Work<T>, second?: WriteOptions): Promise<Transaction | T> {
    return beginOrWork(this.#caller, undefined, params, first, second);
  }

  /** Returns the agent's transaction with this id, in any state. Sends nothing. */
  transaction(id: string): Transaction {
    return new Transaction(this.#caller, id);
  }

  /** Yields the agent's transactions, newest first, without preState, postState and metadata. */
  transactions(filter: TransactionFilter = {}, options: CallOptions = {}): AsyncGenerator<TransactionInfo, void, undefined> {
    return listTransactions(this.#caller, filter, signalOf(options));
  }

  /**
   * Yields the agent's audit trail, oldest first. At the end of the trail it waits for new events. It ends with the signal, or
   * with the first error that retries do not resolve; to resume, call it again with the id of the last event.
   */
  events(options: EventOptions = {}): AsyncGenerator<Event, void, undefined> {
    return events(this.#caller, this.id, options);
  }
}
