/** Middleware for models of Vercel's `ai`, which bounds their calls by a session. */
import type { Prices } from "@remit/sdk/prices";
import { isBoundedByBytes, Metering, usageOfTotals, type MeteringOptions, type ModelCall, type TokenUsage } from "@remit/sdk/metering";
import type { Session } from "@remit/sdk";
import type { LanguageModelMiddleware } from "ai";
import { FollowedParts, isOutput, type Finish, type Settle, type WrapStream } from "./aistream.js";
import { mostInput } from "./bytes.js";
import { highest, type Count } from "./counts.js";

type Call = Parameters<WrapStream>[0];

/**
 * Returns middleware for `wrapLanguageModel`. It holds the worst case of each call, and commits what the call cost when its answer
 * ends. A hold that does not fit throws LimitReached, and nothing is sent. A complete answer without usage is UsageMissing: an error
 * of generateText, and an error part of a stream.
 *
 * A stream is read to its end although its reader breaks off, because `ai` does not tell the provider to stop. Abort a call to stop it.
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
      await hold.commit(usageOf(result.usage, result.content.some(isOutput)), tierOf(result.providerMetadata, result.response?.body));
      return result;
    },
    async wrapStream({ doStream, params, model }) {
      const hold = await metering.hold(callOf(model, params), params.abortSignal);
      try {
        const result = await doStream();
        hold.touch();
        return { ...result, stream: new FollowedParts(result.stream, hold, settle, params.abortSignal).stream };
      } catch (error) {
        await hold.fail(error);
        throw error;
      }
    },
  };
}

// Options of providers that stand for a prompt that is not in the call.
const references = ["previous_response_id", "conversation", "prompt", "container", "mcp_servers", "web_search_options", "plugins"];

function callOf(model: Call["model"], params: Call["params"]): ModelCall {
  const { prompt, tools = [], responseFormat, providerOptions = {}, reasoning } = params;
  const options = Object.values(providerOptions).map((of) => membersOf(of) as Members);
  const refers = options.some((of) => references.some((name) => (of[name] ?? undefined) !== undefined));
  const most = mostOutput(model, params, options);
  const answers = highest(model.modelId, options.flatMap((of) => ["n", "best_of"].map((name): Count => [name, of[name]])));
  return {
    model: model.modelId,
    inputBytes: mostInput([prompt, tools, responseFormat, providerOptions], tools),
    refersElsewhere: refers || tools.some(({ type }) => type !== "function") || !isBoundedByBytes(prompt),
    maxOutputTokens: most?.[1],
    maxOutputName: most?.[0] ?? "maxOutputTokens",
    answers: answers?.[1] ?? 1,
    members: { ...membersOf({ prompt, tools, ...(asksItself(reasoning) ? { reasoning } : {}), providerOptions }) as object, service_tier: askedTier(options) },
  };
}

type Members = { readonly [name: string]: unknown };

// The service tiers that a price table can have prices of.
const pricedTiers: readonly unknown[] = ["auto", "default", "flex", "priority", "standard_only"];

// askedTier returns the service tier that a call asks for; undefined: the provider decides. The packages of providers leave out flex
// where they think that the model lacks it. A tier without a price is returned whatever other providers are asked for: it is refused.
function askedTier(options: readonly Members[]): unknown {
  const tiers = new Set(options.map((of) => of["service_tier"] ?? undefined));
  tiers.delete(undefined);
  const unpriced = [...tiers].find((tier) => !pricedTiers.includes(tier));
  if (unpriced !== undefined) {
    return unpriced;
  }
  return tiers.has("priority") ? "priority" : tiers.size === 1 && !tiers.has("flex") ? [...tiers][0] : undefined;
}

// tierOf returns the service tier that an answer had, by what its provider says or by its body.
function tierOf(...said: readonly unknown[]): unknown {
  const parts = said.flatMap((one) => [one, ...Object.values((one ?? {}) as Members)]).filter((part) => typeof part === "object" && part !== null) as Members[];
  const tiers = parts.flatMap((part) => [part["serviceTier"], part["service_tier"], (part["usage"] as Members | undefined)?.["service_tier"]]);
  return tiers.find((tier) => typeof tier === "string");
}

const settle: Settle = (hold, { usage, providerMetadata }, hasOutput) => hold.commit(usageOf(usage, hasOutput), tierOf(providerMetadata));

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
  return Object.fromEntries(members.map(([name, member]) => [memberName(name), membersOf(member)]));
}

function memberName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

// asksItself reports whether a call asks the model to reason. That it need not is no promise that it does not.
function asksItself(reasoning: Call["params"]["reasoning"] = "none"): boolean {
  return reasoning !== "none" && reasoning !== "provider-default";
}

// Options of providers that replace the maximum of a call, as members of requests.
const maxima = ["max_completion_tokens", "max_output_tokens", "max_tokens"];

// mostOutput returns the maximum that the provider sends, and the name of what sets it; undefined: what the model can produce. The providers of Anthropic and
// Amazon add to the maximum what the model may think.
function mostOutput(
  { provider, modelId }: Call["model"], { maxOutputTokens, reasoning, providerOptions = {} }: Call["params"], options: readonly Members[],
): readonly [name: string, most: number] | undefined {
  const replacing = Object.values(providerOptions).flatMap((of) => Object.entries(of)).filter(([name]) => maxima.includes(memberName(name)));
  const most = highest(modelId, [["maxOutputTokens", maxOutputTokens], ...replacing]);
  const thoughts = options.map((of) => (of["thinking"] ?? of["reasoning_config"] ?? {}) as { readonly type?: unknown; readonly budget_tokens?: unknown });
  const budgets = thoughts.map(({ budget_tokens }) => budget_tokens).filter((budget) => typeof budget === "number");
  const choosesItself = asksItself(reasoning) || (budgets.length === 0 && thoughts.some(({ type }) => type === "enabled"));
  if (most === undefined || (choosesItself && /anthropic|bedrock/.test(provider))) {
    return undefined;
  }
  return [most[0], budgets.reduce((sum, budget) => sum + budget, most[1])];
}

// usageOf reads what providers of any origin report, which may lack parts whatever their types say.
function usageOf(usage: Partial<Finish["usage"]> | undefined, hasOutput: boolean): TokenUsage | undefined {
  const { inputTokens, outputTokens } = usage ?? {};
  return usageOfTotals(inputTokens?.total, inputTokens?.cacheRead, outputTokens?.total, outputTokens?.reasoning, inputTokens?.cacheWrite, hasOutput);
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
