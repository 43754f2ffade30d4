// One lease of the service, and what of it is spent here.

import type { Granted, Size, Totals } from "./leases.js";

// A lease is spent only for this part of its lifetime, so that its settlement arrives before it expires.
const usablePart = 0.95;

const mostTypes = 63; // that the settlement tells apart; the 64th is other
export const otherTypes = "other";
const longestType = 200; // characters

/** A moment on both clocks, in milliseconds. The monotonic clock stops while the machine sleeps; the other may be set. */
export class Moment {
  readonly monotonic = performance.now();
  readonly ofDay = Date.now();
}

/** What was spent on one type of action. */
interface Spent {
  actions: number;
  value: number;
}

/** A lease with its local counters. Its amounts are micro-dollars below 2^53, which a number keeps exactly. */
export class Grant {
  readonly id: string;
  /** How long it may be spent at most, in milliseconds. */
  readonly usable: number;
  readonly #max: Size;
  readonly #until: number; // on the monotonic clock
  readonly #untilOfDay: number;
  readonly #types = new Map<string, Spent>();
  #actions: number; // that are left
  #value: number; // that is left
  #since: number; // when it came into use, on the monotonic clock
  #retiredAt = Infinity;

  /** requested is a moment before the service granted the lease: its lifetime counts from then. */
  constructor(granted: Granted, requested: Moment) {
    this.id = granted.id;
    this.usable = granted.lifetime * usablePart;
    this.#max = granted.size;
    this.#actions = granted.size.actions;
    this.#value = granted.size.value;
    this.#until = requested.monotonic + this.usable;
    this.#untilOfDay = requested.ofDay + this.usable;
    this.#since = requested.monotonic;
  }

  /** Spends a charge, unless the lease lacks the budget or the time for it. */
  take(actions: number, value: number, type: string | undefined, now: number): boolean {
    if (actions > this.#actions || value > this.#value || now >= this.#until || Date.now() >= this.#untilOfDay) {
      return false;
    }
    if (type !== undefined) {
      this.#count(actions, value, type);
    }
    this.#actions -= actions;
    this.#value -= value;
    return true;
  }

  /** Notes that charges are taken from it from now on. */
  begin(now: number): void {
    this.#since = now;
  }

  /** Notes that no charge is taken from it any more. */
  retire(now: number): void {
    this.#retiredAt = now;
  }

  /** For how many milliseconds it has been out of use. */
  outOfUse(now: number): number {
    return now - this.#retiredAt;
  }

  /** What is left of it. */
  get left(): Size {
    return { actions: this.#actions, value: this.#value };
  }

  /** What is spent of it. */
  get used(): Size {
    return { actions: this.#max.actions - this.#actions, value: this.#max.value - this.#value };
  }

  /** One action, at the average value of those that are spent. */
  get average(): Size {
    const { actions, value } = this.used;
    return { actions: 1, value: Math.ceil(value / Math.max(actions, 1)) };
  }

  /** For how many milliseconds it has been in use. */
  inUse(now: number): number {
    return now - this.#since;
  }

  /** For how many milliseconds more it may be spent; 0 or less: it is over. */
  timeLeft(now: number): number {
    return Math.min(this.#until - now, this.#untilOfDay - Date.now());
  }

  /** Reports whether more than half of an amount is spent, and at the pace so far the rest lasts less than the milliseconds. */
  runsOut(now: number, milliseconds: number): boolean {
    const { actions, value } = this.#max;
    return (
      (2 * this.#actions < actions || 2 * this.#value < value) &&
      (endsWithin(this.#actions, actions, this.inUse(now), milliseconds) ||
        endsWithin(this.#value, value, this.inUse(now), milliseconds))
    );
  }

  /** What the settlement says. */
  get totals(): Totals {
    return { ...this.used, types: this.#typesWithOther() };
  }

  #count(actions: number, value: number, type: string): void {
    const spent = this.#types.get(type);
    if (spent !== undefined) {
      spent.actions += actions;
      spent.value += value;
    } else if (this.#types.size < mostTypes) {
      this.#types.set(type, { actions, value });
    } // the rest is other
  }

  // #typesWithOther returns what was spent by type. Whatever no type accounts for is other: the sums are the totals.
  #typesWithOther(): ReadonlyMap<string, Size> {
    const types = new Map<string, Spent>(this.#types);
    let { actions, value } = this.used;
    for (const spent of types.values()) {
      actions -= spent.actions;
      value -= spent.value;
    }
    if (actions > 0 || value > 0) {
      const named = types.get(otherTypes) ?? { actions: 0, value: 0 };
      types.set(otherTypes, { actions: named.actions + actions, value: named.value + value });
    }
    return types;
  }
}

function endsWithin(left: number, max: number, elapsed: number, milliseconds: number): boolean {
  return max > 0 && left * elapsed < (max - left) * milliseconds;
}

/** Reports whether the service takes a text as a type of action in a settlement. */
export function isType(text: unknown): text is string {
  return typeof text === "string" && text.length >= 1 && text.length <= longestType && !/\p{Surrogate}/u.test(text);
}
