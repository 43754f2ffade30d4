import { toolPrompt } from "@remit/sdk/metering";

const encoder = new TextEncoder();
const envelope = 512; // bytes of a request around its parts, such as the names of its members

/**
 * Returns how many bytes a value has as JSON, at least as many as it has tokens as text. Members that hold bytes do not count: they
 * are no text.
 */
export function bytesOf(value: unknown): number {
  const text: string | undefined = JSON.stringify(value, (_, member: unknown) => (ArrayBuffer.isView(member) || typeof member === "bigint" ? null : member));
  return text === undefined ? 0 : encoder.encode(text).length;
}

/** Returns at least the tokens of input of a request that is made of these parts: a token is at least a byte. */
export function mostInput(parts: readonly unknown[], tools: readonly unknown[]): number {
  return envelope + bytesOf(parts) + toolPrompt(tools);
}
