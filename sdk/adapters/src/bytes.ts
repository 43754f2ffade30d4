const encoder = new TextEncoder();

/**
 * Returns how many bytes a value has as JSON, at least as many as it has tokens as text. Members that hold bytes do not count: they
 * are no text.
 */
export function bytesOf(value: unknown): number {
  const text: string | undefined = JSON.stringify(value, (_, member: unknown) => (ArrayBuffer.isView(member) || typeof member === "bigint" ? null : member));
  return text === undefined ? 0 : encoder.encode(text).length;
}
