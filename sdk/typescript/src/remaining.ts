// What remains of a session, as far as this process knows.

import type { Caller } from "./call.js";
import type { Charge } from "./charges.js";
import type { Size } from "./leases.js";
import { getSession, type SessionInfo } from "./sessions.js";
import type { Usage } from "./usage.js";

const fresh = 10_000; // milliseconds
const safely = 16; // a lease above this fraction of what remains is asked for only after a look at the session

/** What remains of a session. Other processes spend it too, so it is read again now and then. */
export class Remaining {
  readonly #caller: Caller;
  readonly #session: string;
  #left: Size = { actions: 0, value: 0 };
  #readAt = -Infinity;
  #hasMaxCommitted = false;

  constructor(caller: Caller, session: string) {
    this.#caller = caller;
    this.#session = session;
  }

  /** What remains; undefined: it is not known, or not any more. */
  get known(): Size | undefined {
    return performance.now() - this.#readAt <= fresh ? this.#left : undefined;
  }

  /** Reports whether a charge surely fits, unless other processes spend what remains. */
  covers({ count = 1, value = 0n }: Charge): boolean {
    const { known } = this;
    return known !== undefined && known.actions >= count && known.value >= value;
  }

  /** Reports whether a lease is so large that a look at the session comes first. */
  isLarge({ actions, value }: Size): boolean {
    return safely * actions > this.#left.actions || safely * value > this.#left.value;
  }

  /** Asks the service. */
  async read(): Promise<Size> {
    const session = await this.#caller.do(getSession(this.#session), undefined);
    this.#left = leftOf(session);
    this.#hasMaxCommitted = session.maxCommitted !== undefined;
    this.#readAt = performance.now();
    return this.#left;
  }

  /** Learns from the answer to a charge. It does not tell what remains of a limit of what is ever committed. */
  learn(usage: Usage): void {
    if (!this.#hasMaxCommitted) {
      this.#left = { actions: usage.remainingActions, value: Number(usage.remainingValue) };
      this.#readAt = performance.now();
    }
  }

  /** Notes that this process leased an amount, or with a negative sign that it gave some back. */
  leased(size: Size, sign: 1 | -1): void {
    const { actions, value } = this.#left;
    this.#left = { actions: actions - sign * size.actions, value: value - sign * size.value };
  }

  /** Forgets it, because the service has refused what should have fitted. */
  forget(): void {
    this.#readAt = -Infinity;
  }
}

function leftOf(session: SessionInfo): Size {
  const { maxValue, valueUsed, valueHeld, valueDelegated, maxCommitted, valueCommitted } = session;
  const rest = maxValue - valueUsed - valueHeld - valueDelegated;
  const uncommitted = maxCommitted === undefined ? rest : maxCommitted - valueCommitted - valueHeld;
  const value = rest < uncommitted ? rest : uncommitted;
  return { actions: session.maxActions - session.actionCount - session.actionsDelegated, value: Number(value) };
}
