const redacted = "[credential]";

/**
 * An API key or an agent's secret. It prints as [credential]; `reveal()` returns the text. JSON.stringify refuses it, because
 * JSON would leak or lose it.
 */
export class Credential {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return redacted;
  }

  toJSON(): never {
    throw new TypeError("remit: a Credential cannot be written as JSON: use reveal() to store it");
  }

  /** What Node and Deno print. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return redacted;
  }
}

/** Returns the text of a credential that may be a plain string. */
export function reveal(credential: string | Credential): string {
  return typeof credential === "string" ? credential : credential.reveal();
}

/** Returns the text of a credential for a header. It refuses invalid characters, because fetch would quote them in its error. */
export function forHeader(credential: string | Credential): string {
  const text = reveal(credential);
  if (!isVisible(text)) {
    throw new TypeError("remit: the credential is empty, or has characters that no credential has");
  }
  return text;
}

export function isVisible(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text);
}
