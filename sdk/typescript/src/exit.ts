// Settles open leases when a Node process has nothing left to do. Browsers have no such moment.

import { bounded } from "./abort.js";

const limit = 5_000; // milliseconds

type Settle = (signal: AbortSignal) => Promise<void>;

interface Process {
  on(event: "beforeExit", listener: () => void): unknown;
}

const open = new Map<object, Settle>();
const failed = new WeakSet<object>(); // they are not tried again, because that would never end
let listens = false;

/** Notes that a lease has something to settle. */
export function atExit(lease: object, settle: Settle): void {
  if (failed.has(lease)) {
    return;
  }
  open.set(lease, settle);
  if (!listens) {
    listens = true;
    (globalThis as { process?: Partial<Process> }).process?.on?.("beforeExit", settleAll);
  }
}

/** Notes that a lease has nothing to settle any more. */
export function settled(lease: object): void {
  open.delete(lease);
}

// settleAll tries each lease once: its requests keep the process alive, and what fails counts as spent.
function settleAll(): void {
  for (const [lease, settle] of open) {
    open.delete(lease);
    bounded(undefined, limit, settle).catch(() => failed.add(lease));
  }
}
