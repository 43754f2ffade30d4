import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import type { Session } from "@remit/sdk";
import { meteredFetch, UnboundedCall, UnknownModel, UsageMissing } from "@remit/sdk/fetch";
import { Prices } from "@remit/sdk/prices";

interface Row {
  readonly name: string;
  readonly path: string;
  readonly body: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly input?: number | null;
  readonly output?: number;
  readonly error?: string;
  readonly passes?: boolean;
}

// The rows hold Go and TypeScript to the same bounds.
const text = readFileSync(new URL("../../testdata/metering/requests.json", import.meta.url), "utf8");
const { prices: table, requests } = JSON.parse(text) as { readonly prices: object; readonly requests: readonly Row[] };
const prices = Prices.parse(JSON.stringify(table));
const errors: Readonly<Record<string, new (...args: any[]) => Error>> = { UnboundedCall, UnknownModel, UsageMissing };

class Held extends Error {
  constructor(readonly value: bigint) {
    super("held");
  }
}

for (const { name, path, body, method = "POST", headers = {}, input, output, error, passes } of requests) {
  test(`a metered request is bounded as in every language: ${name}`, async () => {
    const session = { begin: async ({ value }: { value: bigint }) => { throw new Held(value); } } as unknown as Session;
    let sent = 0;
    const metered = meteredFetch(session, prices, { fetch: async () => (sent++, new Response()) });
    const init = { method, headers, ...(body === "" ? {} : { body }) };
    const failure = await metered(`https://provider.example${path}`, init).then(() => undefined, (cause: unknown) => cause);
    if (error !== undefined) {
      assert.ok(failure instanceof errors[error]!, String(failure));
    } else if (passes === true) {
      assert.equal(failure, undefined);
    } else {
      const bytes = new TextEncoder().encode(body).length;
      assert.equal((failure as Held).value, BigInt(input ?? bytes) + 10_000n * BigInt(output!), String(failure));
    }
    assert.equal(sent, passes === true ? 1 : 0);
  });
}
