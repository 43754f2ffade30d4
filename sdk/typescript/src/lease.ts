/// <reference lib="esnext.disposable" preserve="true" />
import { Asking } from "./ask.js";
import { signalOfWrite, type Caller, type WriteOptions } from "./call.js";
import { chargeOf, withoutAsking, type AskingCharge, type Charge } from "./charges.js";
import { LeaseClosed } from "./errors.js";
import { isType } from "./grant.js";
import type { LeaseOptions } from "./leases.js";
import { known } from "./options.js";
import { Spender, type ChargeSession } from "./spender.js";

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
 * not settled counts as spent. In Node, leases that are still open are settled when the event loop is empty, but not at an
 * explicit exit or after an uncaught error. An open lease does not keep the process alive.
 */
export class Lease implements AsyncDisposable {
  readonly #caller: Caller;
  readonly #session: string;
  readonly #spender: Spender;

  private constructor(caller: Caller, session: string, spender: Spender) {
    this.#caller = caller;
    this.#session = session;
    this.#spender = spender;
  }

  /** @internal */
  static async open(caller: Caller, session: string, options: LeaseOptions, charge: ChargeSession): Promise<Lease> {
    const { expiresInSeconds = defaultSeconds } = known("a lease", options, { expiresInSeconds: true });
    const spender = new Spender(caller, session, Math.ceil(expiresInSeconds), charge);
    await spender.open();
    return new Lease(caller, session, spender);
  }

  /**
   * Charges an action before the agent takes it. It returns undefined if the charge is done, from what is leased, and otherwise a
   * promise. So `await lease.charge(…)` always works, and costs least if it is skipped for undefined.
   *
   * A charge with a scope or with your own idempotency key goes to the service, and so does one that is too large for a lease.
   * So does every charge while the service grants no lease, such as close to the limit: the last unit that fits is charged, and
   * the error is the one of `Session.charge`. With `onLimit: "ask"` it asks for what is missing then. Throws LeaseClosed after
   * `close`.
   */
  charge(charge: AskingCharge = {}, options?: WriteOptions): Promise<void> | undefined {
    if (charge.onLimit !== undefined) {
      return this.#chargeOrAsk(charge, options ?? {});
    }
    const { actionType, value = 0n, count = 1, scope } = chargeOf(charge);
    if (options !== undefined) {
      signalOfWrite(options); // refuses unknown options
    }
    this.#refuseClosed();
    const isLocal =
      scope === undefined && options?.idempotencyKey === undefined &&
      typeof value === "bigint" && value >= 0n && value <= mostValue &&
      Number.isInteger(count) && count >= 1 && count <= mostCount &&
      (actionType === undefined || isType(actionType));
    if (!isLocal) {
      return this.#spender.chargeDirectly(charge, options ?? {});
    }
    const micros = Number(value);
    if (this.#spender.take(count, micros, actionType)) {
      return undefined;
    }
    return this.#chargeLater(count, micros, charge, options ?? {});
  }

  /** Settles everything. Afterwards the lease charges no more. Idempotent: after an error it can be tried again. */
  async close(): Promise<void> {
    await this.#spender.close();
  }

  /** Closes the lease. `await using` calls it. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // #chargeOrAsk asks for what neither this lease nor the session has. Before it asks, the lease has given back what it held.
  #chargeOrAsk(charge: AskingCharge, options: WriteOptions): Promise<void> | undefined {
    const [plain, need, asks] = withoutAsking(charge);
    const asking = new Asking(this.#caller, this.#session, need, asks!);
    let first = this.charge(plain, options);
    return first && asking.charge(options, async (write) => {
      const made = first ?? this.charge(plain, write);
      first = undefined;
      await made;
    });
  }

  // #chargeLater charges from a lease that is yet to be had, or else directly.
  async #chargeLater(count: number, micros: number, charge: Charge, options: WriteOptions): Promise<void> {
    if (!(await this.#spender.takeRenewed(count, micros, charge.actionType, options.signal))) {
      this.#refuseClosed();
      options.signal?.throwIfAborted();
      await this.#spender.chargeDirectly(charge, options);
    }
  }

  #refuseClosed(): void {
    if (this.#spender.isClosed) {
      throw new LeaseClosed("a leased charge", { status: 0, detail: "the lease is closed" });
    }
  }
}
