// The talk with the service about leases: one request at a time, whose outcome is always learned.

import type { Call, Caller } from "./call.js";
import { codes } from "./codes.js";
import { NotFound, OutcomeUnknown, RemitError } from "./errors.js";
import { Grant, Moment } from "./grant.js";
import type { Holdings } from "./holdings.js";
import { grantCall, settleCall, type Settled, type Size } from "./leases.js";
import { Pace } from "./pace.js";
import { Remaining } from "./remaining.js";

// Milliseconds without leases after the service refused one or could not be reached. Charges go to the service meanwhile.
const shortestPause = 500;
const longestPause = 1_500;

/** A request whose outcome is not known yet. It is sent again as it was: a grant with its key, a settlement with its numbers. */
interface Request {
  readonly call: Call<Settled>;
  readonly settles: Grant | undefined;
  readonly asks: Size | undefined;
  readonly at: Moment;
}

/** Gets and settles the leases of one session. */
export class Renewer {
  readonly remaining: Remaining;
  readonly #caller: Caller;
  readonly #session: string;
  readonly #seconds: number;
  readonly #holdings: Holdings;
  readonly #pace = new Pace();
  #turn: Promise<unknown> = Promise.resolve(); // of the last that waits
  #inDoubt: Request | undefined;
  #sent = 0;
  #pausedUntil = -Infinity;
  #failure: unknown; // the first settlement that the service refused

  constructor(caller: Caller, session: string, seconds: number, holdings: Holdings) {
    this.#caller = caller;
    this.#session = session;
    this.#seconds = seconds;
    this.#holdings = holdings;
    this.remaining = new Remaining(caller, session);
  }

  /** Runs work that must not run beside other such work. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  }

  /** Reports whether no lease is asked for at present. */
  get isPaused(): boolean {
    return performance.now() < this.#pausedUntil;
  }

  /** Reports whether a request is under way, or its outcome unknown: there may be a lease that the holdings do not have. */
  get isInDoubt(): boolean {
    return this.#inDoubt !== undefined;
  }

  /** How many requests have been sent. */
  get sent(): number {
    return this.#sent;
  }

  /** Gets the first lease. Throws if the service refuses it. Only call it alone. */
  async open(): Promise<void> {
    await this.#send(this.#grant(this.#pace.first(await this.remaining.read())));
  }

  /**
   * Gets a lease for this charge and those that follow it, and settles one that is spent in the same request. With instead, the
   * current lease does not suffice for the charge and is given back. It gets none while too little remains for a lease. Throws
   * if the service refuses one. Only call it alone.
   */
  async renew(charge: Size, instead: boolean): Promise<void> {
    try {
      await this.#resolve();
      const size = await this.#sizeFor(charge);
      if (size === undefined) {
        return;
      }
      if (instead) {
        this.#holdings.retire(performance.now());
      }
      const spent = this.#holdings.spent[0];
      await this.#send(spent === undefined ? this.#grant(size) : this.#settlement(spent, size));
    } catch (error) {
      this.remaining.forget();
      this.#pause();
      throw error;
    }
  }

  /** Settles all leases that are spent or retired. Only call it alone. */
  async settle(signal?: AbortSignal): Promise<void> {
    await this.#resolve(signal);
    for (let spent = this.#holdings.spent[0]; spent !== undefined; spent = this.#holdings.spent[0]) {
      await this.#send(this.#settlement(spent, undefined), signal);
    }
  }

  /** Throws the error of the first settlement that the service refused, once. */
  throwFailure(): void {
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined) {
      throw failure;
    }
  }

  /** Learns the pace from a lease that is spent. */
  observe(grant: Grant, now: number): void {
    this.#pace.observe(grant.used, grant.inUse(now));
  }

  /** Starts small again, after a time without charges. */
  forgetPace(): void {
    this.#pace.forget();
  }

  #pause(): void {
    this.#pausedUntil = performance.now() + shortestPause + Math.random() * (longestPause - shortestPause);
  }

  async #sizeFor(charge: Size): Promise<Size | undefined> {
    const known = this.remaining.known;
    const size = known && this.#pace.size(charge, known);
    const stale = known === undefined || (size !== undefined && this.remaining.isLarge(size));
    return stale ? this.#pace.size(charge, await this.remaining.read()) : size;
  }

  #grant(asks: Size): Request {
    const call = grantCall(this.#caller, this.#session, asks, this.#seconds);
    const read = (answer: unknown, headers: Headers) => ({ renewed: call.read(answer, headers), refusal: undefined });
    return { call: { ...call, read }, settles: undefined, asks, at: new Moment() };
  }

  #settlement(settles: Grant, asks: Size | undefined): Request {
    const call = settleCall(settles.id, settles.totals, asks, this.#seconds);
    return { call, settles, asks, at: new Moment() };
  }

  async #resolve(signal?: AbortSignal): Promise<void> {
    if (this.#inDoubt !== undefined) {
      await this.#send(this.#inDoubt, signal);
    }
  }

  async #send(request: Request, signal?: AbortSignal): Promise<void> {
    if (request.asks !== undefined) {
      this.#pace.asked(request.asks);
    }
    const again = this.#inDoubt === request;
    this.#inDoubt = request; // whatever ends the call
    this.#sent++;
    try {
      this.#done(request, await this.#caller.do(request.call, signal));
    } catch (error) {
      this.#failed(request, error, again);
    }
  }

  // #failed throws the error, unless the service has refused a settlement for good.
  #failed(request: Request, error: unknown, again: boolean): void {
    const final = error instanceof RemitError && isFinal(error);
    const nothingHappened = error instanceof RemitError && !(error instanceof OutcomeUnknown) && !again;
    if (final || nothingHappened) {
      this.#inDoubt = undefined; // a settlement without an outcome is sent anew later
    }
    if (!final || request.settles === undefined) {
      throw error;
    }
    this.#holdings.settled(request.settles);
    if (!(again && error instanceof NotFound)) { // else it was settled more than an hour ago, and the service has forgotten it
      this.#failure ??= error;
    }
  }

  #done({ settles, asks, at }: Request, { renewed, refusal }: Settled): void {
    this.#inDoubt = undefined;
    if (settles !== undefined) {
      this.#holdings.settled(settles);
      this.remaining.leased(settles.left, -1);
    }
    if (renewed !== undefined) {
      this.remaining.leased(renewed.size, 1);
      this.#holdings.add(new Grant(renewed, at));
    } else if (asks !== undefined || refusal !== undefined) {
      this.remaining.forget();
      this.#pause();
    }
  }
}

// isFinal reports whether the service itself refuses a settlement, which another attempt does not change. A suspended
// organization may be resumed.
function isFinal(error: RemitError): boolean {
  const isRefused = error.code !== "" && error.code !== codes.organizationSuspended;
  return isRefused && error.status >= 400 && error.status < 500 && ![408, 429].includes(error.status);
}
