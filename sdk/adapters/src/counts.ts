// Reads counts in the parameters of calls.

import { UnboundedCall } from "@remit/sdk/metering";

/** A count, and its name in a call. */
export type Count = readonly [name: string, value: unknown];

/** Returns the highest of the counts that are given; undefined: none is. Throws UnboundedCall for one that is no whole number from 1 on. */
export function highest(model: string, counts: readonly Count[]): readonly [name: string, count: number] | undefined {
  let most: readonly [string, number] | undefined;
  for (const [name, value] of counts) {
    if ((value ?? undefined) === undefined) {
      continue;
    }
    if (!Number.isSafeInteger(value) || (value as number) < 1) {
      throw new UnboundedCall(`call of ${JSON.stringify(model)}`, `${name} must be a whole number from 1 on`);
    }
    if (most === undefined || (value as number) > most[1]) {
      most = [name, value as number];
    }
  }
  return most;
}
