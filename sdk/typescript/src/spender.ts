// Spends the leases of one session, and has them renewed and settled in the background.

import { unlessAborted } from "./abort.js";
import type { Caller, WriteOptions } from "./call.js";
import type { Charge } from "./charges.js";
import { LimitReached } from "./errors.js";
import { atExit, settled } from "./exit.js";
import type { Grant } from "./grant.js";
import { Holdings } from "./holdings.js";
import type { Size } from "./leases.js";
import { Renewer } from "./renewer.js";
import type { Usage } from "./usage.js";

// All times are in milliseconds.
const ahead = 500; // the next lease is asked for when the current one lasts no longer
const period = 500; // between checks for idle leases
const idle = 5_000; // without charges for so long, all leases are given back
const settleAfter = 1_000; // a lease that is spent is settled then, if no renewal has taken the settlement along
const retryAfter = 1_000; // after a failure in the background

/** Charges the session itself. */
export type ChargeSession = (charge: Charge, options: WriteOptions) => Promise<Usage>;

/** The leases of one session that this process spends. */
export class Spender {
  readonly #chargeSession: ChargeSession;
  readonly #holdings = new Holdings((grant, now) => this.#retired(grant, now));
  readonly #renewer: Renewer;
  #closed = false;
  #renewing = false;
  #aheadAt = -Infinity; // no lease is asked for ahead of need before
  #retryAt = -Infinity;
  #timer: unknown;

  constructor(caller: Caller, session: string, seconds: number, charge: ChargeSession) {
    this.#chargeSession = charge;
    this.#renewer = new Renewer(caller, session, seconds, this.#holdings);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** Gets the first lease. Throws if the service refuses it. */
  async open(): Promise<void> {
    try {
      await this.#renewer.alone(() => this.#renewer.open());
    } catch (error) {
      this.#closed = true; // a grant whose answer was lost is given back
      throw error;
    } finally {
      this.#watch();
    }
  }

  /** Settles everything. Nothing is leased any more. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#renewer.alone(() => this.#giveBack());
    this.#watch();
    this.#renewer.throwFailure();
  }

  /** Charges what is leased. Returns false if that does not suffice. */
  take(actions: number, value: number, type: string | undefined): boolean {
    const now = performance.now();
    if (!this.#holdings.take(actions, value, type, now)) {
      return false;
    }
    if (!this.#renewing && now >= this.#aheadAt && !this.#holdings.hasNext && this.#holdings.current!.runsOut(now, ahead)) {
      this.#renewAhead({ actions, value });
    }
    return true;
  }

  /**
   * Charges a lease that is yet to be had. Returns false if there is none, or the signal aborts first. The service's answer to
   * the charge itself then says why.
   */
  async takeRenewed(actions: number, value: number, type: string | undefined, signal: AbortSignal | undefined): Promise<boolean> {
    if (this.#renewer.isPaused) {
      return false;
    }
    let charged = false;
    const take = () => (charged = signal?.aborted !== true && !this.#closed && this.take(actions, value, type));
    const renew = async () => {
      if (!take() && !this.#closed && !this.#renewer.isPaused) {
        await this.#renewer.renew({ actions, value }, true);
        take();
      }
    };
    await unlessAborted(this.#renewer.alone(renew), signal).catch(() => {});
    this.#watch();
    return charged;
  }

  /** Charges the session. If the service refuses, and what is leased may be missing, it gives everything back and charges again. */
  async chargeDirectly(charge: Charge, options: WriteOptions): Promise<void> {
    if (options.idempotencyKey !== undefined && !this.#renewer.remaining.covers(charge)) {
      await this.#renewer.alone(() => this.#giveBack()).catch(() => {}); // a refusal under this key would stay
    }
    const { sent, remaining } = this.#renewer;
    try {
      remaining.learn(await this.#chargeSession(charge, options));
    } catch (error) {
      if (!(error instanceof LimitReached)) {
        throw error;
      }
      remaining.learn(error.usage);
      if (options.idempotencyKey !== undefined || !this.#holdsWhatLacks(error.limit, sent)) {
        throw error;
      }
      await this.#renewer.alone(async () => {
        await this.#giveBack().catch(() => {}); // then the service's next answer is as exact as it can be
        remaining.learn(await this.#chargeSession(charge, options));
      });
    }
  }

  #renewAhead(charge: Size): void {
    this.#renewing = true;
    const renewed = this.#renewer.alone(async () => {
      if (!this.#closed && !this.#holdings.hasNext) {
        await this.#renewer.renew(charge, false);
      }
    });
    const done = () => {
      this.#renewing = false;
      if (!this.#holdings.hasNext) {
        this.#aheadAt = performance.now() + retryAfter;
      }
      this.#watch();
    };
    renewed.then(done, done); // the charge that finds no lease learns why
  }

  #retired(grant: Grant, now: number): void {
    this.#renewer.observe(grant, now);
    if (grant.timeLeft(now) < settleAfter + period) {
      this.#settleInBackground(); // the look at it would be too late
    }
  }

  #holdsWhatLacks(limit: string, sent: number): boolean {
    const { isInDoubt, sent: now } = this.#renewer;
    return isInDoubt || now !== sent || this.#holdings.unspent(limit === "max_actions" ? "actions" : "value") > 0;
  }

  async #giveBack(signal?: AbortSignal): Promise<void> {
    this.#holdings.retireAll(performance.now());
    await this.#renewer.settle(signal);
  }

  // #watch looks at the leases from time to time, as long as there are any.
  #watch(): void {
    if (this.#holdings.isEmpty && !this.#renewer.isInDoubt) {
      settled(this);
      return;
    }
    atExit(this, (signal) => this.#renewer.alone(() => this.#giveBack(signal)));
    if (this.#timer === undefined) {
      const left = this.#holdings.current?.timeLeft(performance.now()) ?? period;
      this.#timer = setTimeout(() => this.#look(), Math.max(Math.min(left, period), 1));
      (this.#timer as { unref?: () => void }).unref?.(); // Node's; in browsers it is a number
    }
  }

  #look(): void {
    this.#timer = undefined;
    const now = performance.now();
    const { current, spent } = this.#holdings;
    if (this.#closed || this.#holdings.unused(now) >= idle) {
      this.#holdings.retireAll(now);
      this.#renewer.forgetPace();
    } else if (current !== undefined && current.timeLeft(now) <= (this.#holdings.hasNext ? period : 0)) {
      this.#holdings.retire(now); // now, because the next look may be too late to settle it in time
    } else if (current !== undefined && this.#expiresSoon(current.timeLeft(now), current.usable, now)) {
      this.#renewAhead(current.average);
    }
    const due = this.#renewer.isInDoubt || spent.some((grant) => grant.outOfUse(now) >= settleAfter || grant.timeLeft(now) <= 0);
    if (due || this.#closed) {
      this.#settleInBackground();
    }
    this.#watch();
  }

  #expiresSoon(left: number, usable: number, now: number): boolean {
    const isUsed = this.#holdings.unused(now) < usable / 2;
    return isUsed && left < Math.max(usable / 4, 2 * period) && !this.#renewing && !this.#holdings.hasNext && now >= this.#aheadAt;
  }

  #settleInBackground(): void {
    if (performance.now() < this.#retryAt) {
      return;
    }
    this.#retryAt = Infinity;
    const settled = this.#renewer.alone(() => this.#renewer.settle());
    settled.then(
      () => (this.#retryAt = -Infinity),
      () => (this.#retryAt = performance.now() + retryAfter),
    ).finally(() => this.#watch());
  }
}
