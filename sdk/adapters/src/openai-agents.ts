/**
 * Models and tools of OpenAI's Agents SDK that are bounded by a session. Its hooks cannot refuse a call, so these wrap what is called.
 */
import { getDefaultModel, type Model, type ModelProvider, type ModelRequest, type StreamEvent, type Usage } from "@openai/agents";
import type { Session } from "@remit/sdk";
import { isBoundedByBytes, Metering, UnboundedCall, usageOfTotals, type MeteringOptions, type ModelCall, type TokenUsage } from "@remit/sdk/metering";
import type { Prices } from "@remit/sdk/prices";
import { bytesOf, mostInput } from "./bytes.js";
import { highest, type Count } from "./counts.js";
import { refusalOf } from "./refusal.js";

export { chargedTool, type ToolPrice } from "./tool.js";

/**
 * Returns a provider whose models are metered. Pass it to `new Runner({ modelProvider })`, or to `setDefaultModelProvider` for all
 * runs, those of agents as tools included. It holds the worst case of each call, and commits what the call cost when its answer
 * ends. A hold that does not fit throws LimitReached out of the run, and nothing is sent.
 */
export function meteredModelProvider(session: Session, prices: Prices, provider: ModelProvider, options: MeteringOptions = {}): ModelProvider {
  const metering = new Metering(session, prices, options);
  return {
    getModel: async (given) => {
      const name = given || getDefaultModel(); // a provider may have another default
      return metered(metering, await provider.getModel(name), name);
    },
  };
}

/** Like meteredModelProvider, for one model, such as that of an agent which is given a Model instead of a name. */
export function meteredModel(session: Session, prices: Prices, model: Model, name: string, options: MeteringOptions = {}): Model {
  return metered(new Metering(session, prices, options), model, name);
}

/**
 * An `errorFunction` for tools whose function is a chargedTool: it tells the model why a call was refused and what is left. Other
 * errors stay what the Agents SDK makes of them by default.
 */
export function explainRefusal(_context: unknown, error: unknown): string {
  return refusalOf(error, "the tool")?.text ?? "An error occurred while running the tool. Please try again.";
}

function metered(metering: Metering, model: Model, name: string): Model {
  const own: Pick<Model, "getResponse" | "getStreamedResponse"> = {
    async getResponse(request) {
      const hold = await metering.hold(callOf(name, request), request.signal);
      let response: Awaited<ReturnType<Model["getResponse"]>>;
      try {
        response = await model.getResponse(request);
      } catch (error) {
        await hold.fail(error);
        throw error;
      }
      await hold.commit(usageOf(response.usage, hasOutput(response.output)), response.providerData?.["service_tier"]);
      return response;
    },
    getStreamedResponse: (request) => follow(metering, model, name, request),
  };
  // All else is the model's own.
  return new Proxy(model, {
    get(target, member) {
      if (member === "getResponse" || member === "getStreamedResponse") {
        return own[member];
      }
      const value: unknown = Reflect.get(target, member, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

// follow passes the events on as they come, and settles at the end, whichever side ends it.
async function* follow(metering: Metering, model: Model, name: string, request: ModelRequest): AsyncIterable<StreamEvent> {
  const hold = await metering.hold(callOf(name, request), request.signal);
  const bytes = { raw: 0, events: 0 }; // the same answer, in the provider's events and in the SDK's own
  const streamed = () => Math.max(bytes.raw, bytes.events);
  let told: TokenUsage | undefined; // by the provider, at the end of a chat completion
  let tier: unknown; // told by it too
  let hasCome = false; // output
  try {
    for await (const event of model.getStreamedResponse(request)) {
      hold.touch();
      bytes[event.type === "model" ? "raw" : "events"] += bytesOf(event);
      hasCome ||= isOutput(event);
      told = chatUsageOf(event, hasCome) ?? told;
      tier = tierOf(event) ?? tier;
      const end = endOf(event, hasCome);
      if (end !== undefined) {
        await hold.commit(end.usage, tier);
      }
      yield event;
    }
  } catch (error) {
    // The Agents SDK refuses an answer all of which was reasoning, when it has ended.
    await (told !== undefined && isBehaviorError(error) ? hold.commit(told, tier) : hold.fail(error, streamed()));
    throw error;
  } finally {
    await hold.commitMost(undefined, streamed()); // unless it is settled
  }
}

// isBehaviorError knows the error by its name: it may be of another copy of the Agents SDK.
function isBehaviorError(error: unknown): boolean {
  return (error as { readonly name?: unknown } | undefined)?.name === "ModelBehaviorError";
}

type Members = Readonly<Record<string, unknown>>;

// sentOf returns what the settings add to the members of the request, or replace.
function sentOf({ providerData = {}, reasoning }: ModelRequest["modelSettings"]): Members {
  const { extra_body, extraBody, ...members } = providerData as Members;
  const extra = extra_body ?? extraBody ?? {};
  if (typeof extra !== "object") {
    throw new UnboundedCall("a call of OpenAI's Agents SDK", "its extra body is no object");
  }
  return { ...(reasoning && { reasoning }), ...members, ...extra };
}

function callOf(model: string, request: ModelRequest): ModelCall {
  const { systemInstructions, input, tools, handoffs, outputType, prompt, previousResponseId, conversationId, modelSettings } = request;
  if (prompt !== undefined && request.overridePromptModel !== true) {
    throw new UnboundedCall(`call of ${JSON.stringify(model)}`, "its stored prompt chooses the model: give the agent a model of its own");
  }
  const sent = sentOf(modelSettings);
  const refers = [prompt, previousResponseId, conversationId, ...references.map((name) => sent[name])].some((of) => (of ?? undefined) !== undefined);
  const most = highest(model, [["modelSettings.maxTokens", modelSettings.maxTokens], ...maxima.map((name): Count => [name, sent[name]])]);
  return {
    model,
    inputBytes: mostInput([systemInstructions, input, tools, handoffs, outputType, modelSettings], [...tools, ...handoffs]),
    refersElsewhere: refers || tools.some(({ type }) => type !== "function") || !isBoundedByBytes([input, sent["input"], sent["messages"]]),
    maxOutputTokens: most?.[1],
    maxOutputName: most?.[0] ?? "modelSettings.maxTokens",
    answers: highest(model, ["n", "best_of"].map((name) => [name, sent[name]]))?.[1] ?? 1,
    members: { ...sent, prompt: input },
  };
}

const maxima = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
const references = ["previous_response_id", "conversation", "prompt", "tools", "container", "mcp_servers", "web_search_options", "plugins"];

type Counts = Pick<Usage, "inputTokens" | "outputTokens"> & { readonly inputTokensDetails?: unknown; readonly outputTokensDetails?: unknown };

// usageOf returns undefined for 0 tokens of input, which the Agents SDK reports if the provider reports nothing. Models of any origin
// may lack usage, whatever its type says.
function usageOf(usage: Counts | undefined, hasOutput: boolean): TokenUsage | undefined {
  if (usage === undefined || usage.inputTokens === 0) {
    return undefined;
  }
  const { inputTokens, outputTokens, inputTokensDetails, outputTokensDetails } = usage;
  return usageOfTotals(inputTokens, detail(inputTokensDetails, "cached_tokens"), outputTokens, detail(outputTokensDetails, "reasoning_tokens"), 0, hasOutput);
}

interface ChatChunk {
  readonly object?: unknown;
  readonly usage?: {
    readonly prompt_tokens?: unknown;
    readonly prompt_tokens_details?: { readonly cached_tokens?: unknown } | null;
    readonly completion_tokens?: unknown;
    readonly completion_tokens_details?: { readonly reasoning_tokens?: unknown } | null;
  } | null;
}

function chatUsageOf(event: StreamEvent, hasOutput: boolean): TokenUsage | undefined {
  const { object, usage } = (event.type === "model" ? event.event : {}) as ChatChunk;
  if (object !== "chat.completion.chunk" || !usage) {
    return undefined;
  }
  return usageOfTotals(usage.prompt_tokens, usage.prompt_tokens_details?.cached_tokens, usage.completion_tokens, usage.completion_tokens_details?.reasoning_tokens, 0, hasOutput);
}

// tierOf returns the service tier that an event tells: a chunk of a chat completion, an event of a response, or the end of either.
function tierOf(event: StreamEvent): unknown {
  const said = event.type === "response_done" ? (event.response as { readonly providerData?: unknown }).providerData : event.type === "model" ? event.event : undefined;
  const { service_tier: own, response } = (said ?? {}) as { readonly service_tier?: unknown; readonly response?: { readonly service_tier?: unknown } };
  return own ?? response?.service_tier ?? undefined;
}

// endOf returns the usage in an event that ends a response. The Agents SDK makes no response_done of a response that
// ended before it was complete, such as at its maximum of tokens.
function endOf(event: StreamEvent, hasCome: boolean): { readonly usage: TokenUsage | undefined } | undefined {
  if (event.type === "response_done") {
    return { usage: usageOf(event.response.usage, hasCome || hasOutput(event.response.output)) };
  }
  const { type, response } = (event.type === "model" ? event.event : {}) as { type?: unknown; response?: { usage?: RawUsage | null; output?: unknown } };
  const usage = response?.usage ?? undefined;
  if (type !== "response.incomplete" && (type !== "response.failed" || usage === undefined)) {
    return undefined;
  }
  return { usage: usage && usageOfTotals(usage.input_tokens, usage.input_tokens_details?.cached_tokens, usage.output_tokens, usage.output_tokens_details?.reasoning_tokens, 0, hasCome || hasOutput(response?.output)) };
}

// isOutput reports whether an event has text, or is a chunk of a chat completion with more than the role.
function isOutput(event: StreamEvent): boolean {
  const { choices } = (event.type === "model" ? event.event : {}) as { readonly choices?: unknown };
  const deltas = Array.isArray(choices) ? choices.map((choice: { delta?: object | null }) => Object.entries(choice.delta ?? {})) : [];
  return (event.type === "output_text_delta" && event.delta !== "") || deltas.some((delta) => delta.some(([name, value]) => name !== "role" && (value ?? "") !== ""));
}

// hasOutput reports whether an answer has more than empty messages.
function hasOutput(output: unknown): boolean {
  const items = Array.isArray(output) ? (output as { readonly type?: unknown; readonly content?: unknown }[]) : [];
  return items.some(({ type, content }) => type !== "message" || (Array.isArray(content) && content.some(({ text }: { text?: unknown }) => text !== "")));
}

interface RawUsage {
  readonly input_tokens?: unknown;
  readonly input_tokens_details?: { readonly cached_tokens?: unknown };
  readonly output_tokens?: unknown;
  readonly output_tokens_details?: { readonly reasoning_tokens?: unknown };
}

// detail adds up a count of the requests that a response took.
function detail(details: unknown, name: string): number {
  const all = (Array.isArray(details) ? details : [details]) as (Record<string, number | null> | undefined)[];
  return all.reduce((sum, one) => sum + (one?.[name] ?? 0), 0);
}
