const redacted = "[credential]";

/**
 * An API key or an agent's secret. Wherever it is printed it reads [credential]; `reveal()` is the text itself. It refuses
 * to be written as JSON, where it would be either leaked or lost.
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
    throw new TypeError("remit: a Credential is not written as JSON: reveal() it to store it");
  }

  /** What Node and Deno print. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return redacted;
  }
}

/** The text of a credential that may have come from elsewhere. */
export function reveal(credential: string | Credential): string {
  return typeof credential === "string" ? credential : credential.reveal();
}

/** The text of a credential as a header takes it. What it does not take, fetch would quote in its error. */
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
