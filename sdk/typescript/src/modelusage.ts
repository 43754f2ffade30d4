// Reads how many tokens a call used, in the words of each provider.

import type { TokenUsage } from "./prices.js";

/** A JSON object. */
export type Members = { readonly [name: string]: unknown };

/** Returns an object of JSON, and an empty one for anything else. */
export function membersOf(value: unknown): Members {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Members) : {};
}

/** The usage of chat completions; undefined: it is missing or not credible. */
export function chatUsage(value: unknown, hasOutput: boolean): TokenUsage | undefined {
  return openAIUsage(membersOf(value), "prompt_tokens", "completion_tokens", hasOutput);
}

/** The usage of OpenAI's responses. */
export function responsesUsage(value: unknown, hasOutput: boolean): TokenUsage | undefined {
  return openAIUsage(membersOf(value), "input_tokens", "output_tokens", hasOutput);
}

// openAIUsage returns undefined for a usage with audio, which has no price. A total of more than input and output counts reasoning that
// the output does not: xAI's, Google's.
function openAIUsage(usage: Members, input: string, output: string, hasOutput: boolean): TokenUsage | undefined {
  const [ofInput, ofOutput] = [membersOf(usage[`${input}_details`]), membersOf(usage[`${output}_details`])];
  const [allInput, all, told] = [count(usage[input]), count(usage[output]), count(ofOutput["reasoning_tokens"] ?? 0)];
  const total = count(usage["total_tokens"] ?? 0);
  const hasAudio = [ofInput, ofOutput].some((detail) => (detail["audio_tokens"] ?? 0) !== 0);
  if (allInput === undefined || all === undefined || told === undefined || total === undefined || hasAudio) {
    return undefined;
  }
  const beside = Math.max(total - allInput - all, 0);
  const reasoned = beside === told ? told : told + beside; // equal: the details are of all that is beside the output, or nothing is
  return totals(allInput, ofInput["cached_tokens"], all + beside, reasoned, ofInput["cache_write_tokens"], hasOutput);
}

/** The usage of Anthropic's messages. Its three counts of input exclude each other. */
export function messagesUsage(value: unknown, hasOutput: boolean): TokenUsage | undefined {
  const usage = membersOf(value);
  const counts = {
    input: count(usage["input_tokens"]),
    cachedInput: count(usage["cache_read_input_tokens"] ?? 0),
    cacheCreationInput: count(usage["cache_creation_input_tokens"] ?? 0),
    output: count(usage["output_tokens"]),
  };
  return Object.values(counts).includes(undefined) ? undefined : credible({ ...(counts as Counts), reasoning: 0 }, hasOutput);
}

/** The usage of a call whose totals include what was cached (read, created) and the reasoning, and whose answer has output or not. */
export function totals(
  input: unknown, cached: unknown, output: unknown, reasoning: unknown, created: unknown = 0, hasOutput = false,
): TokenUsage | undefined {
  const counts = [count(input), count(cached ?? 0), count(created ?? 0), count(output), count(reasoning ?? 0)] as const;
  if (counts.includes(undefined)) {
    return undefined;
  }
  const [allInput, cachedInput, cacheCreationInput, allOutput, reasoned] = counts as readonly [number, number, number, number, number];
  const usage = { input: allInput - cachedInput - cacheCreationInput, cachedInput, cacheCreationInput, output: allOutput - reasoned, reasoning: reasoned };
  return usage.input < 0 || usage.output < 0 ? undefined : credible(usage, hasOutput);
}

type Counts = Required<Omit<TokenUsage, "hourCacheCreationInput">>; // a request that could write to a cache for an hour is refused

// credible returns undefined for a usage that the answer cannot have. Every call has input, and all output has tokens: some servers
// report zeros where they count nothing.
function credible(usage: Counts, hasOutput: boolean): TokenUsage | undefined {
  const hasInput = usage.input + usage.cachedInput + usage.cacheCreationInput > 0;
  return hasInput && (usage.output + usage.reasoning > 0 || !hasOutput) ? usage : undefined;
}

/** Reports whether a message of a chat completion, or the delta of one, among its choices has anything but its role. */
export function choicesHaveOutput(choices: unknown, of: "message" | "delta"): boolean {
  const messages = Array.isArray(choices) ? choices.map((choice) => membersOf(membersOf(choice)[of])) : [];
  return messages.some((message) => Object.entries(message).some(([name, value]) => name !== "role" && !isEmpty(value)));
}

/** Reports whether a value of JSON holds nothing. */
export function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
}

function count(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}
