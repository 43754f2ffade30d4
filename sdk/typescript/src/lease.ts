/// <reference lib="esnext.disposable" preserve="true" />
import { unlessAborted } from "./abort.js";
import { signalOfWrite, type Caller, type WriteOptions } from "./call.js";
import { chargeOf, type Charge } from "./charges.js";
import { LeaseClosed, LimitReached } from "./errors.js";
import { atExit, settled } from "./exit.js";
import { isType, type Grant } from "./grant.js";
import { Holdings } from "./holdings.js";
import type { LeaseOptions, Size } from "./leases.js";
import { known } from "./options.js";
import { Renewer } from "./renewer.js";
import type { Usage } from "./usage.js";

// All times are in milliseconds.
const ahead = 500; // the next lease is asked for when the current one lasts no longer
const period = 500; // of the look at leases that nobody charges
const idle = 5_000; // without charges for so long, all leases are given back
const settleAfter = 1_000; // a lease that is spent is settled then, if no renewal has taken the settlement along
const retryAfter = 1_000; // after a failure in the background

const defaultSeconds = 60;
const mostValue = 1_000_000_000_000_000n; // micro-dollars in one charge
const mostCount = 1_000;

/**
 * A part of a session's budget that this process spends without asking: `charge` is decided here, and never beyond the session's
 * limits. `Session.lease` opens one.
 *
 * ```ts
 * await using lease = await session.lease();
 * await lease.charge({ actionType: "llm.call", value: usd("0.01") });
 * ```
 *
 * It gets further leases in the background, as large as the pace of the charges asks for, about one a second. After 5 seconds
 * without charges it gives all of them back. What it holds is not available to other charges of the session. Close it: what is
 * not settled counts as spent. In Node, leases that are still open are settled when the event loop is empty, but not at
 * process.exit() or after an uncaught error. An open lease does not keep the process alive.
 */
export class Lease implements AsyncDisposable {
  readonly #chargeSession: (charge: Charge, options: WriteOptions) => Promise<Usage>;
  readonly #holdings = new Holdings((grant, now) => this.#retired(grant, now));
  readonly #renewer: Renewer;
  #closed = false;
  #renewing = false;
  #aheadAt = -Infinity; // no lease is asked for ahead of need before
  #retryAt = -Infinity;
  #timer: unknown;

  private constructor(caller: Caller, session: string, seconds: number, charge: (charge: Charge, options: WriteOptions) => Promise<Usage>) {
    this.#chargeSession = charge;
    this.#renewer = new Renewer(caller, session, seconds, this.#holdings);
  }

  /** @internal */
  static async open(
    caller: Caller,
    session: string,
    options: LeaseOptions,
    charge: (charge: Charge, options: WriteOptions) => Promise<Usage>,
  ): Promise<Lease> {
    const { expiresInSeconds = defaultSeconds } = known("a lease", options, { expiresInSeconds: true });
    const lease = new Lease(caller, session, Math.ceil(expiresInSeconds), charge);
    await lease.#renewer.alone(() => lease.#renewer.open());
    lease.#watch();
    return lease;
  }

  /**
   * Charges an action before the agent takes it. It returns undefined if the charge is done, from what is leased, and otherwise a
   * promise. So `await lease.charge(…)` always works, and costs least if it is skipped for undefined.
   *
   * A charge with a scope or with your own idempotency key goes to the service, and so does one that is too large for a lease.
   * So does every charge while the service grants no lease, such as close to the limit: the last unit that fits is charged, and
   * the error is the one of `Session.charge`. Throws LeaseClosed after `close`.
   */
  charge(charge: Charge = {}, options?: WriteOptions): Promise<void> | undefined {
    const { actionType, value = 0n, count = 1, scope } = chargeOf(charge);
    if (options !== undefined) {
      signalOfWrite(options); // refuses unknown options
    }
    if (this.#closed) {
      throw new LeaseClosed("a leased charge", { status: 0, detail: "the lease is closed" });
    }
    const isLocal =
      scope === undefined && options?.idempotencyKey === undefined &&
      typeof value === "bigint" && value >= 0n && value <= mostValue &&
      Number.isInteger(count) && count >= 1 && count <= mostCount &&
      (actionType === undefined || isType(actionType));
    if (!isLocal) {
      return this.#chargeDirectly(charge, options ?? {});
    }
    const micros = Number(value);
    if (this.#take(count, micros, actionType)) {
      return undefined;
    }
    return this.#chargeLater({ actions: count, value: micros }, charge, options ?? {});
  }

  /** Settles everything. Afterwards the lease charges no more. Idempotent: after an error it can be tried again. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#renewer.alone(() => this.#giveBack());
    this.#watch();
    this.#renewer.throwFailure();
  }

  /** Closes the lease. `await using` calls it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #take(actions: number, value: number, type: string | undefined): boolean {
    const now = performance.now();
    if (!this.#holdings.take(actions, value, type, now)) {
      return false;
    }
    if (!this.#renewing && now >= this.#aheadAt && !this.#holdings.hasNext && this.#holdings.current!.runsOut(now, ahead)) {
      this.#renewAhead({ actions, value });
    }
    return true;
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

  // #chargeLater charges from a lease that is yet to be had, or else directly.
  async #chargeLater(size: Size, charge: Charge, options: WriteOptions): Promise<void> {
    const signal = signalOfWrite(options);
    let charged = false;
    const take = () => {
      charged = signal?.aborted !== true && !this.#closed && this.#take(size.actions, size.value, charge.actionType);
      return charged;
    };
    try {
      if (!this.#renewer.isPaused) {
        await unlessAborted(this.#renewer.alone(async () => {
          if (!take()) {
            await this.#renewer.renew(size, true);
            take();
          }
        }), signal);
      }
    } catch (error) {
      if (signal?.aborted && !charged) {
        throw error;
      } // otherwise there is no lease to be had, and the service's answer to the charge itself says why
    } finally {
      this.#watch();
    }
    if (!charged) {
      await this.#chargeDirectly(charge, options);
    }
  }

  // #chargeDirectly charges the session. If the service refuses, and this lease holds what may be missing, it gives everything
  // back and charges again.
  async #chargeDirectly(charge: Charge, options: WriteOptions): Promise<void> {
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
      this.#renewAhead({ actions: 1, value: 0 });
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
