// The frameworks as a program loads them that has another copy of them than the adapters, or loads them as CommonJS.
import assert from "node:assert/strict";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import test, { after, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { z as z3 } from "zod/v3";
import { z as z4 } from "zod/v4";
import { LimitReached, usd, type Session } from "@remit/sdk";
import { UnboundedCall } from "@remit/sdk/metering";
import { chargeTools, type ChargeToolsOptions, type ToolServer } from "@remit/adapters/mcp";
import { MeteredCallbackHandler } from "@remit/adapters/langchain";
import { meteredModelProvider } from "@remit/adapters/openai-agents";
import { baseURL, models, newSession, prices, settled } from "./reconcile.js";

const require = createRequire(import.meta.url);
const root = fileURLToPath(new URL("../", import.meta.url));
const second = fileURLToPath(new URL("copies/", import.meta.url)); // below the packages that a copy needs

type Modules = (name: string) => Promise<any>;

// copied imports from a second copy of a package.
function copied(name: string): Modules {
  const at = `${second}node_modules/${name}`;
  cpSync(`${root}node_modules/${name}`, at, { recursive: true });
  const { exports } = JSON.parse(readFileSync(`${at}/package.json`, "utf8")) as { exports: Record<string, { import: string }> };
  return (path) => import(`${at}/${exports["./*"]!.import.replace("*", path)}`);
}

after(() => rmSync(second, { recursive: true, force: true }));

const mcp: Readonly<Record<string, Modules>> = {
  "a second copy": copied("@modelcontextprotocol/sdk"),
  CommonJS: async (path) => require(`@modelcontextprotocol/sdk/${path}`) as unknown,
};

const tools: ChargeToolsOptions["tools"] = { search: { value: usd("0.1") } };
const found = { content: [{ type: "text", text: "found" }] };

async function books(session: Session): Promise<unknown[]> {
  const { actionCount, valueUsed, valueHeld } = await session.get();
  return [actionCount, valueUsed, valueHeld];
}

// connected returns a client of the server, of the same copy.
async function connected(t: TestContext, load: Modules, server: { connect(transport: unknown): Promise<void> }): Promise<{ callTool(params: object): Promise<{ readonly isError?: boolean }> }> {
  const [{ Client }, { InMemoryTransport }] = [await load("client/index.js"), await load("inMemory.js")];
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "agent", version: "1" });
  await Promise.all([server.connect(there), client.connect(here)]);
  t.after(() => client.close());
  return client;
}

for (const [name, load] of Object.entries(mcp)) {
  test(`the tools of a server of ${name} of the MCP SDK are charged`, async (t) => {
    const session = await newSession(usd("0.1"));
    const { McpServer } = await load("server/mcp.js");
    const server = new McpServer({ name: "tools", version: "1" });
    chargeTools(server, { session, tools });
    let runs = 0;
    for (const name of ["search", "unpriced"]) {
      server.registerTool(name, {}, async () => (runs++, found));
    }
    const client = await connected(t, load, server);
    for (const [name, isError] of [["search", undefined], ["search", true], ["unpriced", true]] as const) {
      assert.equal((await client.callTool({ name })).isError, isError, name);
    }
    assert.deepEqual([runs, await books(session)], [1, [1, usd("0.1"), 0n]]);
  });

  test(`the handlers of a plain Server of ${name} are charged, whatever their schema is made of`, async (t) => {
    const session = await newSession(usd("1"));
    const { Server } = await load("server/index.js");
    const { CallToolRequestSchema } = await load("types.js");
    const params = { name: "search" };
    const schemas = [
      CallToolRequestSchema,
      z3.object({ method: z3.literal("tools/call"), params: z3.object({ name: z3.string() }) }),
      z4.object({ method: z4.literal("tools/call"), params: z4.object({ name: z4.string() }) }),
    ];
    for (const schema of [...schemas, undefined]) {
      const server = new Server({ name: "tools", version: "1" }, { capabilities: { tools: {} } });
      chargeTools(server, { session, tools });
      if (schema === undefined) {
        server.fallbackRequestHandler = async () => found;
      } else {
        server.setRequestHandler(schema, async () => found);
      }
      await (await connected(t, load, server)).callTool(params);
    }
    assert.deepEqual(await books(session), [4, usd("0.4"), 0n]);
  });
}

test("a handler whose requests cannot be told, and a server that cannot be charged, are refused", async () => {
  const { Server } = await mcp["CommonJS"]!("server/index.js");
  const options = { session: {} as Session, tools };
  const newServer = (): ToolServer => new Server({ name: "tools", version: "1" }, { capabilities: { tools: {} } });
  const schemas: unknown[] = [
    undefined, {}, "tools/call", z4.object({}), z4.object({ method: z4.string() }), z4.object({ method: z4.literal(["ping", "tools/call"]) }),
    z3.object({ method: z3.enum(["ping", "tools/call"]) }), { shape: { method: { value: "tools/call" } } },
  ];
  for (const schema of schemas) {
    const server = newServer();
    chargeTools(server, options);
    assert.throws(() => server.setRequestHandler(schema, async () => found), UnboundedCall);
  }
  const other = newServer();
  const { setRequestHandler } = other;
  other.setRequestHandler = (_: unknown, handler: unknown) => setRequestHandler.call(other, z4.object({ method: z4.literal("tools/call") }), handler);
  chargeTools(other, options);
  assert.throws(() => other.setRequestHandler(z4.object({ method: z4.literal("tools/list") }), async () => found), UnboundedCall);
  other.assertCanSetRequestHandler("tools/call"); // it has no handler for them
  const fixed = new Proxy(newServer(), { set: () => true });
  for (const server of [{}, { server: {} }, fixed] as ToolServer[]) {
    assert.throws(() => chargeTools(server, options), UnboundedCall);
  }
});

const usage = { prompt_tokens: 10, completion_tokens: 50, total_tokens: 60, completion_tokens_details: { reasoning_tokens: 50 } };
const cost = prices.cost("priced", { input: 10, reasoning: 50 });
const answered = async () => Response.json({ id: "x", choices: [{ index: 0, message: { role: "assistant", content: "x" }, finish_reason: "stop" }], usage });

test("the models of LangChain as CommonJS are charged, and their signals are heeded whatever they are made of", async () => {
  const { ChatOpenAI } = require("@langchain/openai") as typeof import("@langchain/openai");
  const chat = (session: Session, fetch: typeof globalThis.fetch) => {
    const callbacks = [new MeteredCallbackHandler(session, prices, { models })] as never;
    return new ChatOpenAI({ model: "x", apiKey: "none", maxTokens: 60, maxRetries: 0, callbacks, configuration: { baseURL, fetch } });
  };
  const session = await newSession();
  await chat(session, answered).invoke("?");
  assert.deepEqual(await books(session), [1, cost, 0n]);
  await assert.rejects(chat(await newSession(1n), answered).invoke("?"), LimitReached);
  const handler = new MeteredCallbackHandler(session, prices, { models });
  const controller = new AbortController();
  const foreign = Object.assign(new EventTarget(), { aborted: false, throwIfAborted: () => {} });
  controller.signal.addEventListener("abort", () => foreign.dispatchEvent(new Event("abort")));
  await handler.handleLLMStart({} as never, ["?"], "run", undefined, { invocation_params: { model: "x", max_tokens: 60 }, options: { signal: foreign } });
  assert.ok(((await session.get()).valueHeld) > 0n);
  controller.abort();
  await settled(session);
});

test("the models of the Agents SDK as CommonJS are charged, also for what was nothing but reasoning", async () => {
  const agents = require("@openai/agents") as typeof import("@openai/agents");
  const { default: OpenAI } = await import("openai");
  const chunk = (more: object) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "x", ...more })}\n\n`;
  const thought = chunk({ choices: [{ index: 0, delta: {}, finish_reason: "length" }] }) + chunk({ choices: [], usage }) + "data: [DONE]\n\n";
  const streamed = async () => new Response(thought, { headers: { "Content-Type": "text/event-stream" } });
  const run = async (session: Session, fetch: typeof globalThis.fetch, stream: boolean) => {
    const openAIClient = new OpenAI({ baseURL, apiKey: "none", maxRetries: 0, fetch }) as never;
    const modelProvider = meteredModelProvider(session, prices, new agents.OpenAIProvider({ useResponses: false, openAIClient }) as never, { models });
    const runner = new agents.Runner({ modelProvider: modelProvider as never, tracingDisabled: true });
    const agent = new agents.Agent({ name: "scout", model: "x", modelSettings: { maxTokens: 60 } });
    if (stream) {
      await (await runner.run(agent, "?", { stream: true })).completed;
    } else {
      await runner.run(agent, "?");
    }
  };
  const session = await newSession();
  await run(session, answered, false);
  assert.deepEqual(await books(session), [1, cost, 0n]);
  await assert.rejects(run(session, streamed, true), { name: "ModelBehaviorError" });
  assert.deepEqual(await books(session), [2, 2n * cost, 0n]);
  await assert.rejects(run(await newSession(1n), answered, false), LimitReached);
});
