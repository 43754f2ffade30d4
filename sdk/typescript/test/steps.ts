// The steps of the common programs, and their outcomes as the Go program prints them.
import { formatUSD, type RemitError } from "@remit/sdk";

export const done: [string, string][] = [];

export function add(name: string, ...values: unknown[]): void {
  done.push([name, values.map(text).join(" ")]);
}

function text(value: unknown): string {
  if (typeof value === "bigint") {
    return formatUSD(value);
  }
  if (Array.isArray(value)) {
    return `[${value.map((v) => `"${v}"`).join(" ")}]`; // as Go quotes a list
  }
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export async function count(elements: AsyncIterable<unknown>): Promise<number> {
  let n = 0;
  for await (const _ of elements) {
    n++;
  }
  return n;
}

export const answered = (error: RemitError) => /\d{3} [^(]*/.exec(error.message)?.[0];

export async function refused<E extends Error>(kind: new (...args: any[]) => E, call: () => Promise<unknown>): Promise<E> {
  try {
    await call();
  } catch (error) {
    if (error instanceof kind) {
      return error;
    }
    throw error;
  }
  throw new Error(`it is not refused with ${kind.name}`);
}
