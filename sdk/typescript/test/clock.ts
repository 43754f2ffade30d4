// Time in the tests of leases.
import type { TestContext } from "node:test";
import type { Ledger } from "./ledger.js";

/** Lets all work that is ready run, requests included. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Moves both clocks of the SDK, and the ledger's. Requests and immediates go on; timers fire when the test says so. */
export function fakeClock(t: TestContext, ledger?: Ledger) {
  let moved = 0;
  const [monotonic, ofDay] = [performance.now.bind(performance), Date.now.bind(Date)];
  t.mock.method(performance, "now", () => monotonic() + moved);
  t.mock.method(Date, "now", () => ofDay() + moved);
  if (ledger !== undefined) {
    ledger.now = () => Date.now();
  }
  return (milliseconds: number) => (moved += milliseconds);
}
