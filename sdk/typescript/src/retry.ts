// What may be sent again, and what is known about a write that failed.

import { sleep, TimeIsUp } from "./abort.js";
import { OutcomeUnknown, RemitError, Unavailable } from "./errors.js";
import { Unreadable } from "./json.js";

const firstBackoff = 100; // milliseconds, as all here
const longestBackoff = 5_000;
// How long a Retry-After is honoured by waiting. Beyond it the caller is told instead.
const longestWait = 30_000;

/**
 * What sending a call twice would do. "reads": nothing that anybody has to know of; the calls for tokens count as such.
 * "repeats": the same as sending it once, by its key or by its nature. "once": the same thing again.
 */
export type Semantics = "safe" | "idempotent" | "unsafe";

/** An attempt without an answer. */
export class Lost {
  readonly notSent: boolean;
  readonly distrusted: boolean;
  constructor(readonly cause: unknown) {
    const causes = causesOf(cause);
    this.distrusted = causes.some((c) => /CERT|UNABLE_TO_VERIFY/.test(String(c.code)));
    this.notSent = this.distrusted || causes.some(isWantOfConnection);
  }
}

/** The want of an access token to send a call with. */
export class NoToken {
  constructor(readonly cause: unknown) {}
}

/** The end of a call before it was sent: its signal aborted, or its time was over. */
export class Ended {
  constructor(readonly cause: unknown) {}
}

interface Cause {
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

// causesOf is an error of fetch and what it wraps. Node tells in there what happened to the connection; browsers do not.
function causesOf(error: unknown): Cause[] {
  if (typeof error !== "object" || error === null) {
    return [];
  }
  const { cause, errors } = error as Cause;
  return [error as Cause, ...causesOf(cause), ...(Array.isArray(errors) ? errors.flatMap(causesOf) : [])];
}

// isWantOfConnection knows the errors of Node's resolver and sockets, of undici, and of Bun.
function isWantOfConnection(error: Cause): boolean {
  return (
    error.syscall === "connect" ||
    error.syscall === "getaddrinfo" ||
    error.code === "UND_ERR_CONNECT_TIMEOUT" ||
    error.code === "ConnectionRefused"
  );
}

/**
 * Whether a call may be sent again after a failure: when it certainly did not happen, or when twice is the same as once.
 * Only what may pass by itself is worth it: lost answers, 503 and 429.
 */
export function mayRepeat(semantics: Semantics, failure: unknown): boolean {
  if (failure instanceof RemitError) {
    return failure.status === 429 || (failure.status === 503 && (failure instanceof Unavailable || semantics !== "unsafe"));
  }
  return failure instanceof Lost && !failure.distrusted && (failure.notSent || semantics !== "unsafe");
}

/** Whether a write that ended in the failure may have been done. */
export function mayHaveHappened(failure: unknown): boolean {
  if (failure instanceof RemitError) {
    const success = failure.status >= 200 && failure.status < 300; // though by an answer that is not the service's
    return success || (failure.status >= 500 && !(failure instanceof Unavailable));
  }
  return failure instanceof Unreadable || (failure instanceof Lost && !failure.notSent);
}

/**
 * Whether the failure, after an attempt in doubt, tells how that came out: it does when the service got as far as looking
 * up the key, or would have refused the first attempt too. What stands before the service knows neither, and its refusals
 * have no code.
 */
export function settles(failure: unknown): boolean {
  if (!(failure instanceof RemitError) || failure.code === "") {
    return false;
  }
  return failure.status >= 400 && failure.status < 500 && ![401, 408, 429].includes(failure.status);
}

/** Waits before the attempt after the given one. It returns false when nobody would wait that long, or the signal aborts. */
export async function pause(attempt: number, failure: unknown, signal: AbortSignal | undefined): Promise<boolean> {
  const asked = (failure instanceof RemitError ? (failure.retryAfter ?? 0) : 0) * 1000;
  return asked <= longestWait && (await sleep(asked + backoff(attempt), signal));
}

/** Exponential with full jitter: anything up to a bound that doubles, so that many callers spread out. */
export function backoff(attempt: number): number {
  return Math.random() * Math.min(longestBackoff, firstBackoff * 2 ** (attempt - 1));
}

/** What the caller gets thrown: it says what is known about the write. */
export function conclude(place: string, inDoubt: boolean, failure: unknown, signal: AbortSignal | undefined): unknown {
  const gaveUp = signal?.aborted === true && !settles(failure);
  const cause = gaveUp ? signal.reason : wraps(failure) ? failure.cause : failure;
  if (inDoubt) {
    const said = failure instanceof RemitError ? failure : { status: 0 };
    return new OutcomeUnknown(place, { ...about(said), detail: `the outcome is unknown: ${messageOf(cause)}`, cause });
  }
  if (cause instanceof TimeIsUp || (failure instanceof Lost && !gaveUp)) {
    return new Unavailable(place, { status: 0, detail: messageOf(cause), cause });
  }
  if (gaveUp || failure instanceof NoToken || failure instanceof Ended) {
    return cause;
  }
  if (failure instanceof Unreadable) {
    return new RemitError(place, { status: 0, detail: messageOf(failure) });
  }
  if (failure instanceof RemitError && failure.status === 503 && !(failure instanceof Unavailable)) {
    return new Unavailable(place, { ...about(failure), detail: failure.detail });
  }
  return failure;
}

function wraps(failure: unknown): failure is Lost | NoToken | Ended {
  return failure instanceof Lost || failure instanceof NoToken || failure instanceof Ended;
}

function about(said: Partial<RemitError> & { status: number }) {
  const { status, code = "", requestId = "", fields = [], retryAfter } = said;
  return { status, code, requestId, fields, retryAfter };
}

function messageOf(failure: unknown): string {
  if (failure instanceof Unreadable) {
    return `unreadable answer: ${failure.message}`;
  }
  if (!(failure instanceof Error)) {
    return String(failure);
  }
  const inner = causesOf(failure).find((c) => c.code !== undefined);
  return inner === undefined || inner === failure || failure instanceof RemitError
    ? failure.message
    : `${failure.message} (${String(inner.code)})`;
}
