// JSON of the service. Its amounts are numbers of up to 16 digits, more than a JavaScript number keeps. So this module reads
// and writes them as text, and never makes them numbers.

import { formatUSD, usd, type MicroUSD } from "./money.js";

/** A JSON object of the caller. Its numbers are JavaScript numbers, which round integers above 2^53. */
export type JSONObject = { readonly [name: string]: unknown };

// Members with the caller's own data, which comes back unchanged.
const callersOwn = new Set(["metadata", "pre_state", "post_state"]);

// A string, with the colon after it if it is a member's name; a bracket; or a number.
const token = /"([^"\\]*(?:\\.[^"\\]*)*)"(\s*:\s*)?|[[\]{}]|-?\d[\d.eE+-]*/g;

// Names of amounts: those that end in _usd, and those of an amount for each of something.
const amountName = /_usd(_per_action|_per_day|_today)?$/;

/** Reads JSON. An amount (a number by its name) becomes a string with the same text. */
export function parse(text: string): unknown {
  const plain: unknown = JSON.parse(text);
  const quoted = quoteAmounts(text);
  return quoted === text ? plain : JSON.parse(quoted);
}

// quoteAmounts puts the amounts of valid JSON in quotation marks. Only call it with valid JSON: on other text it could search
// for the end of a string from each quotation mark again, which takes quadratic time.
function quoteAmounts(text: string): string {
  let quoted = "";
  let copied = 0; // how much of text is copied so far
  let depth = 0;
  let ownDepth = 0; // the depth of the caller's own data; 0: outside
  let name = "";
  let valueAt = -1; // where the value of the member with this name begins
  for (const found of text.matchAll(token)) {
    const [all, string, colon] = found;
    const member = found.index === valueAt ? name : "";
    if (colon !== undefined) {
      name = string ?? "";
      valueAt = found.index + all.length;
    } else if (all === "{" || all === "[") {
      depth++;
      if (ownDepth === 0 && callersOwn.has(member)) {
        ownDepth = depth;
      }
    } else if (all === "}" || all === "]") {
      if (ownDepth === depth) {
        ownDepth = 0;
      }
      depth--;
    } else if (string === undefined && ownDepth === 0 && amountName.test(member)) {
      quoted += `${text.slice(copied, found.index)}"${all}"`;
      copied = found.index + all.length;
    }
  }
  return quoted + text.slice(copied);
}

/** The members of an object to write. Undefined members are omitted; a bigint is an amount. */
export type Members = { readonly [name: string]: unknown };

/** Writes an object, with its amounts as exact numbers. */
export function write(members: Members): string {
  const written = Object.entries(members)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${JSON.stringify(name)}:${writeValue(name, value)}`);
  return `{${written.join(",")}}`;
}

/** JSON that is written already. */
export class Written {
  constructor(readonly text: string) {}
}

function writeValue(name: string, value: unknown): string {
  if (value instanceof Written) {
    return value.text;
  }
  if (amountName.test(name) && value !== null) {
    if (typeof value !== "bigint") {
      throw new TypeError(`remit: ${name} must be a bigint of micro-dollars, such as usd("0.37")`);
    }
    return formatUSD(value);
  }
  const text: string | undefined = JSON.stringify(value);
  if (text === undefined) {
    throw new TypeError(`remit: ${name} cannot be written as JSON`);
  }
  return text;
}

/** A response that violates the API description. */
export class Unreadable extends Error {}

/** A JSON object of a response. */
export type Answer = { readonly [name: string]: unknown };

export function object(value: unknown): Answer {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Unreadable("there is no object where one should be");
  }
  return value as Answer;
}

export function array<T>(value: unknown, element: (value: unknown) => T): T[] {
  if (!Array.isArray(value)) {
    throw new Unreadable("there is no array where one should be");
  }
  return value.map(element);
}

export function text(from: Answer, name: string): string {
  const value = from[name];
  return typeof value === "string" ? value : missing(name);
}

export function whole(from: Answer, name: string): number {
  const value = from[name];
  return typeof value === "number" && Number.isSafeInteger(value) ? value : missing(name);
}

export function flag(from: Answer, name: string): boolean {
  const value = from[name];
  return typeof value === "boolean" ? value : missing(name);
}

export function amount(from: Answer, name: string): MicroUSD {
  try {
    return usd(text(from, name));
  } catch {
    return missing(name);
  }
}

/** Reads an amount that may be below 0. */
export function change(from: Answer, name: string): MicroUSD {
  const said = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(text(from, name));
  if (said === null) {
    return missing(name);
  }
  const micro = BigInt(said[2]! + (said[3] ?? "").padEnd(6, "0"));
  return said[1] === "" ? micro : -micro;
}

export function time(from: Answer, name: string): Date {
  const moment = new Date(text(from, name));
  return Number.isNaN(moment.getTime()) ? missing(name) : moment;
}

export function texts(from: Answer, name: string): string[] {
  return array(from[name], (value) => (typeof value === "string" ? value : missing(name)));
}

export function wholes(from: Answer, name: string): number[] {
  return array(from[name], (value) => (Number.isSafeInteger(value) ? (value as number) : missing(name)));
}

export function own(from: Answer, name: string): JSONObject {
  return object(from[name]);
}

/** Reads an optional member. */
export function maybe<T>(from: Answer, name: string, read: (from: Answer, name: string) => T): T | undefined {
  return from[name] === undefined || from[name] === null ? undefined : read(from, name);
}

/** Returns a value of any shape with its amounts as MicroUSD. */
export function withAmounts(value: unknown): unknown {
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (Array.isArray(value)) {
    return value.map(withAmounts);
  }
  const from = value as Answer;
  return Object.fromEntries(
    Object.entries(from).map(([name, member]) => [
      name,
      amountName.test(name) && typeof member === "string" ? amount(from, name) : withAmounts(member),
    ]),
  );
}

function missing(name: string): never {
  throw new Unreadable(`${name} is missing, or not what it should be`);
}
