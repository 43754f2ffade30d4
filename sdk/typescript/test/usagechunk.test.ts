// The chunk that tells the usage of a streamed chat completion, which only a caller who asked for it gets.
import assert from "node:assert/strict";
import test from "node:test";
import { USD } from "@remit/sdk";
import { meteredFetch } from "@remit/sdk/fetch";
import { address, oneByOne, prices, recording, stream } from "./provider.js";
import { newSession } from "./service.js";

const usage = { prompt_tokens: 20, completion_tokens: 8 };
const text = { choices: [{ index: 0, delta: { content: "日本" } }], usage: null };
const end = { choices: [], usage };
const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const done = "data: [DONE]\n\n";

// What a provider sends, and what of it passes.
const answers: readonly (readonly [name: string, sent: string, passed: string])[] = [
  ["the usage", event(text) + event(end) + done, event(text) + done],
  ["comments", `: a\n\n${event(text)}: b\n${event(end)}: c\n\n${done}`, `: a\n\n${event(text)}: b\n: c\n\n${done}`],
  ["comments of several lines", `: a\n:b\n\n: c\n: d\n${event(text)}:\n${event(end)}: e\n\n${done}`, `: a\n:b\n\n: c\n: d\n${event(text)}:\n: e\n\n${done}`],
  ["comments within events", `id: 1\n: a\n${event(text)}id: 2\n: b\n${event(end)}${done}`, `id: 1\n: a\n${event(text)}: b\n${done}`],
  ["a long comment", `: ${"x".repeat(2 ** 20)}\n${event(end)}${done}`, `: ${"x".repeat(2 ** 20)}\n${done}`],
  ["names and ids", `event: message\nid: 1\n${event(text)}event: message\nid: 2\n${event(end)}${done}`, `event: message\nid: 1\n${event(text)}${done}`],
  ["a usage in two lines", `${event(text)}data: {"choices":[],\ndata: "usage":${JSON.stringify(usage)}}\n\n${done}`, event(text) + done],
  ["no last empty line", event(text) + event(end) + done.trimEnd(), event(text) + done.trimEnd()],
  ["a chunk without choices and usage", event({ choices: [], usage: null }) + event(end) + done, event({ choices: [], usage: null }) + done],
  ["a usage with choices", event({ ...text, usage }) + event(end) + done, event({ ...text, usage }) + done],
  ["a usage with an error", event({ ...end, error: { message: "x" } }) + done, event({ ...end, error: { message: "x" } }) + done],
  ["a usage with no error", event({ ...end, error: null }) + done, done],
  ["a long event", event({ ...text, padding: "é".repeat(2 ** 20) }) + event(end) + done, event({ ...text, padding: "é".repeat(2 ** 20) }) + done],
  ["an event that is no JSON", `data: {"choices":[]\n\n${event(end)}${done}`, `data: {"choices":[]\n\n${done}`],
];

async function received(sent: () => Response, options?: object): Promise<Buffer> {
  const session = await newSession({ maxValue: USD });
  const body = JSON.stringify({ model: "small", max_tokens: 100, messages: [], stream: true, ...(options && { stream_options: options }) });
  const response = await meteredFetch(session, prices, { fetch: recording(sent).fetch })(`${address}/chat/completions`, { method: "POST", body });
  const bytes = Buffer.from(await response.arrayBuffer());
  const { valueUsed, valueHeld } = await session.get();
  assert.deepEqual([valueUsed, valueHeld], [36n, 0n]);
  return bytes;
}

for (const [name, sent, passed] of answers) {
  test(`of a stream with ${name} all passes but the chunk of the usage`, async () => {
    for (const ends of ["\n", "\r\n", "\r"]) {
      const [all, want] = [sent, passed].map((lines) => Buffer.from(lines.replaceAll("\n", ends)));
      const cuts: (() => Response)[] = [() => stream(String(all))];
      if (all!.length < 10_000) {
        cuts.push(() => oneByOne(stream(String(all))));
        cuts.push(...[...all!.keys()].filter((at) => at % 31 === 30).map((at) => () => pieces(all!.subarray(0, at), all!.subarray(at))));
      }
      for (const cut of cuts) {
        assert.deepEqual(await received(cut), want);
      }
      assert.deepEqual(await received(() => stream(String(all)), { include_usage: true }), all);
    }
  });
}

function pieces(...bytes: readonly Uint8Array[]): Response {
  const left = [...bytes];
  const body = new ReadableStream<Uint8Array>({ pull: (controller) => (left.length > 0 ? controller.enqueue(left.shift()!) : controller.close()) });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

test("what came of a stream that breaks off is passed on before its error", async () => {
  const session = await newSession({ maxValue: USD });
  const lost = new TypeError("terminated");
  const body = JSON.stringify({ model: "small", max_tokens: 100, messages: [], stream: true });
  const { fetch } = recording(() => stream(event(text), 'data: {"cho', lost));
  const reader = (await meteredFetch(session, prices, { fetch })(`${address}/chat/completions`, { method: "POST", body })).body!.getReader();
  let came = "";
  await assert.rejects(async () => {
    for (;;) {
      came += Buffer.from((await reader.read()).value!).toString();
    }
  }, lost);
  assert.equal(came, `${event(text)}data: {"cho`);
});

test("an answer that may become shorter has no Content-Length", async () => {
  const session = await newSession({ maxValue: USD });
  const body = (options: object) => JSON.stringify({ model: "small", max_tokens: 100, messages: [], stream: true, ...options });
  const sent = event(end) + done;
  const headers = { "Content-Type": "text/event-stream", "Content-Length": String(sent.length) };
  const { fetch } = recording(() => new Response(sent, { headers }));
  for (const [options, length] of [[{}, null], [{ stream_options: { include_usage: true } }, String(sent.length)]] as const) {
    const response = await meteredFetch(session, prices, { fetch })(`${address}/chat/completions`, { method: "POST", body: body(options) });
    assert.equal(response.headers.get("content-length"), length);
    await response.arrayBuffer();
  }
});

test("a heartbeat passes with the end of its line", async () => {
  const body = JSON.stringify({ model: "small", max_tokens: 100, messages: [], stream: true });
  for (const beat of [": ping\n", ": ping\r", ": ping\r\n"]) {
    const session = await newSession({ maxValue: USD });
    let isRead = false;
    let read = () => {};
    const awaitRead = () => new Promise<void>((resolve) => (isRead ? resolve() : (read = resolve)));
    const { fetch } = recording(() => stream(beat, awaitRead, event(text), event(end), done));
    const reader = (await meteredFetch(session, prices, { fetch })(`${address}/chat/completions`, { method: "POST", body })).body!.getReader();
    assert.equal(Buffer.from((await reader.read()).value!).toString(), beat);
    isRead = true;
    read();
    while (!(await reader.read()).done) {}
  }
});
