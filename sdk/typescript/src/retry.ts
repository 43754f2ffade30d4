// Decides which calls to retry and when, and what is known about a write that failed.

import { sleep, TimeIsUp } from "./abort.js";
import { OutcomeUnknown, RemitError, Unavailable } from "./errors.js";
import { Unreadable } from "./json.js";

// All times are in milliseconds.
const firstBackoff = 100;
const longestBackoff = 5_000;
// The longest Retry-After that the SDK waits for. A longer one is reported to the caller instead.
const longestWait = 30_000;

/**
 * What repeating a call does (RFC 9110 §9.2). "safe": it changes nothing; token requests count as safe, because repeating one
 * does no harm. "idempotent": it has the same effect as one call, by its idempotency key or by its nature. "unsafe": it may
 * have its effect again.
 */
export type Semantics = "safe" | "idempotent" | "unsafe";

/** An attempt without a response. */
export class Lost {
  readonly notSent: boolean;
  readonly distrusted: boolean;
  constructor(readonly cause: unknown) {
    const causes = causesOf(cause);
    this.distrusted = causes.some((c) => /CERT|UNABLE_TO_VERIFY/.test(String(c.code)));
    this.notSent = this.distrusted || causes.some(isNotConnected);
  }
}

/** A call that was not sent because there is no access token. */
export class NoToken {
  constructor(readonly cause: unknown) {}
}

/** A call that ended before it was sent: its signal aborted, or its time was over. */
export class Ended {
  constructor(readonly cause: unknown) {}
}

interface Cause {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly syscall?: unknown;
  readonly cause?: unknown;
  readonly errors?: unknown;
}

// causesOf returns an error of fetch and the errors that it wraps. In Node they say what happened to the connection; in
// browsers they do not.
function causesOf(error: unknown): Cause[] {
  if (typeof error !== "object" || error === null) {
    return [];
  }
  const { cause, errors } = error as Cause;
  return [error as Cause, ...causesOf(cause), ...(Array.isArray(errors) ? errors.flatMap(causesOf) : [])];
}

const notConnected: ReadonlySet<unknown> = new Set(["UND_ERR_CONNECT_TIMEOUT", "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ConnectionRefused"]);

// isNotConnected reports whether there was no connection, by the errors of Node's resolver and sockets, undici and Bun, and by the
// words of Deno's, which have no code.
function isNotConnected({ syscall, code, message }: Cause): boolean {
  return syscall === "connect" || syscall === "getaddrinfo" || notConnected.has(code) || /: client error \(Connect\)/.test(String(message));
}

/**
 * Returns whether to retry a call: it certainly did not happen, or it is idempotent. Only transient failures are worth a
 * retry: lost responses, 503 and 429.
 */
export function mayRepeat(semantics: Semantics, failure: unknown): boolean {
  if (failure instanceof RemitError) {
    return failure.status === 429 || (failure.status === 503 && (failure instanceof Unavailable || semantics !== "unsafe"));
  }
  return failure instanceof Lost && !failure.distrusted && (failure.notSent || semantics !== "unsafe");
}

/** Returns whether a write may have happened although it failed in this way. */
export function mayHaveHappened(failure: unknown): boolean {
  if (failure instanceof RemitError) {
    const success = failure.status >= 200 && failure.status < 300; // even if the response is not Remit's
    return success || (failure.status >= 500 && !(failure instanceof Unavailable));
  }
  return failure instanceof Unreadable || (failure instanceof Lost && !failure.notSent);
}

/**
 * Returns whether a failure resolves the doubt about an earlier attempt. It does if the service looked up the idempotency key,
 * or would have refused the first attempt too. A proxy knows neither, and its refusals have no code.
 */
export function resolves(failure: unknown): boolean {
  if (!(failure instanceof RemitError) || failure.code === "") {
    return false;
  }
  return failure.status >= 400 && failure.status < 500 && ![401, 408, 429].includes(failure.status);
}

/** Waits before the attempt after the given one. It returns false if Retry-After exceeds longestWait, or the signal aborts. */
export async function pause(attempt: number, failure: unknown, signal: AbortSignal | undefined): Promise<boolean> {
  const asked = (failure instanceof RemitError ? (failure.retryAfter ?? 0) : 0) * 1000;
  return asked <= longestWait && (await sleep(asked + backoff(attempt), signal));
}

/** Returns an exponential backoff with full jitter: a random time below a bound that doubles. */
export function backoff(attempt: number): number {
  return Math.random() * Math.min(longestBackoff, firstBackoff * 2 ** (attempt - 1));
}

/** Returns the error to throw. It says what is known about the write. */
export function conclude(place: string, inDoubt: boolean, failure: unknown, signal: AbortSignal | undefined): unknown {
  const gaveUp = signal?.aborted === true && !resolves(failure);
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
