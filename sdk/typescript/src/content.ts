// Tells which content of a prompt has no more tokens than its request has bytes.

import { membersOf } from "./modelusage.js";

// Types of content that is text, in the APIs of OpenAI and Anthropic and in the frameworks that have adapters.
const texts: ReadonlySet<unknown> = new Set([
  "message", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "reasoning", "thinking",
  "redacted_thinking", "tool_use", "tool_result", "function_call", "function_call_output", "function_call_result", "custom_tool_call",
  "custom_tool_call_output", "tool-call", "tool-result", "tool_call", "tool_call_chunk", "json", "error-text", "error-json", "execution-denied", "content",
]);
const mostDepth = 1000;

/**
 * The most tokens of the prompt that a provider puts before a request with tools. Anthropic's has a few hundred, by its pages on
 * tool use.
 */
export function toolPrompt(tools: unknown): number {
  return Array.isArray(tools) && tools.length > 0 ? 1000 : 0;
}

/**
 * Returns whether the content of a prompt has no more tokens than bytes: it is text. An image has as many as its size in pixels
 * makes, however few bytes it is compressed to; and files and what is elsewhere can have any number.
 */
export function isBoundedByBytes(content: unknown): boolean {
  return isBounded(content, mostDepth);
}

function isBounded(content: unknown, depth: number): boolean {
  if (typeof content !== "object" || content === null) {
    return true;
  }
  if (depth === 0) {
    return false;
  }
  if (Array.isArray(content)) {
    return content.every((part) => isBounded(part, depth - 1));
  }
  const { type, role, content: inner, text, output, audio, value } = membersOf(content);
  if ((type ?? undefined) === undefined) {
    if ((role ?? inner ?? text ?? undefined) === undefined) {
      return false; // the id of an item that the provider keeps
    }
  } else if (!texts.has(type)) {
    return false;
  }
  return (audio ?? undefined) === undefined && [inner, output, type === "content" ? value : undefined].every((part) => isBounded(part, depth - 1));
}
