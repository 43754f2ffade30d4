// The hold of one call of a model, and how it is settled.

import { bounded, longestTimer } from "./abort.js";
import type { Bound } from "./metering.js";
import { UsageMissing } from "./meteringerrors.js";
import type { MicroUSD } from "./money.js";
import type { Prices, TokenUsage } from "./prices.js";
import { Lost } from "./retry.js";
import type { Transaction } from "./transaction.js";

const settleLimit = 10_000; // milliseconds; it ignores the signal of the call
const mostWaits = 6; // halves of the hold's time in which an answer may not have begun

/** What a hold is made of. */
interface Held {
  readonly transaction: Transaction;
  readonly value: MicroUSD;
  readonly model: string; // whose price it is
  readonly bound: Bound;
  readonly reasons: boolean; // whether the call may have output that is not sent
  readonly prices: Prices;
  readonly expiresInSeconds: number;
  readonly onError: (error: unknown) => void;
}

/**
 * A held call. The first settlement counts; those that follow do nothing. A settlement does not throw: one that fails is reported,
 * and the hold expires.
 *
 * The hold is renewed while the call waits for its answer, for three times its time at most, and then while `touch` is called. A
 * call that neither moves nor ends is committed in full within the time of the hold.
 */
export class Hold {
  readonly #held: Held;
  #settled: Promise<void> | undefined;
  #touched = false;
  #waits = mostWaits;
  #timer: unknown;

  /** @internal */
  constructor(held: Held) {
    this.#held = held;
    this.#watch();
  }

  /** What is held. */
  get value(): MicroUSD {
    return this.#held.value;
  }

  /** Whether it is settled, or about to be. */
  get isSettled(): boolean {
    return this.#settled !== undefined;
  }

  /**
   * Commits what the call cost, by the service tier that the answer says. Commits the hold and throws UsageMissing if the usage is
   * undefined, and commits the hold for one whose cost is beyond all budgets.
   */
  async commit(usage: TokenUsage | undefined, serviceTier?: unknown): Promise<void> {
    if (usage !== undefined) {
      return this.#settle(() => this.#commit(this.#costOf(usage, serviceTier)));
    }
    if (!this.isSettled) {
      await this.commitAll();
      throw new UsageMissing(this.#held.model);
    }
  }

  /**
   * Commits the most that a call that broke off can have cost: with the input that the provider has reported, or else the most,
   * and at most so many tokens of output, or the most of it for a call that can reason.
   */
  async commitMost(input: TokenUsage | undefined, outputTokens: number): Promise<void> {
    const { bound, prices, model, value, reasons } = this.#held;
    const output = reasons ? bound.output : Math.min(Math.max(outputTokens, 0), bound.output);
    const costs = input === undefined
      ? [prices.worst(model, bound.input, output, bound.serviceTier)]
      : [this.#costOf({ ...input, output, reasoning: 0 }), this.#costOf({ ...input, output: 0, reasoning: output })];
    const most = dearest(costs);
    return this.#settle(() => this.#commit(most < value ? most : value));
  }

  /**
   * Settles a call that failed with this error, after so many bytes of a streamed answer. An HTTP error and a connection that was
   * refused cost nothing.
   */
  async fail(error: unknown, streamedBytes = 0): Promise<void> {
    if (streamedBytes > 0) {
      return this.commitMost(undefined, streamedBytes);
    }
    return isRefusal(error) || new Lost(error).notSent ? this.rollback("the call failed") : this.commitAll();
  }

  /** Commits the hold: what may have happened is paid. */
  async commitAll(): Promise<void> {
    return this.#settle(() => this.#commit(this.#held.value));
  }

  /** Gives the hold back, because the call did not happen. */
  async rollback(reason: string): Promise<void> {
    return this.#settle(async () => void (await this.#held.transaction.rollback(reason)));
  }

  /** Notes that the answer has begun, or goes on. */
  touch(): void {
    this.#touched = true;
    this.#waits = 0;
  }

  async #commit(value: MicroUSD): Promise<void> {
    await bounded(undefined, settleLimit, (signal) => this.#held.transaction.commit({ value }, { signal }));
  }

  #costOf(usage: TokenUsage, serviceTier?: unknown): MicroUSD {
    const { prices, model, bound } = this.#held;
    try {
      return prices.cost(model, usage, { requested: bound.serviceTier, served: typeof serviceTier === "string" ? serviceTier : undefined });
    } catch (error) {
      if (error instanceof RangeError) {
        return this.#held.value;
      }
      throw error;
    }
  }

  #settle(how: () => Promise<void>): Promise<void> {
    clearTimeout(this.#timer as number);
    this.#settled ??= how().catch((error: unknown) => this.#report(error));
    return this.#settled;
  }

  // #report never throws: a settlement that a signal or a timer causes has no waiter, and the answer is delivered all the same.
  #report(error: unknown): void {
    try {
      this.#held.onError(error);
    } catch (failure) {
      console.error("remit: onError failed:", failure);
    }
  }

  // #watch looks at the call twice within the time of its hold.
  #watch(): void {
    const { transaction, expiresInSeconds } = this.#held;
    this.#timer = setTimeout(() => {
      if (!this.#touched && this.#waits-- <= 0) {
        void this.commitAll();
        return;
      }
      this.#touched = false;
      transaction.update({ expiresInSeconds }).catch((error: unknown) => this.isSettled || this.#report(error));
      this.#watch();
    }, Math.min(expiresInSeconds * 500, longestTimer));
    (this.#timer as { unref?: () => void }).unref?.(); // it does not keep a Node process alive
  }
}

function dearest(costs: readonly MicroUSD[]): MicroUSD {
  return costs.reduce((a, b) => (a > b ? a : b));
}

// isRefusal reports whether an error of a provider's client, or one that it wraps, has the status of an HTTP error.
function isRefusal(error: unknown): boolean {
  for (let cause = error, depth = 0; typeof cause === "object" && cause !== null && depth < 8; cause = (cause as { cause?: unknown }).cause, depth++) {
    const { status, statusCode = status } = cause as { status?: unknown; statusCode?: unknown };
    if (typeof statusCode === "number" && statusCode >= 400) {
      return true;
    }
  }
  return false;
}
