// Charges for calls of tools.

import type { MicroUSD, Session, Transaction } from "@remit/sdk";

/** What a call of a tool costs, and who may call it. */
export interface ToolPrice {
  /** What a call costs. 0n counts an action alone. */
  readonly value: MicroUSD;
  /** A scope that the agent's token and the session must have. */
  readonly scope?: string;
  /** The action type of its holds; the default is the tool's name. */
  readonly actionType?: string;
  /** "always" charges for calls that fail too. */
  readonly charge?: "always";
}

/** Returns the price of a tool. Throws RangeError for one that is negative or no amount. */
export function checkedPrice(name: string, price: ToolPrice): ToolPrice {
  const { value } = price;
  if (typeof value !== "bigint" || value < 0n) {
    throw new RangeError(`remit: the price of the tool ${JSON.stringify(name)} must be an amount from 0 on, such as { value: usd("0.01") }`);
  }
  return price;
}

/** Holds the price of a call of a tool. Throws what `Session.begin` throws, and InsufficientScope. */
export async function holdPrice(session: Session, name: string, price: ToolPrice, signal?: AbortSignal): Promise<Transaction> {
  const { value, scope, actionType = name } = price;
  if (scope !== undefined) {
    await session.dryRunCharge({ scope }, { signal }); // a transaction checks no scope
  }
  // Without the signal: a hold that comes to be while it aborts would be left until it expires.
  const transaction = await session.begin({ actionType, value, expiresInSeconds: 600, reversible: false, metadata: { tool: name } });
  if (signal?.aborted) {
    await transaction.rollback("cancelled").catch(report);
    signal.throwIfAborted();
  }
  return transaction;
}

/** Settles a call of a tool, which has ended. */
export async function settlePrice(transaction: Transaction, price: ToolPrice, succeeded: boolean): Promise<void> {
  await (succeeded || price.charge === "always" ? transaction.commit() : transaction.rollback("the tool failed"));
}

/**
 * Returns the function of a tool, which is charged before it runs: `tool({ …, execute: chargedTool(session, "search", { value }, execute) })`.
 * A refusal throws, so that the framework passes it to the model. If the function throws, nothing is charged. A price that is negative
 * or no amount throws RangeError at once.
 */
export function chargedTool<A extends unknown[], R>(session: Session, name: string, price: ToolPrice, execute: (...args: A) => R | Promise<R>): (...args: A) => Promise<R> {
  checkedPrice(name, price);
  return async (...args) => {
    const transaction = await holdPrice(session, name, price);
    let result: R;
    try {
      result = await execute(...args);
    } catch (error) {
      await settlePrice(transaction, price, false).catch(report);
      throw error;
    }
    await settlePrice(transaction, price, true).catch(report);
    return result;
  };
}

/** Reports a settlement that failed. The result is delivered all the same, and the hold expires. */
export function report(error: unknown): void {
  console.error("remit: a call of a tool could not be settled; its hold expires:", error instanceof Error ? error.message : error);
}
