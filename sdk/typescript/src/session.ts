import { Asking } from "./ask.js";
import { keyed, signalOf, type Caller, type CallOptions, type WriteOptions } from "./call.js";
import { chargeBody, chargeMany, withoutAsking, type AskingCharge, type Charge, type Result } from "./charges.js";
import { agentCallers, keyCaller, serviceFromEnv } from "./connect.js";
import { agentFrom, ownEnvironment, required, type Environment } from "./environment.js";
import { write } from "./json.js";
import { Lease } from "./lease.js";
import type { LeaseOptions } from "./leases.js";
import {
  awaitRequest, getRequest, listRequests, requestMore, type MoreFilter, type MoreParams, type MoreRequest,
} from "./more.js";
import { sessionPath } from "./paths.js";
import { namedBy } from "./sessionkeys.js";
import {
  createSession, endSession, getSession, sessionTree, type ChildParams, type SessionInfo, type SessionTree,
} from "./sessions.js";
import { beginOrWork, dryRunBegin, type DryRun, type Transaction, type Work } from "./transaction.js";
import type { TransactionParams } from "./transactions.js";
import { usageFrom, type Usage } from "./usage.js";
import { sessionUsage, type UsageLine } from "./usagereport.js";

/** An agent's session, which is its budget. `Agent.session` makes one. */
export class Session {
  readonly id: string;
  readonly #agent: string;
  readonly #caller: Caller;

  /** @internal */
  constructor(caller: Caller, agent: string, id: string) {
    this.#caller = caller;
    this.#agent = agent;
    this.id = id;
  }

  /** Returns the session whose key is in REMIT_SESSION_KEY; or whose id is in REMIT_SESSION, of the agent of `Agent.fromEnv`. */
  static fromEnv(environment: Environment = ownEnvironment()): Session {
    if ((environment["REMIT_SESSION_KEY"]?.trim() ?? "") !== "") {
      const [key] = required(environment, "REMIT_SESSION_KEY") as [string];
      const [agent, session] = namedBy(key);
      return new Session(keyCaller(serviceFromEnv(environment), key), agent, session);
    }
    const { id, settings, others } = agentFrom(environment, "REMIT_SESSION");
    const { caller } = agentCallers(serviceFromEnv(environment), id, settings);
    return new Session(caller, id, others[0]!);
  }

  /**
   * Charges an action before the agent takes it, and returns the new usage and what remains. A charge succeeds in full or not
   * at all: LimitReached, SessionNotActive and InsufficientScope mean that nothing was charged.
   *
   * With `onLimit: "ask"` and a reason, a charge beyond the session's limit asks for what is missing, waits for the decision and
   * goes on. Give it a signal with a timeout.
   */
  async charge(charge: AskingCharge = {}, options: WriteOptions = {}): Promise<Usage> {
    const [plain, need, asks] = withoutAsking(charge);
    const once = (write: WriteOptions) => this.#charge(plain, write);
    return asks === undefined ? once(options) : new Asking(this.#caller, this.id, need, asks).charge(options, once);
  }

  async #charge(charge: Charge, options: WriteOptions): Promise<Usage> {
    const path = `${sessionPath(this.id)}/actions`;
    const call = keyed(this.#caller.service, path, write(chargeBody(charge)), options, usageFrom);
    return this.#caller.do(call, options.signal);
  }

  /** Returns what `charge` would return now, the usage after it included, and charges nothing. */
  async dryRunCharge(charge: Charge = {}, options: CallOptions = {}): Promise<Usage> {
    const body = write({ ...chargeBody(charge), dry_run: true });
    const path = `${sessionPath(this.id)}/actions`;
    return this.#caller.do({ method: "POST", path, body, semantics: "safe", read: usageFrom }, signalOf(options));
  }

  /** Returns whether `begin` would succeed now, and begins nothing. Throws the same errors. */
  async dryRunBegin(params: TransactionParams, options: CallOptions = {}): Promise<DryRun> {
    return this.#caller.do(dryRunBegin(this.id, params), signalOf(options));
  }

  /**
   * Creates a child session: a part of this session's budget, by default for the same agent. Its limits, scopes and lifetime lie
   * within those of this session, which set them aside. maxActions and maxValue left out are the service's defaults, or what this
   * session has left if that is less. What the child does not use comes back when it is over. The agent needs the scope
   * sessions:delegate. A child beyond this session is refused with LimitReached, with scopes beyond it with InsufficientScope.
   */
  async createChild(params: ChildParams = {}, options: WriteOptions = {}): Promise<SessionInfo> {
    return createSession(this.#caller, { agentId: this.#agent, ...params, parentSessionId: this.id }, options);
  }

  /** Gets the session with its descendants. */
  async tree(options: CallOptions = {}): Promise<SessionTree> {
    return this.#caller.do(sessionTree(this.id), signalOf(options));
  }

  /**
   * Asks for more than the session's limits allow. `awaitRequest` waits for the decision. A session has at most 8 pending requests;
   * beyond that it throws LimitReached with the limit max_pending_requests.
   */
  async requestMore(params: MoreParams, options: WriteOptions = {}): Promise<MoreRequest> {
    return requestMore(this.#caller, this.id, params, options);
  }

  /** Lists the session's requests for more, newest first: the pending ones and those decided last. */
  async requests(filter: MoreFilter = {}, options: CallOptions = {}): Promise<MoreRequest[]> {
    return this.#caller.do(listRequests(this.id, filter), signalOf(options));
  }

  /** Gets a request for more. */
  async getRequest(id: string, options: CallOptions = {}): Promise<MoreRequest> {
    return this.#caller.do(getRequest(this.id, id), signalOf(options));
  }

  /** Waits until a request for more is decided or its session has ended, also while the service is unavailable. */
  async awaitRequest(id: string, options: CallOptions = {}): Promise<MoreRequest> {
    return awaitRequest(this.#caller, this.id, id, signalOf(options));
  }

  /** Sends up to 500 charges to this session in one request; see `Agent.chargeMany`. */
  async chargeMany(charges: readonly Charge[], options: WriteOptions = {}): Promise<Result[]> {
    const here = charges.map((charge) => ({ ...charge, sessionId: this.id }));
    return chargeMany(this.#caller, here, options);
  }

  /**
   * Leases a part of the budget, to charge without a request for each charge; see `Lease`. The session's maxLeaseSeconds must
   * allow it. Throws the same errors as `charge`, such as LimitReached with the limit max_lease_seconds.
   */
  async lease(options: LeaseOptions = {}): Promise<Lease> {
    return Lease.open(this.#caller, this.id, options, (charge, writeOptions) => this.charge(charge, writeOptions));
  }

  /**
   * Begins a transaction. It counts one action and holds the value until it is committed, is rolled back or expires. It throws
   * the same errors as `charge`. After OutcomeUnknown there is nothing to do: if the transaction exists, its hold is released
   * when it expires.
   *
   * With work, it begins a transaction, runs the work in it and returns the result of the work. If the work ends without a
   * commit or rollback, the held value is committed, because the action has happened and must be accounted for. If the work
   * throws, the transaction is rolled back and the work's error is thrown, even if the rollback fails. If a rollback inside the
   * work failed, it is tried once more instead of a commit.
   */
  async begin<T>(params: TransactionParams, work: Work<T>, options?: WriteOptions): Promise<T>;
  async begin(params: TransactionParams, options?: WriteOptions): Promise<Transaction>;
  async begin<T>(params: TransactionParams, first?: WriteOptions | Work<T>, second?: WriteOptions): Promise<Transaction | T> {
    return beginOrWork(this.#caller, this.id, params, first, second);
  }

  /**
   * Reports what the session was used for, by action type, without what its children used. The first 64 types are told apart; the
   * others are together in other. The lines add up to what the session shows.
   */
  async usage(options: CallOptions = {}): Promise<UsageLine[]> {
    return this.#caller.do(sessionUsage(this.id), signalOf(options));
  }

  /** Gets the session. */
  async get(options: CallOptions = {}): Promise<SessionInfo> {
    return this.#caller.do(getSession(this.id), signalOf(options));
  }

  /**
   * Ends the session and rolls back its pending transactions. Idempotent. Throws SessionNotActive if the session has expired
   * or was revoked.
   */
  async end(options: CallOptions = {}): Promise<void> {
    await this.#caller.do(endSession(this.id), signalOf(options));
  }
}
