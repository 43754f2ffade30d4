// Recognizes calls of models among HTTP requests, and what bounds them.

import { isBoundedByBytes } from "./content.js";
import type { ModelCall } from "./metering.js";
import { UnboundedCall, UsageMissing } from "./meteringerrors.js";
import { membersOf, type Members } from "./modelusage.js";

/** An API by which models are called: OpenAI's chat completions and responses, and Anthropic's messages. */
export type Api = "chat" | "responses" | "messages";

/** A call of a model. */
export interface ModelRequest {
  readonly api: Api;
  readonly call: ModelCall;
  readonly streamed: boolean;
  readonly body: string; // to send; it asks for the usage
}

const apis: readonly (readonly [RegExp, Api])[] = [
  [/\/chat\/completions$/, "chat"],
  [/\/responses$/, "responses"],
  [/\/messages$/, "messages"],
];
const free = /\/(messages\/count_tokens|responses\/input_tokens|cancel)$/;

/** Returns the API of a request; undefined: it costs nothing. Throws UnboundedCall for one that nobody knows the cost of. */
export function apiOf(method: string, url: URL): Api | undefined {
  if (method !== "POST") {
    return undefined;
  }
  const path = url.pathname.replace(/\/+$/, "");
  const api = apis.find(([pattern]) => pattern.test(path))?.[1];
  if (api === undefined && !free.test(path)) {
    throw new UnboundedCall(`${method} ${path}`, "it is no call that can be metered: send it with another fetch, within a transaction of the session");
  }
  return api;
}

const maxima: Readonly<Record<Api, readonly string[]>> = {
  chat: ["max_tokens", "max_completion_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};

/** Reads the body of a call. Throws UnboundedCall, and UsageMissing for a stream that is not to report its usage. */
export function readRequest(api: Api, text: string): ModelRequest {
  const body = parsed(text);
  const model = body["model"];
  if (typeof model !== "string") {
    throw new UnboundedCall("a call of a model", "its body is no JSON object with a model");
  }
  const unbounded = (why: string) => new UnboundedCall(`call of ${JSON.stringify(model)}`, why);
  if (api === "responses" && body["background"] === true) {
    throw unbounded("it runs in the background, and its usage comes later: send it without background");
  }
  const number = (name: string, least: number) => {
    const value = body[name] ?? undefined;
    if (value !== undefined && !(Number.isSafeInteger(value) && (value as number) >= least)) {
      throw unbounded(`${name} must be a whole number from ${least} on`);
    }
    return value as number | undefined;
  };
  const given = maxima[api].map((name) => number(name, 1)).filter((most) => most !== undefined);
  const streamed = body["stream"] === true;
  const asked = api === "chat" && streamed ? withUsage(model, body) : undefined;
  const sent = asked === undefined ? text : JSON.stringify(asked);
  const call = {
    model,
    inputBytes: new TextEncoder().encode(sent).length,
    refersElsewhere: refersElsewhere(api, body),
    maxOutputTokens: given.length === 0 ? undefined : Math.max(...given),
    answers: api === "chat" ? (number("n", 1) ?? 1) : 1,
  };
  return { api, call, streamed, body: sent };
}

function parsed(text: string): Members {
  try {
    return membersOf(JSON.parse(text));
  } catch {
    return {};
  }
}

// withUsage returns the body of a stream that asks for the usage; undefined: it does already.
function withUsage(model: string, body: Members): Members | undefined {
  const options = membersOf(body["stream_options"]);
  const included = options["include_usage"] ?? undefined;
  if (included === true) {
    return undefined;
  }
  if (included !== undefined) {
    throw new UsageMissing(model, "stream_options.include_usage is off, so nothing was sent");
  }
  return { ...body, stream_options: { ...options, include_usage: true } };
}

// Members that stand for a prompt that is not in the request.
const references: readonly string[] = ["previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options"];
function refersElsewhere(api: Api, body: Members): boolean {
  const tools = Array.isArray(body["tools"]) ? body["tools"].map(membersOf) : [];
  const hosted = tools.some(({ type = "function" }) => type !== "function" && type !== "custom");
  const referred = references.some((name) => (body[name] ?? undefined) !== undefined && (api !== "chat" || name !== "prompt"));
  const prompt = [body[api === "responses" ? "input" : "messages"], body["system"]];
  return hosted || referred || !isBoundedByBytes(prompt);
}
