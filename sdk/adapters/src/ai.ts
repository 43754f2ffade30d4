/** Middleware for models of Vercel's `ai`, which bounds their calls by a session. */
import type { Prices } from "@remit/sdk/prices";
import { isBoundedByBytes, Metering, usageOfTotals, type Hold, type MeteringOptions, type ModelCall, type TokenUsage } from "@remit/sdk/metering";
import type { Session } from "@remit/sdk";
import type { LanguageModelMiddleware } from "ai";
import { bytesOf, mostInput } from "./bytes.js";

type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type Call = Parameters<WrapStream>[0];
type Parts = Awaited<ReturnType<WrapStream>>["stream"];
type Part = Parts extends ReadableStream<infer T> ? T : never;
type Finish = Extract<Part, { type: "finish" }>;

/**
 * Returns middleware for `wrapLanguageModel`. It holds the worst case of each call, and commits what the call cost when its answer
 * ends. A hold that does not fit throws LimitReached, and nothing is sent. A complete answer without usage is UsageMissing: an error
 * of generateText, and an error part of a stream.
 */
export function meteredMiddleware(session: Session, prices: Prices, options: MeteringOptions = {}): LanguageModelMiddleware {
  const metering = new Metering(session, prices, options);
  return {
    async wrapGenerate({ doGenerate, params, model }) {
      const hold = await metering.hold(callOf(model, params), params.abortSignal);
      let result: Awaited<ReturnType<typeof doGenerate>>;
      try {
        result = await doGenerate();
      } catch (error) {
        await (lacksUsage(error) ? hold.commit(undefined) : hold.fail(error));
        throw error;
      }
      await hold.commit(usageOf(result.usage));
      return result;
    },
    async wrapStream({ doStream, params, model }) {
      const hold = await metering.hold(callOf(model, params), params.abortSignal);
      try {
        const result = await doStream();
        hold.touch();
        return { ...result, stream: follow(result.stream, hold, params.abortSignal) };
      } catch (error) {
        await hold.fail(error);
        throw error;
      }
    },
  };
}

// Options of providers that stand for a prompt that is not in the call.
const references = ["previousResponseId", "conversation", "container", "mcpServers"];

function callOf(model: Call["model"], params: Call["params"]): ModelCall {
  const { prompt, tools = [], responseFormat, providerOptions = {} } = params;
  const refers = Object.values(providerOptions).some((of) => references.some((name) => (of[name] ?? undefined) !== undefined));
  return {
    model: model.modelId,
    inputBytes: mostInput([prompt, tools, responseFormat, providerOptions], tools),
    refersElsewhere: refers || tools.some(({ type }) => type !== "function") || !isBoundedByBytes(prompt),
    maxOutputTokens: mostOutput(model.provider, params),
    members: membersOf({ prompt, tools, providerOptions }) as Record<string, unknown>,
  };
}

// membersOf returns what the options of providers become in requests, whose members have other names.
function membersOf(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(membersOf);
  }
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) {
    return value;
  }
  const { providerOptions, ...own } = value as Record<string, unknown>;
  const given: object[] = [own, ...Object.values((providerOptions ?? {}) as Record<string, object>)];
  const members = given.flatMap((of) => Object.entries(of));
  return Object.fromEntries(members.map(([name, member]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), membersOf(member)]));
}

// Options of providers that replace the maximum of a call.
const maxima = ["maxCompletionTokens", "maxOutputTokens", "maxTokens"];

// mostOutput returns the maximum that the provider sends; undefined: what the model can produce. The providers of Anthropic and
// Amazon add to the maximum what the model may think.
function mostOutput(provider: string, { maxOutputTokens, reasoning = "none", providerOptions = {} }: Call["params"]): number | undefined {
  const options: readonly { readonly [name: string]: unknown }[] = Object.values(providerOptions);
  const given = [maxOutputTokens, ...options.flatMap((of) => maxima.map((name) => of[name]))].filter((most) => typeof most === "number");
  const thoughts = options.map((of) => (of["thinking"] ?? of["reasoningConfig"] ?? {}) as { readonly type?: unknown; readonly budgetTokens?: unknown });
  const budgets = thoughts.map(({ budgetTokens }) => budgetTokens).filter((budget) => typeof budget === "number");
  const choosesItself = !["none", "provider-default"].includes(reasoning) || (budgets.length === 0 && thoughts.some(({ type }) => type === "enabled"));
  if (given.length === 0 || (choosesItself && /anthropic|bedrock/.test(provider))) {
    return undefined;
  }
  return budgets.reduce((sum, budget) => sum + budget, Math.max(...given));
}

// usageOf reads what providers of any origin report, which may lack parts whatever their types say.
function usageOf(usage: Partial<Finish["usage"]> | undefined): TokenUsage | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  return usageOfTotals(inputTokens?.total, inputTokens?.cacheRead, outputTokens?.total, outputTokens?.reasoning, inputTokens?.cacheWrite);
}

// lacksUsage reports whether a provider refuses a whole answer, and it has no usage.
function lacksUsage(error: unknown): boolean {
  const { statusCode, responseBody } = error as { readonly statusCode?: unknown; readonly responseBody?: unknown };
  try {
    const answer: unknown = statusCode === 200 && typeof responseBody === "string" ? JSON.parse(responseBody) : undefined;
    return typeof answer === "object" && answer !== null && !("usage" in answer && typeof answer.usage === "object");
  } catch {
    return false;
  }
}

// isUnreadable reports whether a provider could not read a part of an answer, which goes on.
function isUnreadable(error: unknown): boolean {
  return error instanceof Error && /^AI_(TypeValidation|JSONParse)Error$/.test(error.name);
}

// follow passes the parts on as they come, and settles at the end, whoever ends it.
function follow(parts: Parts, hold: Hold, signal: AbortSignal | undefined): Parts {
  const reader = parts.getReader();
  let bytes = 0;
  let failure: unknown;
  const breakOff = () => {
    signal?.removeEventListener("abort", breakOff);
    return hold.fail(failure, Math.max(bytes, 1));
  };
  signal?.addEventListener("abort", breakOff, { once: true });
  return new ReadableStream<Part>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read();
          if (done) {
            await breakOff(); // unless it has finished
            controller.close();
            return;
          }
          hold.touch();
          bytes += value.type === "raw" ? 0 : bytesOf(value);
          if (value.type === "error" && !isUnreadable(value.error)) {
            failure ??= value.error;
          }
          if (value.type === "finish" && failure === undefined) {
            await hold.commit(usageOf(value.usage)).catch((error: unknown) => controller.enqueue({ type: "error", error }));
          }
          controller.enqueue(value);
        } catch (error) {
          failure ??= error;
          await breakOff();
          throw error;
        }
      },
      async cancel(reason) {
        await Promise.all([reader.cancel(reason), breakOff()]);
      },
    },
    { highWaterMark: 0 }, // nothing is read ahead of who reads
  );
}
