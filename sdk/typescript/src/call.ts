import { bounded, TimeIsUp } from "./abort.js";
import { codes } from "./codes.js";
import { forHeader, type Credential } from "./credential.js";
import { errorFrom, InvalidProof, NotFound, Unauthorized, useNonce } from "./errors.js";
import { parse, Unreadable } from "./json.js";
import { known } from "./options.js";
import type { Prover } from "./prover.js";
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
  readonly body?: string; // JSON
  readonly form?: (signal: AbortSignal | undefined) => Promise<URLSearchParams>; // instead of a body; it is made for each attempt
  readonly headers?: Readonly<Record<string, string>>;
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

/** The access tokens of an agent. */
export interface TokenSource {
  /** Whether there is another token after one that the service refuses. */
  readonly renews: boolean;
  /** Returns a token other than the refused one; "" refuses none. */
  get(refused: string, signal: AbortSignal | undefined): Promise<string>;
  /** Returns a new token, even if the current one is still valid. */
  renew(signal: AbortSignal | undefined): Promise<string>;
}

/** How a caller authenticates: with a header, with an agent's access tokens, or not at all. */
export type Identity =
  | { readonly header: "X-API-Key" | "Bearer" | "DPoP"; readonly credential: string | Credential }
  | { readonly tokens: TokenSource }
  | undefined;

/** Sends calls as one identity. */
export class Caller {
  readonly service: Service;
  readonly #identity: Identity; // a private field, so that printing a Caller does not show the credential
  readonly #prover: Prover | undefined;

  /** A prover adds a proof to each request. */
  constructor(service: Service, identity: Identity, prover?: Prover) {
    this.service = service;
    this.#identity = identity;
    this.#prover = prover;
  }

  /** Returns the headers of one request to another server with the token. */
  async headersElsewhere(method: string, url: URL, accessToken: string): Promise<Record<string, string>> {
    const proof = await this.#prover?.elsewhere(method, url.origin + url.pathname, accessToken);
    return proof === undefined ? { Authorization: `Bearer ${accessToken}` } : { Authorization: `DPoP ${accessToken}`, DPoP: proof };
  }

  /** Whether each request carries a proof. */
  get proves(): boolean {
    return this.#prover !== undefined;
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
      return this.#send(call, {}, "", signal);
    }
    if ("header" in identity) {
      const { header, credential } = identity;
      const text = forHeader(credential);
      return this.#send(call, header === "X-API-Key" ? { [header]: text } : { Authorization: `${header} ${text}` }, "", signal);
    }
    const { tokens } = identity;
    let access = "";
    for (let refused = ""; ; refused = access) {
      try {
        access = await tokens.get(refused, signal);
      } catch (error) {
        return { failure: new NoToken(error) };
      }
      const scheme = this.proves ? "DPoP" : "Bearer";
      const result = await this.#send(call, { Authorization: `${scheme} ${access}` }, access, signal);
      const tokenRefused =
        "failure" in result && result.failure instanceof Unauthorized && result.failure.code === codes.invalidToken;
      if (!tokenRefused || refused !== "" || !tokens.renews) {
        return result;
      }
    }
  }

  // #send sends one request and reads its response. It sends the request once more if the service wants a newer nonce in the
  // proof: it wants that before it does anything.
  async #send<T>(call: Call<T>, headers: Headings, access: string, signal: AbortSignal | undefined): Promise<Result<T>> {
    const result = await this.#sendOnce(call, headers, access, signal);
    const wantsNonce = "failure" in result && result.failure instanceof InvalidProof && result.failure.code === useNonce;
    return wantsNonce && this.proves ? this.#sendOnce(call, headers, access, signal) : result;
  }

  async #sendOnce<T>(call: Call<T>, headers: Headings, access: string, signal: AbortSignal | undefined): Promise<Result<T>> {
    if (signal?.aborted) {
      return { failure: new Ended(signal.reason) };
    }
    if (call.inTime?.() === false) {
      return { failure: new Ended(new TimeIsUp("it is too late to send it")) };
    }
    const { fetch, base, timeout } = this.service;
    let response: Response;
    let body: string;
    let request: RequestInit;
    try {
      request = await this.#request(call, headers, access, signal);
    } catch (error) {
      return { failure: new NoToken(error) };
    }
    try {
      [response, body] = await bounded(signal, timeout + (call.wait ?? 0), async (limited) => {
        const answer = await fetch(base + call.path, { ...request, signal: limited });
        return [answer, await readText(answer, call.most ?? longestResponse)];
      });
    } catch (error) {
      return { failure: error instanceof Unreadable ? error : new Lost(error) };
    }
    this.#prover?.hear(response.headers);
    return readAnswer(call, response, body);
  }

  // #request makes what is new in each attempt: a form with an assertion, and a proof.
  async #request<T>(call: Call<T>, headers: Headings, access: string, signal: AbortSignal | undefined): Promise<RequestInit> {
    const form = await call.form?.(signal);
    const type = form !== undefined ? "application/x-www-form-urlencoded" : call.body === undefined ? undefined : "application/json";
    const { method } = call;
    const proof = await this.#prover?.proof(method, this.service.base + call.path.replace(/\?.*/, ""), access);
    return {
      method, redirect: "manual",
      headers: {
        Accept: "application/json",
        ...(type === undefined ? {} : { "Content-Type": type }),
        ...(call.key === undefined ? {} : { "Idempotency-Key": call.key }),
        ...(proof === undefined ? {} : { DPoP: proof }),
        ...call.headers,
        ...headers,
      },
      ...(type === undefined ? {} : { body: form === undefined ? call.body! : String(form) }),
    };
  }
}

type Headings = Readonly<Record<string, string>>;

type Result<T> = { readonly value: T } | { readonly failure: unknown };

function readAnswer<T>(call: Call<T>, response: Response, body: string): Result<T> {
  if (![200, 201, 204].includes(response.status)) {
    return { failure: errorFrom(placeOf(call), response.status, body, response.headers) };
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

