// Recognizes calls of models among HTTP requests, and what bounds them.

import { isBoundedByBytes, toolPrompt } from "./content.js";
import type { ModelCall } from "./metering.js";
import { UnboundedCall, UsageMissing } from "./meteringerrors.js";
import { membersOf, type Members } from "./modelusage.js";
import { UnknownModel } from "./priceerrors.js";

/** An API by which models are called: OpenAI's chat completions and responses, and Anthropic's messages. */
export type Api = "chat" | "responses" | "messages";

/** A call of a model. */
export interface ModelRequest {
  readonly api: Api;
  readonly call: ModelCall;
  readonly streamed: boolean;
  readonly body: string; // to send; it asks for the usage
  readonly hidesUsage: boolean; // the caller did not ask for it
}

const apis: readonly (readonly [RegExp, Api])[] = [
  [/\/chat\/completions$/, "chat"],
  [/\/responses$/, "responses"],
  [/\/messages$/, "messages"],
];
const free = /\/(messages\/count_tokens|responses\/input_tokens|cancel)$/;

// By which a server may take a request for another than its method and path say.
const disguises = ["upgrade", "x-http-method", "x-http-method-override", "x-method-override"];
const mostBytes = 64 * 2 ** 20; // of a body

/** Returns the API of a request; undefined: it costs nothing. Throws UnboundedCall for one of unknown cost. */
export function apiOf(method: string, url: URL, headers: Headers): Api | undefined {
  const isDisguised = disguises.some((name) => headers.has(name));
  if (/^(GET|HEAD|OPTIONS|DELETE)$/.test(method) && !isDisguised) {
    return undefined;
  }
  const path = url.pathname.replace(/\/+$/, "");
  const api = apis.find(([pattern]) => pattern.test(path))?.[1];
  if (isDisguised || (api === undefined && !free.test(path))) {
    throw new UnboundedCall(`${method} ${path}`, "it is no call that can be metered: send it with another fetch, within a transaction of the session");
  }
  if (api !== undefined && headers.has("content-encoding")) {
    throw new UnboundedCall(`${method} ${path}`, "its body is compressed");
  }
  return api;
}

// The members that bound the output. Servers differ in which one they heed: the largest counts.
const maxima: Readonly<Record<Api, readonly string[]>> = {
  chat: ["max_tokens", "max_completion_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};
const answers: Readonly<Record<Api, readonly string[]>> = { chat: ["n", "best_of"], responses: [], messages: [] };

/** Reads the body of a call. Throws UnboundedCall, UnknownModel, and UsageMissing for a stream that is not to report its usage. */
export function readRequest(api: Api, text: string): ModelRequest {
  const body = text.length > mostBytes ? undefined : parsed(text);
  const twice = body === undefined ? undefined : duplicate(text);
  if (twice !== undefined) {
    throw new UnboundedCall("a call of a model", `its body has ${twice} twice, of which a server may take either`);
  }
  const model = body?.["model"] ?? "";
  if (body === undefined || typeof model !== "string") {
    throw new UnboundedCall("a call of a model", "its body is no JSON object with a model, or has more than 64 MiB");
  }
  if (model === "") {
    throw new UnknownModel(model);
  }
  const unbounded = (why: string) => new UnboundedCall(`call of ${JSON.stringify(model)}`, why);
  const streamed = body["stream"] ?? false;
  if (typeof streamed !== "boolean") {
    throw unbounded("stream must be true or false");
  }
  const highest = (names: readonly string[]): readonly [name: string, count: number] | undefined => {
    const given = names.filter((name) => (body[name] ?? undefined) !== undefined);
    const wrong = given.find((name) => !(Number.isSafeInteger(body[name]) && (body[name] as number) >= 1));
    if (wrong !== undefined) {
      throw unbounded(`${wrong} must be a whole number from 1 on`);
    }
    const counts = given.map((name) => [name, body[name] as number] as const);
    return counts.length === 0 ? undefined : counts.reduce((most, one) => (one[1] > most[1] ? one : most));
  };
  const asked = api === "chat" && streamed ? withUsage(model, body) : undefined;
  const sent = asked === undefined ? text : JSON.stringify(asked);
  const most = highest(maxima[api]);
  const call = {
    model,
    inputBytes: new TextEncoder().encode(sent).length + toolPrompt(body["tools"]),
    refersElsewhere: refersElsewhere(api, body),
    maxOutputTokens: most?.[1],
    maxOutputName: most?.[0] ?? maxima[api][0]!,
    answers: highest(answers[api])?.[1] ?? 1,
    members: body,
  };
  return { api, call, streamed, body: sent, hidesUsage: asked !== undefined };
}

function parsed(text: string): Members | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return membersOf(value) === value ? (value as Members) : undefined;
  } catch {
    return undefined;
  }
}

// duplicate returns a name that an object in a text of JSON has twice, at any depth.
function duplicate(text: string): string | undefined {
  const open: (Set<string> | undefined)[] = []; // of each object that is open its names; undefined: an array
  let isName = false;
  let start = -1; // of a text that is open
  for (const { 0: token, index } of text.matchAll(/\\.|["{}[\],]/g)) {
    if (token === '"' && start < 0) {
      start = index;
    } else if (token === '"') {
      const name = isName ? (JSON.parse(text.slice(start, index + 1)) as string) : undefined;
      if (name !== undefined && open.at(-1)!.has(name)) {
        return name;
      }
      if (name !== undefined) {
        open.at(-1)!.add(name);
      }
      [start, isName] = [-1, false];
    } else if (start < 0 && (token === "{" || token === "[")) {
      open.push(token === "{" ? new Set() : undefined);
      isName = token === "{";
    } else if (start < 0 && token === ",") {
      isName = open.at(-1) !== undefined;
    } else if (start < 0) {
      open.pop();
      isName = false; // a comma comes before the next name
    }
  }
  return undefined;
}

// withUsage returns the body of a stream that asks for the usage; undefined: it does already.
function withUsage(model: string, body: Members): Members | undefined {
  const given = body["stream_options"] ?? undefined;
  const options = membersOf(given);
  if (given !== undefined && options !== given) {
    throw new UnboundedCall(`call of ${JSON.stringify(model)}`, "stream_options must be an object");
  }
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
const references: readonly string[] = ["previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options", "plugins"];

function refersElsewhere(api: Api, body: Members): boolean {
  const tools = Array.isArray(body["tools"]) ? body["tools"].map(membersOf) : [];
  const hosted = tools.some(({ type }) => (type ?? "function") !== "function" && type !== "custom");
  const referred = references.some((name) => (body[name] ?? undefined) !== undefined && (api !== "chat" || name !== "prompt"));
  return hosted || referred || !isBoundedByBytes([body["messages"], body["input"], body["system"]]);
}
