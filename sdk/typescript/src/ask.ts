// Asks for what a session lacks for a charge or a hold, waits for the decision, and goes on.

import { randomKey, type Caller, type WriteOptions } from "./call.js";
import { LimitReached, RemitError, RequestNotApproved } from "./errors.js";
import { awaitRequest, patiently, requestMore, type MoreRequest } from "./more.js";
import type { MicroUSD } from "./money.js";

/** What a charge or a transaction does when a limit of its session refuses it. */
export interface OnLimit {
  /**
   * "ask" asks the organization for what is missing, with the reason, waits for the decision and then goes on. It waits until the
   * signal aborts, so give it one with a timeout. If the request is denied, it throws RequestNotApproved.
   */
  readonly onLimit?: "ask" | undefined;
  /** For who decides, 1 to 500 characters. "ask" requires it. */
  readonly reason?: string | undefined;
}

/** What a charge or a hold needs of its session. */
export interface Need {
  readonly actions: number;
  readonly value: MicroUSD;
}

/** Asks with a caller for more of a session. */
export class Asking {
  readonly #caller: Caller;
  readonly #session: string;
  readonly #need: Need;
  readonly #reason: string;

  constructor(caller: Caller, session: string, need: Need, { onLimit, reason }: OnLimit) {
    if (onLimit !== "ask" || typeof reason !== "string") {
      throw new TypeError('remit: onLimit is "ask", with a reason');
    }
    this.#caller = caller;
    this.#session = session;
    this.#need = need;
    this.#reason = reason;
  }

  /**
   * Makes a charge. If a limit refuses it, asks for what is missing, waits, and makes it again, until it succeeds or asking cannot
   * help. With the caller's own key all further keys follow from it, and the service always answers a key the same. So the whole
   * can be repeated, also after a crash: it asks once and charges once.
   */
  async charge<T>(options: WriteOptions, make: (options: WriteOptions) => Promise<T>): Promise<T> {
    let again = options;
    for (let round = 1; ; round++) {
      try {
        return await make(again);
      } catch (error) {
        const missing = this.#missing(error);
        if (missing === undefined) {
          throw error;
        }
        const request = await this.#ask(error as LimitReached, missing, round, options);
        again = withKey(options, "charge", round);
        const isWhole = request.grantedActions >= missing.actions && request.grantedValue >= missing.value;
        if (request.status === "ended" || !isWhole) {
          return await make(again); // its refusal is final
        }
      }
    }
  }

  // #missing returns what the session lacks; undefined: the error is no refusal by a limit that a request can raise.
  #missing(error: unknown): Need | undefined {
    if (!(error instanceof LimitReached) || !["max_actions", "max_value_usd"].includes(error.limit)) {
      return undefined;
    }
    const actions = Math.max(this.#need.actions - error.remaining.actions, 0);
    const value = this.#need.value > error.remaining.value ? this.#need.value - error.remaining.value : 0n;
    return actions === 0 && value === 0n ? undefined : { actions, value };
  }

  // #ask returns the approved request, or that of a session that has ended: the charge then says how.
  async #ask(refusal: LimitReached, missing: Need, round: number, options: WriteOptions): Promise<MoreRequest> {
    const { signal } = options;
    const params = {
      ...(missing.actions > 0 ? { addActions: missing.actions } : {}),
      ...(missing.value > 0n ? { addValue: missing.value } : {}),
      reason: this.#reason,
    };
    // It has a key on a keyless client too: a lost response must not make it ask twice.
    const write = { idempotencyKey: randomKey(), ...withKey(options, "ask", round) };
    let request: MoreRequest | undefined;
    try {
      request = await patiently(signal, () => requestMore(this.#caller, this.#session, params, write));
      request = await awaitRequest(this.#caller, this.#session, request.id, signal);
    } catch (error) {
      throw error instanceof RemitError ? new RequestNotApproved(refusal, request, error) : error;
    }
    if (request.status !== "approved" && request.status !== "ended") {
      throw new RequestNotApproved(refusal, request, undefined);
    }
    return request;
  }
}

// withKey returns the options with the key of a step. Without a key of the caller's own they stay.
function withKey(options: WriteOptions, step: string, round: number): WriteOptions {
  const { idempotencyKey: own } = options;
  return own === undefined ? options : { ...options, idempotencyKey: `${own}-${step}-${round}` };
}
