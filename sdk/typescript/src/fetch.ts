/** A fetch that bounds the calls of models by a session, for the clients `openai` and `@anthropic-ai/sdk` among others. */
import { unlessAborted } from "./abort.js";
import { Hold, Metering, meteringNames, UnboundedCall, UnknownModel, UsageMissing, type MeteringOptions } from "./metering.js";
import { answerOf, type Answer } from "./modelanswer.js";
import { apiOf, readRequest, type ModelRequest } from "./modelrequest.js";
import { known } from "./options.js";
import type { Prices } from "./prices.js";
import { RemitError } from "./remiterror.js";
import { Lost } from "./retry.js";
import type { Session } from "./session.js";
import { WithoutUsageChunk } from "./usagechunk.js";

export { UnboundedCall, UnknownModel, UsageMissing, type MeteringOptions };

/** What sends an HTTP request. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Settings of a metered fetch. */
export interface MeteredFetchOptions extends MeteringOptions {
  /** Sends the requests; the default is the global fetch. */
  readonly fetch?: Fetch;
}

/**
 * Returns a fetch that holds the worst case of each call of a model before it sends it, and settles what the call cost when its
 * answer ends: by the usage in it, streamed or not. It knows OpenAI's chat completions and responses and Anthropic's messages, at
 * any address. Requests that cost nothing pass; others are refused with UnboundedCall. A streamed chat completion is asked for its
 * usage; the chunk that has it reaches only a caller who asked for it too.
 *
 * A hold that does not fit throws LimitReached, and nothing is sent. The clients of OpenAI and Anthropic throw it as it is.
 */
export function meteredFetch(session: Session, prices: Prices, options: MeteredFetchOptions = {}): Fetch {
  const { fetch: given, ...rest } = known("the options of a metered fetch", options, { ...meteringNames, fetch: true });
  const metering = new Metering(session, prices, rest);
  const send: Fetch = given ?? ((input, init) => globalThis.fetch(input, init));
  return async (input, init) => {
    let call: ModelRequest;
    let hold: Hold;
    let sent: Sent;
    try {
      const api = apiOf(...targetOf(input, init));
      if (api === undefined) {
        return await send(input, init); // its body is untouched
      }
      sent = requestOf(input, init);
      call = readRequest(api, await sent.text());
      hold = await metering.hold(call.call, sent.signal);
    } catch (error) {
      return refused(error, headersOf(input, init));
    }
    return metered(call, hold, sent.signal, () => sent.send(send, call.body));
  };
}

function isRequest(input: string | URL | Request): input is Request {
  return typeof input === "object" && "url" in input;
}

function headersOf(input: string | URL | Request, init: RequestInit = {}): Headers {
  return new Headers(init.headers ?? (isRequest(input) ? input.headers : undefined));
}

// targetOf reads only what leaves the body of a Request as it is. Addresses may be relative to a browser's page.
function targetOf(input: string | URL | Request, init: RequestInit = {}): [method: string, url: URL, headers: Headers] {
  const { method = isRequest(input) ? input.method : "GET" } = init;
  const { location } = globalThis as { readonly location?: { readonly href: string } };
  return [method.toUpperCase(), new URL(isRequest(input) ? input.url : input, location?.href), headersOf(input, init)];
}

/** A request that is to be metered, however it was given. */
interface Sent {
  readonly signal: AbortSignal | undefined;
  text(): Promise<string>;
  send(fetch: Fetch, body: string): Promise<Response>;
}

function requestOf(input: string | URL | Request, init: RequestInit = {}): Sent {
  if (!isRequest(input) && (init.body === undefined || init.body === null || typeof init.body === "string")) {
    const { headers, signal, body } = init;
    return {
      signal: signal ?? undefined,
      text: async () => body ?? "",
      send: (fetch, body) => fetch(input, { ...init, headers: sized(headers), body }),
    };
  }
  if (init.body instanceof ReadableStream) {
    init = { duplex: "half", ...init } as RequestInit;
  }
  const request = isRequest(input) && Object.keys(init).length === 0 ? input : new Request(input, init);
  const { url, method, headers, signal } = request;
  return {
    signal,
    text: () => request.text(),
    send: (fetch, body) => fetch(url, { method, headers: sized(headers), signal, body, redirect: request.redirect, credentials: request.credentials }),
  };
}

// sized returns headers without the length of the body, which may have changed.
function sized(headers: RequestInit["headers"]): Headers {
  const others = new Headers(headers);
  others.delete("content-length");
  return others;
}

async function metered({ api, streamed, hidesUsage }: ModelRequest, hold: Hold, signal: AbortSignal | undefined, send: () => Promise<Response>): Promise<Response> {
  let response: Response;
  try {
    signal?.throwIfAborted();
  } catch (error) {
    await hold.rollback("not sent");
    throw error;
  }
  try {
    response = await send();
  } catch (error) {
    await (new Lost(error).notSent ? hold.rollback("not sent") : hold.commitAll());
    throw error;
  }
  if (!response.ok) {
    await hold.rollback(`status ${response.status}`);
    return response;
  }
  if (response.body === null) {
    await hold.commitAll(); // it was sent, and answered with nothing
    return response;
  }
  hold.touch();
  const isStream = response.headers.get("content-type")?.includes("text/event-stream") ?? streamed;
  const answer = answerOf(api, isStream);
  const filter = isStream && hidesUsage ? new WithoutUsageChunk() : undefined;
  const followed = new Response(follow(response.body, answer, filter, hold, signal), response);
  if (filter !== undefined) {
    followed.headers.delete("content-length"); // it makes the answer shorter
  }
  Object.defineProperty(followed, "url", { value: response.url });
  return followed;
}

// follow passes the bytes on as they come, and settles at the end, whichever side ends it. It heeds the signal itself: if that aborts while
// the answer begins, the body of Node's fetch neither goes on nor ends.
function follow(
  body: ReadableStream<Uint8Array>, answer: Answer, filter: WithoutUsageChunk | undefined, hold: Hold, signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const settle = async (): Promise<void> => {
    signal?.removeEventListener("abort", breakOff);
    if (answer.isComplete) {
      return hold.commit(answer.usage, answer.serviceTier);
    }
    return answer.mostOutput === undefined ? hold.commitAll() : hold.commitMost(answer.input, answer.mostOutput);
  };
  const breakOff = (): Promise<void> => settle().catch(() => {}); // the reader that UsageMissing would matter to is gone
  signal?.addEventListener("abort", breakOff, { once: true });
  if (signal?.aborted) {
    void breakOff(); // it aborted while the answer began
  }
  // next returns bytes that pass; undefined: no more come.
  const next = async (): Promise<Uint8Array | undefined> => {
    for (;;) {
      const { done, value } = await unlessAborted(reader.read(), signal);
      if (done) {
        answer.end();
        return undefined;
      }
      hold.touch();
      answer.push(value);
      const passed = filter === undefined ? value : filter.push(value);
      if (passed.length > 0) {
        return passed;
      }
    }
  };
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const passRest = () => {
          const rest = filter?.end() ?? new Uint8Array();
          return rest.length > 0 && controller.enqueue(rest);
        };
        try {
          const bytes = await next();
          if (bytes !== undefined) {
            controller.enqueue(bytes);
            return;
          }
          passRest();
        } catch (error) {
          passRest();
          void reader.cancel(error).catch(() => {});
          await breakOff(); // the error of the connection matters more than one of its own
          throw error;
        }
        await settle();
        controller.close();
      },
      async cancel(reason) {
        await Promise.all([reader.cancel(reason), breakOff()]);
      },
    },
    { highWaterMark: 0 }, // nothing is read ahead of who reads
  );
}

// refused throws why nothing was sent. The clients of OpenAI and Anthropic would send a request whose fetch throws again, and wrap
// the error; what throws when they look at the response reaches their caller at once, as it is.
function refused(error: unknown, headers: Headers): Response {
  const isOurs = error instanceof RemitError || error instanceof UnboundedCall || error instanceof UnknownModel || error instanceof UsageMissing;
  if (!isOurs || !headers.has("x-stainless-retry-count")) {
    throw error;
  }
  const response = new Response(null, { status: 403 });
  const look = { get: () => { throw error; } };
  return Object.defineProperties(response, { headers: look, ok: look, status: look, body: look });
}
