// The leases that this process holds: the one in use, the next one, and those that are spent and not yet settled.

import { Grant } from "./grant.js";

/** The leases of one session that this process holds. */
export class Holdings {
  readonly spent: Grant[] = [];
  #current: Grant | undefined;
  #next: Grant | undefined;
  #lastTaken = performance.now();
  readonly #retired: (grant: Grant, now: number) => void;

  /** retired is called for each lease that is taken out of use. */
  constructor(retired: (grant: Grant, now: number) => void) {
    this.#retired = retired;
  }

  get current(): Grant | undefined {
    return this.#current;
  }

  /** Reports whether a lease waits for the current one to be spent. */
  get hasNext(): boolean {
    return this.#next !== undefined;
  }

  get isEmpty(): boolean {
    return this.#current === undefined && this.spent.length === 0;
  }

  /** Takes a charge from the current lease, or else from the next one, which then takes its place. */
  take(actions: number, value: number, type: string | undefined, now: number): boolean {
    if (this.#current?.take(actions, value, type, now)) {
      this.#lastTaken = now;
      return true;
    }
    if (this.#next?.take(actions, value, type, now)) {
      this.#lastTaken = now;
      this.retire(now);
      return true;
    }
    return false;
  }

  /** For how many milliseconds nothing has been taken. */
  unused(now: number): number {
    return now - this.#lastTaken;
  }

  /** Takes the current lease out of use. The next one takes its place. */
  retire(now: number): void {
    if (this.#current !== undefined) {
      this.#current.retire(now);
      this.spent.push(this.#current);
      this.#retired(this.#current, now);
      this.#current = this.#next;
      this.#next = undefined;
      this.#current?.begin(now);
    }
  }

  /** Takes all leases out of use. */
  retireAll(now: number): void {
    this.retire(now);
    this.retire(now);
  }

  add(grant: Grant): void {
    if (this.#current === undefined) {
      this.#current = grant;
      grant.begin(performance.now());
    } else if (this.#next === undefined) {
      this.#next = grant;
    } else {
      grant.retire(performance.now()); // the answer was lost, and is learned late
      this.spent.push(grant);
    }
  }

  /** Forgets a lease that is settled. */
  settled(grant: Grant): void {
    const place = this.spent.indexOf(grant);
    if (place >= 0) {
      this.spent.splice(place, 1);
    }
  }

  /** What of a limit is leased and not spent. */
  unspent(of: "actions" | "value"): number {
    const all = [this.#current, this.#next, ...this.spent];
    return all.reduce((sum, grant) => sum + (grant?.left[of] ?? 0), 0);
  }
}
