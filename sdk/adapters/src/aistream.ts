// Follows the answers of streamed calls of `ai`.

import type { Hold } from "@remit/sdk/metering";
import type { LanguageModelMiddleware } from "ai";
import { bytesOf } from "./bytes.js";

export type WrapStream = NonNullable<LanguageModelMiddleware["wrapStream"]>;
type Parts = Awaited<ReturnType<WrapStream>>["stream"];
type Part = Parts extends ReadableStream<infer T> ? T : never;
export type Finish = Extract<Part, { type: "finish" }>;
export type Settle = (hold: Hold, finish: Finish, hasOutput: boolean) => Promise<void>;

/**
 * Reads an answer as it comes, settles when it ends for whatever reason, and queues its parts for the reader. A reader that breaks off
 * cannot be detected: `ai` neither cancels nor reads a stream whose reader breaks off, and the provider produces the answer all the same.
 */
export class FollowedParts {
  readonly stream: Parts;
  readonly #reader: ReadableStreamDefaultReader<Part>;
  readonly #hold: Hold;
  readonly #settle: Settle;
  readonly #signal: AbortSignal | undefined;
  #parts: Part[] = []; // that came and were not read yet
  #hasEnded = false;
  #error: { readonly is: unknown } | undefined; // after the last part
  #bytes = 0;
  #reasoned = false;
  #hasOutput = false;
  #failure: unknown;
  #wake: () => void = () => {};

  constructor(parts: Parts, hold: Hold, settle: Settle, signal: AbortSignal | undefined) {
    this.#reader = parts.getReader();
    [this.#hold, this.#settle, this.#signal] = [hold, settle, signal];
    signal?.addEventListener("abort", this.#breakOff, { once: true });
    this.stream = new ReadableStream<Part>({
      pull: (controller) => this.#pull(controller),
      cancel: async (reason) => void (await Promise.all([this.#reader.cancel(reason), this.#breakOff()])),
    }, { highWaterMark: 0 });
    void this.#read();
  }

  // #breakOff settles what has not finished.
  readonly #breakOff = (): Promise<void> => {
    this.#signal?.removeEventListener("abort", this.#breakOff);
    return this.#reasoned ? this.#hold.commitAll() : this.#hold.fail(this.#failure, Math.max(this.#bytes, 1));
  };

  // #read never throws: what fails is for who reads.
  async #read(): Promise<void> {
    let error: { readonly is: unknown } | undefined;
    try {
      for (let next = await this.#reader.read(); !next.done; next = await this.#reader.read()) {
        await this.#take(next.value);
        this.#wake();
      }
    } catch (cause) {
      error = { is: cause };
      this.#failure ??= cause;
    }
    await this.#breakOff().catch((cause: unknown) => (error ??= { is: cause }));
    this.#error = error;
    this.#hasEnded = true;
    this.#wake();
  }

  async #take(part: Part): Promise<void> {
    this.#hold.touch();
    this.#bytes += part.type === "raw" ? 0 : bytesOf(part);
    this.#reasoned ||= part.type.startsWith("reasoning");
    this.#hasOutput ||= isOutput(part);
    if (part.type === "error" && !isUnreadable(part.error)) {
      this.#failure ??= part.error;
    }
    if (part.type === "finish" && this.#failure === undefined) {
      await this.#settle(this.#hold, part, this.#hasOutput).catch((error: unknown) => this.#parts.push({ type: "error", error }));
    }
    this.#parts.push(part);
  }

  async #pull(controller: ReadableStreamDefaultController<Part>): Promise<void> {
    while (this.#parts.length === 0 && !this.#hasEnded) {
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    const part = this.#parts.shift();
    if (part !== undefined) {
      controller.enqueue(part);
    } else if (this.#error !== undefined) {
      throw this.#error.is;
    } else {
      controller.close();
    }
  }
}

/** Reports whether a part of an answer, streamed or not, has output of the model. */
export function isOutput(part: object): boolean {
  const { type, text, delta = text } = part as { readonly type?: unknown; readonly text?: unknown; readonly delta?: unknown };
  return typeof type === "string" && (/^(tool|reasoning|file)/.test(type) || (/^text(-delta)?$/.test(type) && delta !== ""));
}

// isUnreadable reports whether a provider could not read a part of an answer, which goes on.
function isUnreadable(error: unknown): boolean {
  const { name } = (error ?? {}) as { readonly name?: unknown };
  return name === "AI_TypeValidationError" || name === "AI_JSONParseError";
}
