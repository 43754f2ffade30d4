// A provider of models in this process: answers of which the tests choose every byte.
import { Prices } from "@remit/sdk/prices";
import type { Fetch } from "@remit/sdk/fetch";

export const prices = Prices.parse(`{
  "small": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6, "cache_read_input_token_cost": 1e-7, "max_input_tokens": 10000, "max_output_tokens": 1000},
  "open": {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6}
}`);

export const address = "https://provider.example/v1";

/** A part of a body: bytes, or something that happens instead of more bytes. */
export type Part = string | Error | (() => Promise<void>);

/** Returns an answer whose body has these parts. */
export function answer(parts: readonly Part[], type = "application/json", status = 200): Response {
  const left = [...parts];
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      for (;;) {
        const part = left.shift();
        if (part === undefined) {
          return controller.close();
        }
        if (part instanceof Error) {
          return controller.error(part);
        }
        if (typeof part === "string") {
          return controller.enqueue(new TextEncoder().encode(part));
        }
        await part();
      }
    },
  }, { highWaterMark: 0 });
  return new Response(body, { status, headers: { "Content-Type": type } });
}

export const events = (...data: readonly unknown[]) =>
  data.map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
export const stream = (...parts: readonly Part[]) => answer(parts, "text/event-stream");

/** Returns the bytes of an answer, one at a time. */
export function oneByOne(response: Response): Response {
  const split = new TransformStream<Uint8Array, Uint8Array>({
    transform: (chunk, controller) => chunk.forEach((byte) => controller.enqueue(Uint8Array.of(byte))),
  });
  return new Response(response.body!.pipeThrough(split), response);
}

/** A fetch that records the bodies and answers with what `reply` returns. */
export function recording(reply: () => Response | Promise<Response>): { fetch: Fetch; sent: string[] } {
  const sent: string[] = [];
  return { sent, fetch: async (_, init) => (sent.push(String(init?.body)), reply()) };
}
