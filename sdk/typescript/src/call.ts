import { bounded, TimeIsUp } from "./abort.js";
import { codes } from "./codes.js";
import { forHeader, type Credential } from "./credential.js";
import { errorFrom, NotFound, retryAfterFrom, Unauthorized } from "./errors.js";
import { parse, Unreadable } from "./json.js";
import { known } from "./options.js";
import { conclude, Ended, Lost, mayHaveHappened, mayRepeat, NoToken, pause, resolves, type Semantics } from "./retry.js";

const longestResponse = 1 << 20; // bytes

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call. It throws OutcomeUnknown if a write may have happened by then, and the signal's reason otherwise. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of the calls that an idempotency key makes idempotent. */
export interface WriteOptions extends CallOptions {
  /** 1 to 255 visible characters; the default is a random key, or none with idempotencyKeys: false. The service stores it for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

/** Returns the signal of the options of a call. Refuses unknown options. */
export function signalOf(options: CallOptions): AbortSignal | undefined {
  return known("the options of a call", options, { signal: true }).signal;
}

/** Like signalOf, for a call with an idempotency key. */
export function signalOfWrite(options: WriteOptions): AbortSignal | undefined {
  return known("the options of a call", options, { signal: true, idempotencyKey: true }).signal;
}

/** One service, and the settings for calling it. */
export interface Service {
  readonly base: string; // without a slash at the end
  readonly fetch: typeof fetch;
  readonly attempts: number;
  readonly timeout: number; // of one attempt, in milliseconds
  readonly keyless: boolean; // writes carry only the caller's own key
}

/** One request with its retries. */
export interface Call<T> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string; // with its query
  readonly body?: string;
  readonly semantics: Semantics;
  readonly key?: string; // Idempotency-Key
  readonly most?: number; // bytes of the response; by default 1 MiB
  readonly wait?: number; // milliseconds that the service may hold the request back (long polling)
  readonly inTime?: () => boolean; // runs before each attempt and returns whether to send it
  readonly gone?: boolean; // not_found after an attempt in doubt means that this call deleted the object
  readonly verbatim?: boolean; // the response is a text and no JSON
  readonly read: (answer: unknown, headers: Headers) => T; // throws Unreadable
}

/** A write with the caller's own Idempotency-Key, or with a random one unless the service is keyless. */
export function keyed<T>(
  service: Service,
  path: string,
  body: string,
  options: WriteOptions,
  read: (answer: unknown) => T,
  method: "POST" | "PATCH" = "POST",
): Call<T> {
  signalOfWrite(options); // refuses unknown options
  const key = options.idempotencyKey ?? (service.keyless ? undefined : randomKey());
  if (key === undefined) {
    return { method, path, body, semantics: "unsafe", read };
  }
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new TypeError("remit: an idempotency key has 1 to 255 visible characters");
  }
  return { method, path, body, semantics: "idempotent", key, read };
}

/** Returns a key that is unique within an agent or organization. It need not be secret. */
export function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto === undefined) {
    bytes.forEach((_, i) => (bytes[i] = Math.random() * 256)); // Node 18 keeps WebCrypto behind a flag
  } else {
    globalThis.crypto.getRandomValues(bytes);
  }
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/**
 * How a caller authenticates: with a header, with an agent's access tokens, or not at all. accessToken returns a token other
 * than the refused one; "" refuses none.
 */
export type Identity =
  | { readonly header: "X-API-Key" | "Authorization"; readonly credential: string | Credential }
  | { readonly accessToken: (refused: string, signal: AbortSignal | undefined) => Promise<string> }
  | undefined;

/** Sends calls as one identity. */
export class Caller {
  readonly service: Service;
  readonly #identity: Identity; // a private field, so that printing a Caller does not show the credential

  constructor(service: Service, identity: Identity) {
    this.service = service;
    this.#identity = identity;
  }

  /** Sends the call, with retries, and reads the response. */
  async do<T>(call: Call<T>, signal: AbortSignal | undefined): Promise<T> {
    let inDoubt = false; // whether the outcome of an attempt so far is unknown
    for (let attempt = 1; ; attempt++) {
      const result = await this.#attempt(call, signal);
      if ("value" in result) {
        return result.value;
      }
      const { failure } = result;
      if (call.gone === true && inDoubt && failure instanceof NotFound && failure.code === codes.notFound) {
        return call.read(undefined, new Headers());
      }
      inDoubt = call.semantics !== "safe" && (mayHaveHappened(failure) || (inDoubt && !resolves(failure)));
      const again = attempt < this.service.attempts && mayRepeat(call.semantics, failure);
      if (!again || !(await pause(attempt, failure, signal))) {
        throw conclude(placeOf(call), inDoubt, failure, signal);
      }
    }
  }

  // #attempt sends the call once. If the service refuses an agent's access token, #attempt sends the call again with a new
  // token. That is not a retry, because the service refuses a token before it does anything.
  async #attempt<T>(call: Call<T>, signal: AbortSignal | undefined): Promise<Result<T>> {
    const identity = this.#identity;
    if (identity === undefined) {
      return this.#send(call, {}, signal);
    }
    if ("header" in identity) {
      const prefix = identity.header === "Authorization" ? "Bearer " : "";
      return this.#send(call, { [identity.header]: prefix + forHeader(identity.credential) }, signal);
    }
    let access = "";
    for (let refused = ""; ; refused = access) {
      try {
        access = await identity.accessToken(refused, signal);
      } catch (error) {
        return { failure: new NoToken(error) };
      }
      const result = await this.#send(call, { Authorization: `Bearer ${access}` }, signal);
      const tokenRefused =
        "failure" in result && result.failure instanceof Unauthorized && result.failure.code === codes.invalidToken;
      if (!tokenRefused || refused !== "") {
        return result;
      }
    }
  }

  // #send sends one request and reads its response.
  async #send<T>(call: Call<T>, credential: Record<string, string>, signal: AbortSignal | undefined): Promise<Result<T>> {
    if (signal?.aborted) {
      return { failure: new Ended(signal.reason) };
    }
    if (call.inTime?.() === false) {
      return { failure: new Ended(new TimeIsUp("it is too late to send it")) };
    }
    const { fetch, base, timeout } = this.service;
    const request: RequestInit = { method: call.method, headers: headersOf(call, credential), redirect: "manual" };
    if (call.body !== undefined) {
      request.body = call.body;
    }
    let response: Response;
    let body: string;
    try {
      [response, body] = await bounded(signal, timeout + (call.wait ?? 0), async (limited) => {
        const answer = await fetch(base + call.path, { ...request, signal: limited });
        return [answer, await readText(answer, call.most ?? longestResponse)];
      });
    } catch (error) {
      return { failure: error instanceof Unreadable ? error : new Lost(error) };
    }
    return readAnswer(call, response, body);
  }
}

type Result<T> = { readonly value: T } | { readonly failure: unknown };

function headersOf<T>(call: Call<T>, credential: Record<string, string>): Record<string, string> {
  return {
    Accept: "application/json",
    ...(call.body === undefined ? {} : { "Content-Type": "application/json" }),
    ...(call.key === undefined ? {} : { "Idempotency-Key": call.key }),
    ...credential,
  };
}

function readAnswer<T>(call: Call<T>, response: Response, body: string): Result<T> {
  if (![200, 201, 204].includes(response.status)) {
    return { failure: errorFrom(placeOf(call), response.status, body, retryAfterFrom(response.headers)) };
  }
  try {
    const answer = call.verbatim === true ? body : body === "" ? undefined : parse(body);
    return { value: call.read(answer, response.headers) };
  } catch (error) {
    if (error instanceof SyntaxError) {
      return { failure: new Unreadable("it is not JSON") }; // the error would quote it
    }
    if (error instanceof Unreadable) {
      return { failure: error };
    }
    throw error;
  }
}

async function readText(response: Response, most: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    bytes += part.value.length;
    if (bytes > most) {
      await reader?.cancel();
      throw new Unreadable(`it is longer than ${most >> 20} MiB`);
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

// placeOf returns the name of a call in errors, such as POST /v1/sessions.
function placeOf<T>(call: Call<T>): string {
  return `${call.method} ${call.path.replace(/\?.*/, "")}`;
}

