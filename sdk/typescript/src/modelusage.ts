// Reads how many tokens a call used, in the words of each provider.

import type { TokenUsage } from "./prices.js";

/** A JSON object. */
export type Members = { readonly [name: string]: unknown };

/** Returns an object of JSON, and an empty one for anything else. */
export function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

/** The usage of chat completions; undefined: it is missing or not credible. */
export function chatUsage(value: unknown): TokenUsage | undefined {
  const usage = membersOf(value);
  const cached = membersOf(usage["prompt_tokens_details"])["cached_tokens"];
  const reasoning = membersOf(usage["completion_tokens_details"])["reasoning_tokens"];
  return totals(usage["prompt_tokens"], cached, usage["completion_tokens"], reasoning);
}

/** The usage of OpenAI's responses. */
export function responsesUsage(value: unknown): TokenUsage | undefined {
  const usage = membersOf(value);
  const cached = membersOf(usage["input_tokens_details"])["cached_tokens"];
  const reasoning = membersOf(usage["output_tokens_details"])["reasoning_tokens"];
  return totals(usage["input_tokens"], cached, usage["output_tokens"], reasoning);
}

/** The usage of Anthropic's messages. Its three counts of input exclude each other. */
export function messagesUsage(value: unknown): TokenUsage | undefined {
  const usage = membersOf(value);
  const counts = {
    input: count(usage["input_tokens"]),
    cachedInput: count(usage["cache_read_input_tokens"] ?? 0),
    cacheCreationInput: count(usage["cache_creation_input_tokens"] ?? 0),
    output: count(usage["output_tokens"]),
  };
  return Object.values(counts).includes(undefined) ? undefined : credible(counts as Required<Omit<TokenUsage, "reasoning">>);
}

/** The usage of a call whose totals include what was cached (read, created) and the reasoning. */
export function totals(input: unknown, cached: unknown, output: unknown, reasoning: unknown, created: unknown = 0): TokenUsage | undefined {
  const counts = [count(input), count(cached ?? 0), count(created ?? 0), count(output), count(reasoning ?? 0)] as const;
  if (counts.includes(undefined)) {
    return undefined;
  }
  const [allInput, cachedInput, cacheCreationInput, allOutput, reasoned] = counts as readonly [number, number, number, number, number];
  const usage = { input: allInput - cachedInput - cacheCreationInput, cachedInput, cacheCreationInput, output: allOutput - reasoned, reasoning: reasoned };
  return usage.input < 0 || usage.output < 0 ? undefined : credible(usage);
}

// credible returns undefined for a usage without input, which every call has: some servers report zeros where they count nothing.
function credible<T extends Required<Pick<TokenUsage, "input" | "cachedInput" | "cacheCreationInput">>>(usage: T): T | undefined {
  return usage.input + usage.cachedInput + usage.cacheCreationInput > 0 ? usage : undefined;
}

function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
