// Amounts of US dollars as whole micro-dollars. No amount passes through a floating-point number.

/** An amount in millionths of a US dollar, from 0n to 1,000,000,000 USD: `37n * USD / 100n`, or `usd("0.37")`. */
export type MicroUSD = bigint;

/** One US dollar. */
export const USD: MicroUSD = 1_000_000n;

const most = 1_000_000_000n * USD;
const decimals = 6;
const mostDigits = 16; // of most, in micro-dollars

/**
 * Reads a decimal number of dollars by its exact value, like the service: "0.37", "5", "5.0" and "0.5e1". Throws RangeError for
 * any other text, and unless the amount is from 0 to 1,000,000,000 with at most 6 decimals.
 */
export function usd(text: string): MicroUSD {
  const parts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (parts === null) {
    throw new RangeError(`${JSON.stringify(text)} is not an amount of dollars`);
  }
  const [, sign, whole = "", fraction = "", exponent = "0"] = parts;
  const all = (whole + fraction).replace(/^0+/, "");
  const digits = all.replace(/0+$/, "");
  if (digits === "") {
    return 0n;
  }
  const shift = all.length - digits.length - fraction.length + Number(exponent) + decimals;
  if (sign === "-" || digits.length + shift > mostDigits) {
    throw new RangeError(`${text} USD is not from 0 to 1000000000`);
  }
  if (shift < 0) {
    throw new RangeError(`${text} USD has more than 6 decimals`);
  }
  const amount = BigInt(digits) * 10n ** BigInt(shift);
  if (amount > most) {
    throw new RangeError(`${text} USD is not from 0 to 1000000000`);
  }
  return amount;
}

/** Writes an amount as the shortest decimal number of dollars: 370000n is "0.37". */
export function formatUSD(amount: MicroUSD): string {
  const digits = (amount < 0n ? -amount : amount).toString().padStart(decimals + 1, "0");
  const fraction = digits.slice(-decimals).replace(/0+$/, "");
  return (amount < 0n ? "-" : "") + digits.slice(0, -decimals) + (fraction === "" ? "" : `.${fraction}`);
}
