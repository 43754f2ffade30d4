import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import type { Session } from "@remit/sdk";
import { meteredFetch } from "@remit/sdk/fetch";
import { baseURL, fakedFetch, models, prices, provider, testCalls, type Call } from "./reconcile.js";

const messages = [{ role: "user" as const, content: "What is left of the budget? 🦉" }];

// read reads a stream, up to where its call is cancelled.
async function read(stream: AsyncIterable<unknown>, { parts, how }: Call, controller: AbortController): Promise<void> {
  let count = 0;
  for await (const _ of stream) {
    if (++count > parts) {
      if (how === "break") break;
      controller.abort();
    }
  }
}

function options({ streamed, parts }: Call, controller: AbortController) {
  if (!streamed && parts !== Infinity) {
    setTimeout(() => controller.abort(), parts);
  }
  return { signal: controller.signal };
}

const openai = (session: Session) =>
  new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch: meteredFetch(session, prices, { models, fetch: fakedFetch }) });
const anthropic = (session: Session) =>
  new Anthropic({ baseURL: provider, apiKey: "none", maxRetries: 0, fetch: meteredFetch(session, prices, { models, fetch: fakedFetch }) });

async function chat(session: Session, call: Call): Promise<void> {
  const controller = new AbortController();
  const { chat } = openai(session);
  const body = { model: call.model, messages, max_tokens: 60, n: 1 + (call.index % 2) };
  if (call.streamed) {
    await read(await chat.completions.create({ ...body, stream: true }, options(call, controller)), call, controller);
  } else {
    await chat.completions.create(body, options(call, controller));
  }
}

async function responses(session: Session, call: Call): Promise<void> {
  const controller = new AbortController();
  const { responses } = openai(session);
  const body = { model: call.model, input: "What is left? 🦉", max_output_tokens: 60 };
  if (call.streamed) {
    await read(await responses.create({ ...body, stream: true }, options(call, controller)), call, controller);
  } else {
    await responses.create(body, options(call, controller));
  }
}

async function claude(session: Session, call: Call): Promise<void> {
  const controller = new AbortController();
  const body = { model: call.model, messages, max_tokens: 60 };
  if (call.streamed) {
    await read(await anthropic(session).messages.create({ ...body, stream: true }, options(call, controller)), call, controller);
  } else {
    await anthropic(session).messages.create(body, options(call, controller));
  }
}

await testCalls(Object.entries({ chat, responses, claude }).map(([name, make]) => ({ name, make })));
