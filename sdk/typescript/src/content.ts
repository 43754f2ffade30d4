// Tells which content of a prompt has no more tokens than its request has bytes.

import { membersOf } from "./modelusage.js";

// Types of content that is text, in the APIs of OpenAI and Anthropic and in the frameworks that have adapters.
const texts: ReadonlySet<unknown> = new Set([
  undefined, "message", "text", "input_text", "output_text", "summary_text", "reasoning_text", "refusal", "reasoning", "thinking",
  "redacted_thinking", "tool_use", "tool_result", "function_call", "function_call_output", "function_call_result", "custom_tool_call",
  "custom_tool_call_output", "tool-call", "tool-result", "tool_call", "tool_call_chunk", "json", "error-text", "error-json", "execution-denied", "content",
]);
// An image of which the request has the bytes. No image has more tokens than that.
const images: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image"]);

/**
 * Returns whether the content of a prompt has no more tokens than bytes: it is text, or images that it holds itself. Files and
 * what is elsewhere, such as an image by its URL, can have more.
 */
export function isBoundedByBytes(content: unknown): boolean {
  if (Array.isArray(content)) {
    return content.every(isBoundedByBytes);
  }
  if (typeof content !== "object" || content === null) {
    return true;
  }
  const { type, content: inner, output, source, image_url: image, image: other, value } = membersOf(content);
  if (images.has(type)) {
    const url = membersOf(image)["url"] ?? image ?? other;
    return membersOf(source)["type"] === "base64" || (typeof url === "string" && url.startsWith("data:"));
  }
  return texts.has(type) && [inner, output, type === "content" ? value : undefined].every(isBoundedByBytes);
}
