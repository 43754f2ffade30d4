/** A callback handler for models of LangChain, which bounds their calls by a session. */
import { BaseCallbackHandler } from "@langchain/core/callbacks/base";
import type { Serialized } from "@langchain/core/load/serializable";
import type { BaseMessage } from "@langchain/core/messages";
import type { LLMResult } from "@langchain/core/outputs";
import type { Session } from "@remit/sdk";
import { isBoundedByBytes, Metering, UnboundedCall, usageOfTotals, type Hold, type MeteringOptions, type ModelCall, type TokenUsage } from "@remit/sdk/metering";
import type { Prices } from "@remit/sdk/prices";
import { bytesOf, mostInput } from "./bytes.js";
import { highest, type Count } from "./counts.js";

type Members = { readonly [name: string]: unknown };

/** A call that has begun. */
interface Run {
  readonly hold: Hold;
  bytes: number; // of its streamed answer so far
  end(): void;
}

/**
 * Holds the worst case of each call of a model, and commits what the call cost when its answer ends. A hold that does not fit throws
 * LimitReached, and nothing is sent. A complete answer without usage throws UsageMissing.
 *
 * LangChain repeats a failed request within a call, and does not tell its handlers who breaks off a stream without a signal: such a
 * call is committed in full within the time of its hold.
 */
export class MeteredCallbackHandler extends BaseCallbackHandler {
  override name = "remit";
  override awaitHandlers = true;
  override raiseError = true; // or a refusal would be a warning
  readonly #metering: Metering;
  readonly #runs = new Map<string, Run>();
  // The holds of all prompts of one `generate`, by the parameters that LangChain passes for all of them. If one is refused, none is sent.
  readonly #together = new WeakMap<object, { readonly holds: Set<Hold>; refused: boolean }>();

  constructor(session: Session, prices: Prices, options: MeteringOptions = {}) {
    super();
    this.#metering = new Metering(session, prices, options);
  }

  /** Returns the handler itself: a copy would not know the calls that have begun. */
  override copy(): BaseCallbackHandler {
    return this;
  }

  override async handleChatModelStart(
    _llm: Serialized, messages: BaseMessage[][], runId: string, _parent?: string, extra?: Record<string, unknown>, _tags?: string[], metadata?: Record<string, unknown>,
  ): Promise<void> {
    const prompt = messages.flat();
    await this.#start(runId, prompt, prompt.map(({ content }) => content), extra, metadata);
  }

  override async handleLLMStart(
    _llm: Serialized, prompts: string[], runId: string, _parent?: string, extra?: Record<string, unknown>, _tags?: string[], metadata?: Record<string, unknown>,
  ): Promise<void> {
    await this.#start(runId, prompts, [], extra, metadata);
  }

  override handleLLMNewToken(
    token: string, _indices: unknown, runId: string, _parent?: string, _tags?: string[], fields?: { readonly chunk?: unknown },
  ): void {
    const run = this.#runs.get(runId);
    if (run !== undefined) {
      run.bytes += bytesOf(fields?.chunk ?? token);
      run.hold.touch();
    }
  }

  override async handleLLMEnd(output: LLMResult, runId: string, _parent?: string, _tags?: string[], extra?: Record<string, unknown>): Promise<void> {
    const hold = this.#take(runId)?.hold;
    await (extra?.["cached"] === true ? hold?.rollback("answered from a cache") : hold?.commit(usageOf(output), tierOf(output)));
  }

  override async handleLLMError(error: unknown, runId: string, _parent?: string, _tags?: string[], extra?: Record<string, unknown>): Promise<void> {
    const run = this.#take(runId);
    await (extra?.["cached"] === true ? run?.hold.rollback("a cache failed") : run?.hold.fail(error, run.bytes));
  }

  async #start(runId: string, prompt: unknown, contents: unknown, extra: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}): Promise<void> {
    this.#forget();
    const signal = signalOf(membersOf(extra["options"])["signal"]);
    const call = callOf(prompt, contents, extra["invocation_params"], metadata);
    const group = this.#together.get(extra) ?? { holds: new Set(), refused: false };
    this.#together.set(extra, group);
    let hold: Hold;
    try {
      hold = await this.#metering.hold(call, signal);
    } catch (error) {
      group.refused = true;
      await Promise.all([...group.holds].map((other) => other.rollback("not sent")));
      throw error;
    }
    if (group.refused) {
      await hold.rollback("not sent");
      return;
    }
    group.holds.add(hold);
    this.#follow(runId, hold, signal);
  }

  // #forget lets go of calls that are settled although LangChain never told of their end.
  #forget(): void {
    for (const [runId, run] of this.#runs) {
      if (run.hold.isSettled) {
        this.#take(runId);
      }
    }
  }

  // #follow settles a call when its signal aborts: LangChain does not tell its handlers.
  #follow(runId: string, hold: Hold, signal: AbortSignal | undefined): void {
    const abort = () => {
      void hold.fail(signal?.reason, this.#take(runId)?.bytes);
    };
    const run = { hold, bytes: 0, end: () => signal?.removeEventListener("abort", abort) };
    this.#runs.set(runId, run);
    signal?.addEventListener("abort", abort, { once: true });
    if (signal?.aborted === true) {
      this.#take(runId);
      void hold.rollback("not sent");
    }
  }

  #take(runId: string): Run | undefined {
    const run = this.#runs.get(runId);
    this.#runs.delete(runId);
    run?.end();
    return run;
  }
}

// signalOf knows a signal by its shape: it may come from a polyfill or another realm.
function signalOf(value: unknown): AbortSignal | undefined {
  const signal = value as AbortSignal | undefined;
  return typeof signal?.addEventListener === "function" && typeof signal.throwIfAborted === "function" ? signal : undefined;
}

const maxima = ["max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens"];
const references = ["previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options", "plugins"];

function callOf(prompt: unknown, contents: unknown, given: unknown, metadata: Members): ModelCall {
  const params = membersOf(given);
  if (params !== given) {
    throw new UnboundedCall("a call of LangChain", "it does not say with which parameters");
  }
  const model = params["model"] ?? params["model_name"] ?? metadata["ls_model_name"];
  if (typeof model !== "string") {
    throw new UnboundedCall("a call of LangChain", "its model says neither model nor ls_model_name");
  }
  const bounds = [...maxima.map((name): Count => [name, params[name]]), ["maxTokens", metadata["ls_max_tokens"]] as const];
  const most = highest(model, bounds.filter(([, most]) => Number.isSafeInteger(most) && (most as number) > 0));
  const tools = Array.isArray(params["tools"]) ? params["tools"].map(membersOf) : [];
  const hosted = tools.some(({ type = "function" }) => type !== "function" && type !== "custom");
  return {
    model,
    inputBytes: mostInput([prompt, params], tools),
    refersElsewhere: hosted || references.some((name) => (params[name] ?? undefined) !== undefined) || !isBoundedByBytes(contents),
    maxOutputTokens: most?.[1],
    maxOutputName: most?.[0] === "maxOutputTokens" ? most[0] : "maxTokens", // as a model takes it, whatever the request says
    answers: highest(model, ["n", "best_of"].map((name) => [name, params[name]]))?.[1] ?? 1,
    members: { ...params, messages: contents },
  };
}

// usageOf reads the usage of the messages, or what a model that makes no messages reports.
function usageOf({ generations, llmOutput }: LLMResult): TokenUsage | undefined {
  const messages = generations.flat().map((generation) => membersOf(membersOf(generation)["message"]));
  const hasOutput = generations.flat().some(({ text }) => text) || messages.some((message) => ["content", "tool_calls"].some((name) => hasAny(message[name])));
  // A model without usage reports 0 tokens of input.
  const told = messages.map((message) => membersOf(message["usage_metadata"])).find((usage) => (usage["input_tokens"] ?? 0) !== 0);
  if (told !== undefined) {
    const [input, output] = [membersOf(told["input_token_details"]), membersOf(told["output_token_details"])];
    return usageOfTotals(told["input_tokens"], input["cache_read"], told["output_tokens"], output["reasoning"], input["cache_creation"], hasOutput);
  }
  const usage = membersOf(llmOutput?.["tokenUsage"]);
  return usage["promptTokens"] === 0 ? undefined : usageOfTotals(usage["promptTokens"], 0, usage["completionTokens"], 0, 0, hasOutput);
}

function hasAny(content: unknown): boolean {
  return Array.isArray(content) ? content.length > 0 : (content ?? "") !== "";
}

// tierOf returns the service tier that the provider says the answer had.
function tierOf({ generations, llmOutput }: LLMResult): unknown {
  const said = generations.flat().flatMap((generation) => {
    const { response_metadata: metadata } = membersOf(membersOf(generation)["message"]);
    return [metadata, membersOf(metadata)["usage"], membersOf(generation)["generationInfo"]];
  });
  return [...said, llmOutput].map((one) => membersOf(one)["service_tier"]).map((tier) => once(tier)).find((tier) => tier !== undefined);
}

// once returns a text that LangChain may have joined from those of several chunks.
function once(text: unknown): string | undefined {
  return typeof text === "string" ? /^(\w+?)\1*$/.exec(text)?.[1] : undefined;
}

function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null ? (value as Members) : {};
}
