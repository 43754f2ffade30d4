// How large leases are: they follow the pace of the charges, so that each lasts about a second, and take a small part of what
// remains of the session.

import type { Size } from "./leases.js";

const firstActions = 16;
const charges = 8; // in the smallest lease, of the size of the charge that asks for it
const leastCharges = 4; // if fewer fit into a lease, the charge goes to the service instead
const growth = 8; // from one lease to the next, so that a burst does not take the whole session
const share = 8; // a lease takes at most this fraction of what remains
const most: Size = { actions: 16_777_215, value: 1_099_511_000_000 };

const none: Size = { actions: 0, value: 0 };

/** The pace of a lease's charges. */
export class Pace {
  #perSecond = none;
  #last = none; // the size of the lease that was asked for last

  /** Returns the size of the first lease, which is opened before there is a charge. */
  first(remaining: Size): Size {
    return { actions: Math.max(Math.min(firstActions, Math.floor(remaining.actions / share)), 1), value: 0 };
  }

  /**
   * Returns the size of the next lease, for a charge of this size and those that follow it. It returns undefined if too little
   * remains of the session for a lease.
   */
  size(charge: Size, remaining: Size): Size | undefined {
    const actions = this.#amount("actions", charge, remaining);
    const value = this.#amount("value", charge, remaining);
    const tooSmall = actions < leastCharges * charge.actions || value < leastCharges * charge.value;
    return tooSmall ? undefined : { actions, value };
  }

  /** Notes the size of the lease that was asked for. */
  asked(size: Size): void {
    this.#last = size;
  }

  /** Learns from a lease that was in use for so many milliseconds. */
  observe(used: Size, milliseconds: number): void {
    const seconds = Math.max(milliseconds, 1) / 1000;
    this.#perSecond = { actions: Math.ceil(used.actions / seconds), value: Math.ceil(used.value / seconds) };
  }

  /** Forgets the pace, after a time without charges. */
  forget(): void {
    this.#perSecond = this.#last = none;
  }

  #amount(of: keyof Size, charge: Size, remaining: Size): number {
    const wanted = Math.max(charges * charge[of], Math.min(this.#perSecond[of], growth * this.#last[of]));
    return Math.min(wanted, Math.floor(remaining[of] / share), most[of]);
  }
}
