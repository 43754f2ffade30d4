import assert from "node:assert/strict";
import { once } from "node:events";
import test, { type TestContext } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { CallToolRequestSchema, type CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { Client as Remit, usd, type Session, type TransactionParams } from "@remit/sdk";
import { chargeTools, UnpricedTool, type ChargeToolsOptions } from "@remit/adapters/mcp";
import { newSession, organization, settled } from "./reconcile.js";

const tools: ChargeToolsOptions["tools"] = {
  search: { value: usd("0.1") }, fail: { value: usd("0.1") }, throw: { value: usd("0.1"), charge: "always" }, scoped: { value: 0n, scope: "admin" },
  free: { value: 0n, actionType: "tool.free" }, shaped: { value: usd("0.1") },
};

interface Served {
  readonly runs: string[];
  call(name: string, args?: object, options?: { readonly signal: AbortSignal }): Promise<CallToolResult>;
}

async function serve(t: TestContext, session: ChargeToolsOptions["session"], more: Partial<ChargeToolsOptions> = {}): Promise<Served> {
  const server = new McpServer({ name: "tools", version: "1" });
  chargeTools(server, { session, tools, ...more });
  const runs: string[] = [];
  const result = (name: string, answer: CallToolResult | (() => never)) => async () => (runs.push(name), typeof answer === "function" ? answer() : answer);
  const found: CallToolResult = { content: [{ type: "text", text: "found" }] };
  for (const name of ["search", "scoped", "free", "unpriced"]) {
    server.registerTool(name, {}, result(name, found));
  }
  server.registerTool("fail", {}, result("fail", { ...found, isError: true }));
  server.registerTool("throw", {}, result("throw", () => { throw new Error("broken"); }));
  server.registerTool("shaped", { outputSchema: { found: z.number() } }, result("shaped", { content: [], structuredContent: { found: 1 } }));
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "agent", version: "1" });
  await Promise.all([server.connect(there), client.connect(here)]);
  await client.listTools(); // so that it checks the shape of what tools return
  t.after(() => client.close());
  return { runs, call: async (name, args = {}, options = undefined) => (await client.callTool({ name, arguments: { ...args } }, undefined, options)) as CallToolResult };
}

const text = ({ content }: CallToolResult) => (content[0]?.type === "text" ? content[0].text : undefined);

async function books(session: Session): Promise<unknown[]> {
  const { actionCount, valueUsed, valueHeld } = await session.get();
  return [actionCount, valueUsed, valueHeld];
}

test("a tool call is charged, and one that fails is not", async (t) => {
  const session = await newSession(usd("1"));
  const { call, runs } = await serve(t, session);
  assert.equal(text(await call("search")), "found");
  assert.deepEqual(await books(session), [1, usd("0.1"), 0n]);
  assert.equal((await call("fail")).isError, true);
  assert.deepEqual(await books(session), [2, usd("0.1"), 0n]);
  assert.equal(text(await call("throw")), "broken"); // it is charged always
  assert.deepEqual(await books(session), [3, usd("0.2"), 0n]);
  await call("free");
  assert.deepEqual(await books(session), [4, usd("0.2"), 0n]);
  assert.deepEqual((await call("shaped")).structuredContent, { found: 1 });
  assert.deepEqual(runs, ["search", "fail", "throw", "free", "shaped"]);
  const types = (await session.usage()).map(({ actionType }) => actionType).sort();
  assert.deepEqual(types, ["fail", "search", "shaped", "throw", "tool.free"]);
  for await (const { reversible } of organization.transactions({ sessionId: session.id })) {
    assert.equal(reversible, false);
  }
});

test("a tool without a price does not run", async (t) => {
  const session = await newSession();
  const { call, runs } = await serve(t, session);
  for (const name of ["unpriced", "unheard-of", "constructor"]) {
    const result = await call(name);
    assert.deepEqual([result.isError, result.structuredContent?.["code"]], [true, "unpriced_tool"]);
    assert.ok(text(result)!.includes(new UnpricedTool(name).message));
  }
  assert.deepEqual([runs, await books(session)], [[], [0, 0n, 0n]]);
});

test("a refusal tells the model which limit it met, what is left and whom to ask", async (t) => {
  const session = await newSession(usd("0.15"));
  const { call, runs } = await serve(t, session);
  await call("search");
  const refused = await call("search");
  assert.match(text(refused)!, /^Refused: max_value_usd does not allow it: search costs 1 action and 0\.1 USD; .* and 0\.05 of 0\.15 USD are left until .*request_more.* did not run/);
  const { code, limit, remaining_actions, remaining_value_usd, required_value_usd } = refused.structuredContent!;
  assert.deepEqual([code, limit, remaining_actions, remaining_value_usd, required_value_usd], ["session_limit_reached", "max_value_usd", 999_999, 0.05, 0.1]);
  const shaped = await call("shaped"); // a client would refuse structured content of another shape
  assert.deepEqual([shaped.isError, shaped.structuredContent], [true, undefined]);
  const scope = await call("scoped");
  assert.deepEqual([scope.isError, scope.structuredContent?.["code"], scope.structuredContent?.["required_scope"]], [true, "insufficient_scope", "admin"]);
  assert.match(text(scope)!, /needs the scope admin/);
  await organization.suspendSession(session.id);
  assert.match(text(await call("free"))!, /suspended/);
  await organization.resumeSession(session.id);
  await session.end();
  assert.match(text(await call("free"))!, /the session is completed/);
  assert.deepEqual(runs, ["search"]);
});

test("a tool with a scope runs for an agent that has it", async (t) => {
  const session = await newSession(usd("1"), ["admin"]);
  const { call } = await serve(t, () => Promise.resolve(session));
  assert.equal((await call("scoped")).isError, undefined);
  assert.deepEqual(await books(session), [1, 0n, 0n]);
});

test("without the service a tool does not run, and may be tried later", async (t) => {
  const session = new Remit("http://127.0.0.1:1", { maxAttempts: 1 }).agent("11111111-1111-4111-8111-111111111111", "rms_x").session("22222222-2222-4222-8222-222222222222");
  const { call, runs } = await serve(t, session);
  const result = await call("search");
  assert.deepEqual([result.isError, result.structuredContent?.["code"], runs], [true, "unavailable", []]);
  assert.match(text(result)!, /Try again later/);
});

test("a price that is negative or no amount is refused at once", () => {
  for (const value of [-1n, 0.01, undefined] as bigint[]) {
    const server = new McpServer({ name: "tools", version: "1" });
    assert.throws(() => chargeTools(server, { session: {} as Session, tools: { search: { value } } }), /^RangeError: .*"search" must be an amount/);
  }
});

test("a call that is cancelled while its price is being held holds nothing, and its tool does not run", async (t) => {
  const session = await newSession();
  const controller = new AbortController();
  const { call, runs } = await serve(t, (_, { signal }) => Object.assign(Object.create(session), {
    begin: async (params: TransactionParams, options: { readonly signal?: AbortSignal } = {}) => {
      const transaction = await session.begin(params);
      const aborted = once(signal, "abort");
      controller.abort();
      await aborted;
      options.signal?.throwIfAborted(); // as if the response were still on its way
      return transaction;
    },
  }));
  await assert.rejects(call("search", {}, { signal: controller.signal }));
  await settled(session);
  assert.deepEqual([runs, await books(session)], [[], [1, 0n, 0n]]);
});

test("a settlement that fails is reported, and the result is delivered", async (t) => {
  const session = await newSession();
  const errors: unknown[] = [];
  const ending = async () => session;
  const { call } = await serve(t, ending, { onError: (error) => errors.push(error) });
  const held = await call("search");
  assert.equal(text(held), "found");
  const closing = await serve(t, async () => Object.assign(Object.create(session), { begin: async (params: never) => {
    const transaction = await session.begin(params);
    await session.end();
    return transaction;
  } }), { onError: (error) => errors.push(error) });
  assert.equal(text(await closing.call("search")), "found");
  assert.equal(errors.length, 1);
});

test("a server whose tools are registered is refused, and a plain Server is charged too", async (t) => {
  const late = new McpServer({ name: "tools", version: "1" });
  late.registerTool("search", {}, async () => ({ content: [] }));
  const session = await newSession(usd("1"));
  assert.throws(() => chargeTools(late, { session, tools }), /before the server's first tool/);
  const plain = new Server({ name: "tools", version: "1" }, { capabilities: { tools: {} } });
  chargeTools(plain, { session, tools });
  plain.setRequestHandler(CallToolRequestSchema, async () => ({ content: [{ type: "text", text: "found" }] }));
  const [here, there] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "agent", version: "1" });
  await Promise.all([plain.connect(there), client.connect(here)]);
  t.after(() => client.close());
  await client.callTool({ name: "search" });
  assert.deepEqual(await books(session), [1, usd("0.1"), 0n]);
});

test("many tool calls at once stay within the budget", async (t) => {
  const session = await newSession(usd("2"));
  const { call, runs } = await serve(t, session);
  const results: CallToolResult[] = [];
  let left = Number(process.env["REMIT_CALLS"] ?? 40) + 10;
  const work = async () => {
    while (left-- > 0) {
      results.push(await call("search"));
    }
  };
  await Promise.all(Array.from({ length: 50 }, work)); // more at once would wait longer than an MCP client does
  const refused = results.filter(({ isError }) => isError).length;
  assert.deepEqual([runs.length, results.length - refused], [20, 20]);
  await settled(session);
  assert.equal((await session.get()).valueUsed, usd("2"));
});
