import { bounded, TimeIsUp } from "./abort.js";
import { codes } from "./codes.js";
import { forHeader, type Credential } from "./credential.js";
import { errorFrom, retryAfterFrom, Unauthorized } from "./errors.js";
import { parse, Unreadable } from "./json.js";
import { known } from "./options.js";
import { conclude, Ended, Lost, mayHaveHappened, mayRepeat, NoToken, pause, settles, type Semantics } from "./retry.js";
import type { Tokens } from "./tokens.js";

const longestAnswer = 1 << 20; // bytes

/** Options of every call. */
export interface CallOptions {
  /** Ends the call. A write that may have happened by then is an OutcomeUnknown; otherwise the signal's reason is thrown. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of the calls that are done once however often they are sent. */
export interface WriteOptions extends CallOptions {
  /** 1 to 255 visible characters; left out: a random one, or none if RemitOptions says so. Kept by the service for 24 hours. */
  readonly idempotencyKey?: string | undefined;
}

/** The signal of the options of a call, which have no other names than these. */
export function signalOf(options: CallOptions): AbortSignal | undefined {
  return known("the options of a call", options, { signal: true }).signal;
}

/** The same of a call that is done once. */
export function signalOfWrite(options: WriteOptions): AbortSignal | undefined {
  return known("the options of a call", options, { signal: true, idempotencyKey: true }).signal;
}

/** One service, and how to reach it. */
export interface Service {
  readonly base: string; // without a slash at the end
  readonly fetch: typeof fetch;
  readonly attempts: number;
  readonly timeout: number; // of one attempt, in milliseconds
  readonly keyless: boolean; // writes have no key but the caller's own
}

/** One request, however often it is sent. */
export interface Call<T> {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string; // with its query
  readonly body?: string;
  readonly semantics: Semantics;
  readonly key?: string; // Idempotency-Key
  readonly wait?: number; // milliseconds that the service may take on purpose
  readonly inTime?: () => boolean; // asked before each attempt: whether it may still be sent
  readonly read: (answer: unknown, headers: Headers) => T; // throws Unreadable
}

/** A write with the caller's own Idempotency-Key, or else a random one if the service is called with keys. */
export function keyed<T>(
  service: Service,
  path: string,
  body: string,
  options: WriteOptions,
  read: (answer: unknown) => T,
  method: "POST" | "PATCH" = "POST",
): Call<T> {
  signalOfWrite(options); // refuses unknown ones
  const key = options.idempotencyKey ?? (service.keyless ? undefined : randomKey());
  if (key === undefined) {
    return { method, path, body, semantics: "unsafe", read };
  }
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new TypeError("remit: an idempotency key has 1 to 255 visible characters");
  }
  return { method, path, body, semantics: "idempotent", key, read };
}

// randomKey has to differ from all others of its agent or organization, and need not be secret.
function randomKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto === undefined) {
    bytes.forEach((_, i) => (bytes[i] = Math.random() * 256)); // Node 18 keeps WebCrypto behind a flag
  } else {
    globalThis.crypto.getRandomValues(bytes);
  }
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

/** Who calls: a header with a credential, or an agent with its tokens, or nobody. */
export type Identity =
  | { readonly header: "X-API-Key" | "Authorization"; readonly credential: string | Credential }
  | { readonly tokens: Tokens }
  | undefined;

/** Sends calls as one identity. */
export class Caller {
  readonly service: Service;
  readonly #identity: Identity; // private to the runtime: nothing that prints a Caller sees the credential in it

  constructor(service: Service, identity: Identity) {
    this.service = service;
    this.#identity = identity;
  }

  /** Sends the call until it is settled or given up, and reads the answer. */
  async do<T>(call: Call<T>, signal: AbortSignal | undefined): Promise<T> {
    let inDoubt = false; // whether an attempt so far may have happened
    for (let attempt = 1; ; attempt++) {
      const result = await this.#attempt(call, signal);
      if ("value" in result) {
        return result.value;
      }
      const { failure } = result;
      inDoubt = call.semantics !== "safe" && (mayHaveHappened(failure) || (inDoubt && !settles(failure)));
      const again = attempt < this.service.attempts && mayRepeat(call.semantics, failure);
      if (!again || !(await pause(attempt, failure, signal))) {
        throw conclude(placeOf(call), inDoubt, failure, signal);
      }
    }
  }

  // #attempt sends the call once; an agent whose access token is refused, once more with a new one. The service refuses
  // a token before it does anything, so that is no repetition.
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
        access = await identity.tokens.get(refused, signal);
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

  // #send sends one request and reads its answer.
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
        return [answer, await readText(answer)];
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
  if (response.status !== 200 && response.status !== 201) {
    return { failure: errorFrom(placeOf(call), response.status, body, retryAfterFrom(response.headers)) };
  }
  try {
    return { value: call.read(body === "" ? undefined : parse(body), response.headers) };
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

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    bytes += part.value.length;
    if (bytes > longestAnswer) {
      await reader?.cancel();
      throw new Unreadable("it is longer than 1 MiB");
    }
    text += decoder.decode(part.value, { stream: true });
  }
  return text + decoder.decode();
}

// placeOf is a call as errors name it.
function placeOf<T>(call: Call<T>): string {
  return `${call.method} ${call.path.replace(/\?.*/, "")}`;
}

