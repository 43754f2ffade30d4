import assert from "node:assert/strict";
import test from "node:test";
import { formatUSD, LimitReached, USD, type Session } from "@remit/sdk";
import { meteredFetch, UnboundedCall, UnknownModel, UsageMissing, type MeteredFetchOptions } from "@remit/sdk/fetch";
import { address, answer, events, oneByOne, prices, recording, stream } from "./provider.js";
import { acme, collect, failure, newSession, until } from "./service.js";

type Call = { readonly path: string; readonly body: object };
const post = (body: object | string, more: RequestInit = {}): RequestInit =>
  ({ method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), ...more });
const chat = { model: "small", max_tokens: 100, messages: [{ role: "user", content: "é?" }] };
const worst = (body: object, output = 100) => BigInt(new TextEncoder().encode(JSON.stringify(body)).length + 2 * output);

// books returns the actions, and what is used and held.
async function books(session: Session): Promise<[number, bigint, bigint]> {
  const { actionCount, valueUsed, valueHeld } = await session.get();
  return [actionCount, valueUsed, valueHeld];
}

const chatUsage = { prompt_tokens: 20, completion_tokens: 8, prompt_tokens_details: { cached_tokens: 10 }, completion_tokens_details: { reasoning_tokens: 3 } };
const responsesUsage = { input_tokens: 20, output_tokens: 8, input_tokens_details: { cached_tokens: 10 }, output_tokens_details: { reasoning_tokens: 3 } };
const messagesUsage = { input_tokens: 10, output_tokens: 8, cache_read_input_tokens: 10, cache_creation_input_tokens: null };
const cost = 10n + 1n + 16n; // of each of them

const calls: Readonly<Record<string, Call>> = {
  chat: { path: "/chat/completions", body: chat },
  responses: { path: "/responses", body: { model: "small", max_output_tokens: 100, input: "?" } },
  messages: { path: "/messages", body: { model: "small", max_tokens: 100, messages: [] } },
};
const whole: Readonly<Record<string, object>> = {
  chat: { choices: [], usage: chatUsage }, responses: { status: "completed", usage: responsesUsage }, messages: { content: [], usage: messagesUsage },
};
const streamed: Readonly<Record<string, string[]>> = {
  chat: events({ choices: [{ delta: { content: "日本" } }], usage: null }, { choices: [], usage: chatUsage }, "[DONE]"),
  responses: events({ type: "response.created", response: { usage: null } }, { type: "response.output_text.delta", delta: "日本" }, { type: "response.completed", response: { usage: responsesUsage } }),
  messages: events({ type: "message_start", message: { usage: { ...messagesUsage, output_tokens: 1 } } }, { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 8 } }, { type: "message_stop" }),
};

for (const [api, { path, body }] of Object.entries(calls)) {
  test(`a call of ${api} commits what its usage costs, streamed or not, however it is cut`, async () => {
    const session = await newSession({ maxValue: USD });
    const lines = streamed[api]!.join("");
    const replies = [
      () => answer([JSON.stringify(whole[api])]), () => oneByOne(answer([JSON.stringify(whole[api])])),
      () => stream(lines), () => oneByOne(stream(lines)), () => oneByOne(stream(lines.replaceAll("\n", "\r\n"))),
      () => oneByOne(stream(lines.replaceAll("\n", "\r"))), () => stream(lines.trimEnd()),
    ];
    for (const [i, reply] of replies.entries()) {
      const { fetch } = recording(async () => {
        assert.equal((await books(session))[2] > 100n, true, "nothing is held");
        return reply();
      });
      const response = await meteredFetch(session, prices, { fetch })(`${address}${path}`, post({ ...body, stream: i > 1 }));
      const hidden = api === "chat" && i > 1 ? ["\n", "\r\n", "\r"].map((end) => streamed["chat"]![1]!.replaceAll("\n", end)) : [];
      const passed = (text: string) => hidden.reduce((left, chunk) => left.replace(chunk, ""), text);
      assert.equal(await response.text(), passed(await reply().text()));
      assert.deepEqual(await books(session), [i + 1, BigInt(i + 1) * cost, 0n]);
    }
  });
}

test("the hold is the worst case by the bytes of the request and its maximum", async () => {
  const session = await newSession({ maxValue: USD });
  const image = (url: string) => ({ ...chat, messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
  const cases: [string, object, bigint][] = [
    ["/chat/completions", chat, worst(chat)],
    ["/chat/completions", { ...chat, n: 3 }, worst({ ...chat, n: 3 }, 300)],
    ["/chat/completions", { model: "small", messages: [] }, worst({ model: "small", messages: [] }, 1000)],
    ["/chat/completions", { ...chat, padding: "x".repeat(20_000) }, 10_200n], // the model's limit
    ["/chat/completions", image("data:image/png;base64,AAAA"), 10_200n], // its tokens follow from its pixels
    ["/chat/completions", image("https://images.example/1"), 10_200n],
    ["/chat/completions", { ...chat, messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f" } }] }] }, 10_200n],
    ["/responses", { model: "small", max_output_tokens: 100, input: "?", previous_response_id: "r" }, 10_200n],
    ["/responses", { model: "small", max_output_tokens: 100, input: "?", tools: [{ type: "web_search" }] }, 10_200n],
    ["/messages", { model: "small", max_tokens: 100, messages: [{ role: "user", content: [{ type: "document", source: { type: "url", url: "u" } }] }] }, 10_200n],
  ];
  for (const [path, body, want] of cases) {
    let held = 0n;
    const { fetch } = recording(async () => ((held = (await books(session))[2]), answer(["{}"], "application/json", 400)));
    assert.equal((await meteredFetch(session, prices, { fetch })(address + path, post(body))).status, 400);
    assert.equal(held, want, JSON.stringify(body).slice(0, 100));
  }
  assert.deepEqual((await books(session)).slice(1), [0n, 0n]);
});

test("a call that nothing bounds is refused before anything is held or sent", async () => {
  const session = await newSession({ maxValue: USD });
  const { fetch, sent } = recording(() => answer(["{}"]));
  const metered = meteredFetch(session, prices, { fetch });
  const cases: [string, object | string, new (...args: any[]) => Error][] = [
    ["/chat/completions", { ...chat, model: "unheard-of" }, UnknownModel],
    ["/chat/completions", { model: "open", messages: [] }, UnboundedCall],
    ["/chat/completions", { ...chat, model: "open", messages: [{ role: "user", content: [{ type: "input_audio" }] }] }, UnboundedCall],
    ["/chat/completions", { ...chat, n: 1.5 }, UnboundedCall],
    ["/chat/completions", { ...chat, max_tokens: -1 }, UnboundedCall],
    ["/chat/completions", { ...chat, max_tokens: 2 ** 53 - 1, n: 2 }, UnboundedCall],
    ["/chat/completions", { ...chat, max_tokens: 2 ** 52 }, UnboundedCall],
    ["/chat/completions", { ...chat, stream: true, stream_options: { include_usage: false } }, UsageMissing],
    ["/chat/completions", "no JSON", UnboundedCall],
    ["/responses", { model: "small", input: "?", background: true }, UnboundedCall],
    ["/embeddings", { model: "small", input: "?" }, UnboundedCall],
    ["/messages/batches", {}, UnboundedCall],
    ["/files", {}, UnboundedCall],
  ];
  for (const [path, body, type] of cases) {
    await failure(metered(address + path, post(body)), type);
  }
  assert.deepEqual([sent, await books(session)], [[], [0, 0n, 0n]]);
});

test("a hold that does not fit sends nothing, and the clients that repeat do not repeat it", async () => {
  const session = await newSession({ maxValue: 100n });
  const { fetch, sent } = recording(() => answer(["{}"]));
  const metered = meteredFetch(session, prices, { fetch });
  await failure(metered(`${address}/chat/completions`, post(chat)), LimitReached);
  for (const [path, body, says] of [
    ["/chat/completions", { model: "small", messages: [] }, "(1,000 tokens of output): set max_tokens"],
    ["/chat/completions", { model: "small", messages: [], max_completion_tokens: 900 }, "(900 tokens of output): lower max_completion_tokens, or send less"],
    ["/chat/completions", { model: "small", messages: [], max_tokens: 10, max_completion_tokens: 900 }, "(900 tokens of output): lower max_completion_tokens, or send less"],
    ["/responses", { model: "small", input: "?" }, "(1,000 tokens of output): set max_output_tokens"],
    ["/messages", { model: "small", max_tokens: 900, messages: [] }, "(900 tokens of output): lower max_tokens, or send less"],
  ] as const) {
    const refused: unknown = await metered(address + path, post(body)).catch((error: unknown) => error);
    assert.ok(refused instanceof LimitReached);
    const needed = `the call may cost up to ${formatUSD(worst(body, says.includes("900") ? 900 : 1_000))} USD ${says}`;
    assert.ok(refused.message.endsWith(needed) && refused.stack!.includes(needed), `${refused.message}, not ${needed}`);
  }
  const busy = await newSession({ maxActions: 1, maxValue: USD });
  await busy.charge({ actionType: "llm.call" });
  const full: unknown = await meteredFetch(busy, prices, { fetch })(`${address}/chat/completions`, post(chat)).catch((error: unknown) => error);
  assert.ok(full instanceof LimitReached && full.limit === "max_actions" && !full.message.includes("may cost"), String(full)); // fewer tokens would not help
  const response = await metered(`${address}/chat/completions`, post(chat, { headers: { "X-Stainless-Retry-Count": "0" } }));
  for (const member of ["ok", "status", "headers", "body"] as const) {
    assert.throws(() => response[member], LimitReached);
  }
  assert.deepEqual([sent, await books(session)], [[], [0, 0n, 0n]]);
});

test("a request that costs nothing passes, and a stream asks for its usage", async () => {
  const session = await newSession();
  const { fetch, sent } = recording(() => answer(["{}"]));
  const metered = meteredFetch(session, prices, { fetch });
  await metered(`${address}/models`);
  await metered(new URL(`${address}/messages/count_tokens`), post({}));
  assert.deepEqual([sent, (await books(session))[0]], [["undefined", "{}"], 0]);
  await metered(`${address}/chat/completions`, post({ ...chat, stream: true, stream_options: { x: 1 } }));
  assert.deepEqual(JSON.parse(sent[2]!).stream_options, { x: 1, include_usage: true });
});

test("a request that costs nothing keeps the body of its Request, and its stream", async () => {
  const session = await newSession();
  const metered = meteredFetch(session, prices, { fetch: async (input, init) => new Response(await new Request(input, init).text()) });
  const body = () => new Blob(["counted"]).stream() as ReadableStream<Uint8Array>;
  for (const [input, init] of [
    [new Request(`${address}/messages/count_tokens`, post("counted")), { headers: { "X-Trace": "1" } }],
    [`${address}/messages/count_tokens`, { method: "POST", body: body(), duplex: "half" } as RequestInit],
  ] as [string | Request, RequestInit][]) {
    assert.equal(await (await metered(input, init)).text(), "counted");
  }
});

test("an address may be relative to the page of a browser", async () => {
  const session = await newSession();
  const { fetch } = recording(() => answer([JSON.stringify(whole["chat"])]));
  const browser = globalThis as { location?: { href: string } };
  browser.location = { href: "https://page.example/app/" };
  try {
    await (await meteredFetch(session, prices, { fetch })("/v1/chat/completions", post(chat))).text();
  } finally {
    delete browser.location;
  }
  assert.deepEqual(await books(session), [1, cost, 0n]);
});

test("a Request and bytes are metered like a text", async () => {
  const session = await newSession();
  const { fetch, sent } = recording(() => answer([JSON.stringify(whole["chat"])]));
  const metered = meteredFetch(session, prices, { fetch });
  const body = new TextEncoder().encode(JSON.stringify(chat));
  const stream = () => new Blob([body]).stream() as ReadableStream<Uint8Array>;
  for (const [input, init] of [
    [new Request(`${address}/chat/completions`, post(chat)), undefined],
    [`${address}/chat/completions`, { method: "POST", body }],
    [`${address}/chat/completions`, { method: "POST", body: stream() }],
  ] as [string | Request, RequestInit | undefined][]) {
    await (await metered(input, init)).text();
  }
  assert.deepEqual(sent, Array(3).fill(JSON.stringify(chat)));
  assert.deepEqual(await books(session), [3, 3n * cost, 0n]);
});

test("reasoning beside the output is counted, and what was written to a cache", async () => {
  const session = await newSession({ maxValue: USD });
  for (const usage of [
    { prompt_tokens: 20, completion_tokens: 8, total_tokens: 35, completion_tokens_details: { reasoning_tokens: 7 } },
    { prompt_tokens: 20, completion_tokens: 8, total_tokens: 35, prompt_tokens_details: { cache_write_tokens: 5 } },
  ]) {
    const metered = meteredFetch(session, prices, { fetch: async () => answer([JSON.stringify({ choices: [], usage })]) });
    await (await metered(`${address}/chat/completions`, post(chat))).text();
  }
  assert.deepEqual(await books(session), [2, 2n * (20n + 2n * 15n), 0n]);
});

const malformed: Readonly<Record<string, object>> = {
  missing: {}, null: { usage: null }, zero: { usage: { prompt_tokens: 0, completion_tokens: 0 } }, negative: { usage: { prompt_tokens: -1, completion_tokens: 1 } },
  fractional: { usage: { prompt_tokens: 1.5, completion_tokens: 1 } }, incomplete: { usage: { prompt_tokens: 1 } },
  "more cached than all": { usage: { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 2 } } },
  "more reasoning than all": { usage: { prompt_tokens: 1, completion_tokens: 1, completion_tokens_details: { reasoning_tokens: 2 } } },
  audio: { usage: { prompt_tokens: 1, completion_tokens: 1, completion_tokens_details: { audio_tokens: 1 } } },
  "no number": { usage: { prompt_tokens: "1", completion_tokens: 1 } },
};

test("a complete answer whose usage is missing costs its hold, and says so", async () => {
  let session = await newSession();
  for (const [name, usage] of Object.entries(malformed)) {
    for (const reply of [() => answer([JSON.stringify({ choices: [], ...usage })]), () => stream(...events({ choices: [], ...usage }, "[DONE]"))]) {
      session = await newSession({ maxValue: USD });
      const metered = meteredFetch(session, prices, { fetch: recording(reply).fetch });
      const response = await metered(`${address}/chat/completions`, post(chat));
      await assert.rejects(response.text(), UsageMissing, name);
      assert.deepEqual(await books(session), [1, worst(chat), 0n], name);
    }
  }
  const start = { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } };
  const untold = () => stream(...events(start, { type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }));
  await assert.rejects((await meteredFetch(session, prices, { fetch: async () => untold() })(`${address}/messages`, post(chat))).text(), UsageMissing);
  assert.deepEqual(await books(session), [2, 2n * worst(chat), 0n]);
});

test("a call that did not happen is rolled back", async () => {
  const session = await newSession();
  for (const status of [400, 429, 500]) {
    const response = await meteredFetch(session, prices, { fetch: async () => answer(["no"], "text/plain", status) })(`${address}/chat/completions`, post(chat));
    assert.deepEqual([response.status, await response.text()], [status, "no"]);
  }
  // What Node, Bun and Deno say of a connection that was refused, and of a name that nobody has.
  const deno = (why: string) => ({ cause: new Error(`error sending request for url (http://localhost:1/v1): client error (Connect): ${why}`) });
  const refusals = [
    { cause: { code: "ECONNREFUSED", syscall: "connect" } }, { cause: { code: "ENOTFOUND", syscall: "getaddrinfo" } },
    { code: "ConnectionRefused" }, { code: "ECONNREFUSED" }, { code: "ENOTFOUND" },
    deno("tcp connect error: Connection refused (os error 111)"), deno("dns error: failed to lookup address information"),
  ];
  for (const refusal of refusals) {
    const refused = Object.assign(new TypeError("fetch failed"), refusal);
    await assert.rejects(meteredFetch(session, prices, { fetch: async () => { throw refused; } })(`${address}/chat/completions`, post(chat)), refused);
  }
  assert.deepEqual(await books(session), [3 + refusals.length, 0n, 0n]);
});

test("what may have happened is committed", async () => {
  const lost = Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET", syscall: "read" } });
  const told = events({ type: "message_start", message: { usage: { input_tokens: 7, output_tokens: 1 } } })[0]!;
  const [some, failed] = events({ choices: [{ delta: {} }] }, { error: { message: "x" } }) as [string, string];
  const hold = worst(chat);
  const bytes = (text: string) => 2n * BigInt(Math.min(text.length, 100));
  const cases: [string, string, () => Response | Promise<Response>, bigint][] = [
    ["the connection is lost before an answer", "/chat/completions", () => { throw lost; }, hold],
    ["an answer is cut", "/chat/completions", () => answer(['{"usage":', lost]), hold],
    ["an answer is no JSON", "/chat/completions", () => answer(['{"usage":']), hold],
    ["an answer has no body", "/chat/completions", () => new Response(null, { status: 204 }), hold],
    ["a stream is cut before it begins", "/chat/completions", () => stream(lost), hold - 200n],
    ["a stream is cut", "/chat/completions", () => stream(some, lost), hold - 200n + bytes(some)],
    ["a stream ends without its end", "/chat/completions", () => stream(some), hold - 200n + bytes(some)],
    ["a stream has an error", "/chat/completions", () => stream(some, failed), hold - 200n + bytes(some + failed)],
    ["the input was told", "/messages", () => stream(told, lost), 7n + bytes(told)],
  ];
  for (const [name, path, reply, want] of cases) {
    const session = await newSession();
    const { fetch } = recording(reply);
    const metered = meteredFetch(session, prices, { fetch });
    await metered(address + path, post(chat)).then((response) => response.text()).catch(() => {});
    const [, used, held] = await books(session);
    assert.deepEqual([name, used, held], [name, want, 0n]);
  }
});

test("a reader that cancels and a signal that aborts pay what has come so far", async () => {
  const some = events({ choices: [{ delta: { content: "x" } }] })[0]!;
  const endless = () => stream(some, () => new Promise(() => {}));
  const want = worst(chat) - 200n + 2n * BigInt(Math.min(some.length, 100));
  for (const how of ["cancel", "abort while reading", "abort"] as const) {
    const session = await newSession();
    const controller = new AbortController();
    const response = await meteredFetch(session, prices, { fetch: async () => endless() })(`${address}/chat/completions`, post(chat, { signal: controller.signal }));
    const reader = response.body!.getReader();
    await reader.read();
    if (how === "cancel") {
      await reader.cancel();
    } else {
      const reading = how === "abort" ? undefined : reader.read();
      controller.abort(new Error("no more"));
      await assert.rejects(reading ?? reader.read(), /no more/); // although the body of this provider never ends
    }
    let now = await books(session);
    for (; now[2] !== 0n; now = await books(session)) {}
    assert.deepEqual(now, [1, want, 0n], how);
  }
  const session = await newSession();
  const { fetch, sent } = recording(endless);
  await assert.rejects(meteredFetch(session, prices, { fetch })(`${address}/chat/completions`, post(chat, { signal: AbortSignal.abort(new Error("no")) })), /no/);
  assert.deepEqual(sent, []);
});

test("a signal that aborts while the answer begins settles it, although nobody reads", async () => {
  const session = await newSession();
  const controller = new AbortController();
  const metered = meteredFetch(session, prices, { fetch: async () => (controller.abort(), stream("data: {}\n\n")) });
  await metered(`${address}/chat/completions`, post(chat, { signal: controller.signal }));
  for (const end = Date.now() + 10_000; (await books(session))[2] !== 0n; ) {
    assert.ok(Date.now() < end, "it is still held");
  }
  assert.deepEqual(await books(session), [1, worst(chat) - 200n, 0n]);
});

test("who cancels after the usage has come pays that", async () => {
  const session = await newSession();
  const metered = meteredFetch(session, prices, { fetch: async () => stream(streamed["chat"]!.join(""), () => new Promise(() => {})) });
  const reader = (await metered(`${address}/chat/completions`, post(chat))).body!.getReader();
  await reader.read();
  await reader.cancel();
  assert.deepEqual(await books(session), [1, cost, 0n]);
});

test("an answer that nobody reads is committed before its hold expires, and one that is read keeps it", async () => {
  const session = await newSession();
  const options: MeteredFetchOptions = { expiresInSeconds: 3 };
  const pause = () => new Promise<void>((resolve) => setTimeout(resolve, 900));
  const [some, ...rest] = streamed["chat"]!;
  const slow = meteredFetch(session, prices, { ...options, fetch: async () => stream(some!, pause, some!, pause, some!, pause, some!, pause, some!, pause, ...rest) });
  const late = meteredFetch(session, prices, { ...options, fetch: async () => (await pause(), await pause(), await pause(), await pause(), answer([JSON.stringify(whole["chat"])])) });
  const unread = meteredFetch(session, prices, { ...options, fetch: async () => stream(some!) });
  const read = async (metered: typeof slow) => (await metered(`${address}/chat/completions`, post(chat))).text();
  await Promise.all([read(slow), read(late), unread(`${address}/chat/completions`, post(chat))]);
  assert.deepEqual(await books(session), [3, 2n * cost + worst(chat), 0n]);
  assert.ok((await collect(acme.transactions({ sessionId: session.id }))).every((transaction) => !transaction.late));
});

// rollBackAll makes the settlement of a session's calls fail. The end of the session would not: what is held outlives it.
async function rollBackAll(session: Session): Promise<void> {
  for await (const { id } of acme.transactions({ sessionId: session.id })) {
    await acme.transaction(id).rollback();
  }
}

test("a call whose session ends meanwhile is paid", async () => {
  const session = await newSession();
  const { fetch } = recording(async () => (await session.end(), answer([JSON.stringify(whole["chat"])])));
  await (await meteredFetch(session, prices, { fetch })(`${address}/chat/completions`, post(chat))).text();
  assert.deepEqual(await books(session), [1, cost, 0n]);
});

test("a settlement that fails is reported, and the answer is delivered", async () => {
  const session = await newSession();
  const errors: unknown[] = [];
  const { fetch } = recording(async () => (await rollBackAll(session), answer([JSON.stringify(whole["chat"])])));
  const metered = meteredFetch(session, prices, { fetch, onError: (error) => errors.push(error) });
  assert.equal(await (await metered(`${address}/chat/completions`, post(chat))).text(), JSON.stringify(whole["chat"]));
  await until(() => errors.length === 1);
});

test("an onError that throws neither withholds the answer nor leaves a rejection unhandled", async () => {
  const session = await newSession();
  const controller = new AbortController();
  let calls = 0;
  const onError = () => { calls++; throw new Error("broken"); };
  const body = JSON.stringify(whole["chat"]);
  const endless = stream("data: {}\n\n", () => new Promise(() => {}));
  const replies = [answer([body]), endless];
  const metered = meteredFetch(session, prices, { fetch: async () => replies.shift()!, onError });
  const [said, begun] = [await metered(`${address}/chat/completions`, post(chat)), await metered(`${address}/chat/completions`, post(chat, { signal: controller.signal }))];
  await rollBackAll(session);
  assert.equal(await said.text(), body);
  assert.equal(begun.status, 200);
  controller.abort(); // nobody waits for the settlement
  await until(() => calls === 2);
});

test("a model may have the price of another, and a hold its own action type", async () => {
  const session = await newSession();
  const { fetch } = recording(() => answer([JSON.stringify(whole["chat"])]));
  const metered = meteredFetch(session, prices, { fetch, models: { deployed: "small" }, actionType: "chat" });
  await (await metered(`${address}/chat/completions`, post({ ...chat, model: "deployed" }))).text();
  const [line] = await session.usage();
  assert.deepEqual([line?.actionType, line?.value], ["chat", cost]);
  assert.throws(() => meteredFetch(session, prices, { action_type: "chat" } as MeteredFetchOptions), /it is actionType/);
});

test("an endless line and an endless document cost neither time nor memory, and count as broken off", async () => {
  const pieces = (first: string, size: number, count: number) => [first, ...Array<string>(count).fill("x".repeat(size))];
  const hidden = `\n\n${streamed["chat"]![1]}`; // a usage, after the end of an event that is too long
  for (const [reply, want] of [
    [() => stream(...pieces("data: ", 2 ** 12, 2 ** 11)), worst(chat)],
    [() => stream(...pieces("data: ", 2 ** 20, 65), hidden, "data: [DONE]\n\n"), cost],
    [() => answer([...pieces('{"more":"', 2 ** 20, 65), `","usage":${JSON.stringify(chatUsage)}}`]), worst(chat)],
  ] as [() => Response, bigint][]) {
    const session = await newSession();
    const response = await meteredFetch(session, prices, { fetch: async () => reply() })(`${address}/chat/completions`, post(chat));
    const reader = response.body!.getReader();
    const began = process.cpuUsage().user;
    while (!(await reader.read()).done) {}
    assert.ok(process.cpuUsage().user - began < 5_000_000, "it takes more than 5 s");
    assert.deepEqual(await books(session), [1, want, 0n]);
  }
});

// All output has tokens: an answer with output whose usage counts none costs its hold. The rows are those of the Go SDK's usage_test.go.
const without = { chat: { prompt_tokens: 7, completion_tokens: 0 }, others: { input_tokens: 7, output_tokens: 0 } };
const outputs: readonly (readonly [name: string, api: string, reply: () => Response, isBelievable: boolean])[] = [
  ["a text", "chat", () => answer([JSON.stringify({ choices: [{ message: { role: "assistant", content: "hi" } }], usage: without.chat })]), false],
  ["a tool call", "chat", () => answer([JSON.stringify({ choices: [{ message: { content: null, tool_calls: [{}] } }], usage: without.chat })]), false],
  ["an empty message", "chat", () => answer([JSON.stringify({ choices: [{ message: { role: "assistant", content: "", refusal: null } }], usage: without.chat })]), true],
  ["a response's message", "responses", () => answer([JSON.stringify({ output: [{ type: "message" }], usage: without.others })]), false],
  ["an empty response", "responses", () => answer([JSON.stringify({ output: [], usage: without.others })]), true],
  ["a message's text", "messages", () => answer([JSON.stringify({ content: [{ type: "text", text: "hi" }], usage: without.others })]), false],
  ["a message without content", "messages", () => answer([JSON.stringify({ content: [], usage: without.others })]), true],
  ["a streamed text", "chat", () => stream(...events({ choices: [{ delta: { content: "a" } }] }, { choices: [], usage: without.chat }, "[DONE]")), false],
  ["a streamed role", "chat", () => stream(...events({ choices: [{ delta: { role: "assistant", content: "" } }], usage: without.chat }, "[DONE]")), true],
  ["a streamed response", "responses", () => stream(...events({ type: "response.output_text.delta", delta: "a" }, { type: "response.completed", response: { usage: without.others } })), false],
  ["a streamed message", "messages", () => stream(...events({ type: "message_start", message: { usage: { input_tokens: 7 } } }, { type: "content_block_delta" }, { type: "message_delta", usage: { output_tokens: 0 } }, { type: "message_stop" })), false],
];

for (const [name, api, reply, isBelievable] of outputs) {
  test(`a usage without output of ${name} ${isBelievable ? "counts" : "costs the hold"}`, async () => {
    const session = await newSession({ maxValue: USD });
    const { path, body } = calls[api]!;
    let held = 0n;
    const { fetch } = recording(async () => ((held = (await books(session))[2]), reply()));
    const read = meteredFetch(session, prices, { fetch })(address + path, post({ ...body, stream: name.startsWith("a streamed") })).then((response) => response.text());
    await (isBelievable ? read : failure(read, UsageMissing));
    assert.deepEqual(await books(session), [1, isBelievable ? 7n : held, 0n]);
  });
}
