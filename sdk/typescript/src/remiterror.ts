// The base of all errors.

/** What is wrong with one field of a request. */
export interface FieldError {
  readonly field: string;
  readonly message: string;
}

/** The content of an error response. */
export interface Said {
  readonly status: number;
  readonly code?: string;
  readonly detail?: string;
  readonly requestId?: string;
  readonly fields?: readonly FieldError[];
  readonly retryAfter?: number | undefined;
  readonly clockSkew?: number | undefined; // seconds; see InvalidProof
  readonly cause?: unknown;
  readonly more?: string; // what a subclass adds to the text
}

/**
 * Any failure of a call. OutcomeUnknown means that a write may have happened; every other error means that it did not. No error
 * contains a credential.
 */
export class RemitError extends Error {
  override name = "RemitError";
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** Machine-readable, such as invalid_request; empty if the response did not come from Remit. */
  readonly code: string;
  /** A text for people. */
  readonly detail: string;
  /** The request id in the service's log; empty if unknown. */
  readonly requestId: string;
  readonly fields: readonly FieldError[];
  /** In seconds; undefined if the response does not say. */
  readonly retryAfter: number | undefined;

  constructor(place: string, said: Said) {
    super(`remit: ${place}: ${line(said)}`, said.cause === undefined ? undefined : { cause: said.cause });
    this.status = said.status;
    this.code = said.code ?? "";
    this.detail = said.detail ?? "";
    this.requestId = said.requestId ?? "";
    this.fields = said.fields ?? [];
    this.retryAfter = said.retryAfter;
  }
}

/** Adds to the text of an error. The stack has the one that it was made with. */
export function addText(error: Error, text: string): void {
  const { message, stack } = error;
  error.message = `${message}; ${text}`;
  if (stack !== undefined) {
    error.stack = stack.replace(message, () => error.message);
  }
}

// line returns the message of an error: the content of the response, and what a subclass adds.
function line(said: Said): string {
  const { detail = "", more = "" } = said;
  const parts = [...(said.fields ?? []).map((f) => `${f.field} ${f.message}`.trim()), more];
  const added = parts.filter((part) => part !== "" && !`; ${detail}; `.includes(`; ${part}; `)).map((part) => `; ${part}`).join("");
  const head = [said.status || "", said.code].filter(Boolean).join(" ");
  return [head, detail + added].filter(Boolean).join(": ") + (said.requestId ? ` (request ${said.requestId})` : "");
}
