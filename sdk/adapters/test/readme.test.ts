import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import test from "node:test";
import { promisify } from "node:util";
import { Client as MCPClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { usd, type Session } from "@remit/sdk";
import { baseURL, newAgentAndSession, provider, serviceURL } from "./reconcile.js";

const directory = new URL("../test/readme/", import.meta.url).pathname; // has the price table
const program = (example: string) => new URL(`readme/${example}.js`, import.meta.url).pathname;

// setting returns a session, and the environment of a program that is to spend it.
async function setting(maxValue: bigint): Promise<{ session: Session; env: Record<string, string> }> {
  const { agent, secret, session } = await newAgentAndSession(maxValue);
  const env = {
    PATH: process.env["PATH"]!, REMIT_BINARY: process.env["REMIT_BINARY"]!,
    REMIT_ADDR: serviceURL, REMIT_AGENT: agent, REMIT_SECRET: secret, REMIT_SESSION: session.id,
    OPENAI_BASE_URL: baseURL, OPENAI_API_KEY: "none", ANTHROPIC_BASE_URL: provider, ANTHROPIC_API_KEY: "none",
  };
  return { session, env };
}

const examples: readonly (readonly [string, RegExp, number])[] = [
  ["clients-of-openai-and-anthropic", /^1 answer\nstreamed\n$/, 2],
  ["vercel-ai", /^finished: \w+\n$/, 1],
  ["langchain", /^ai\n$/, 1],
  ["openai-agents", /^1 response\n$/, 1],
];
for (const [example, said, calls] of examples) {
  test(`the example ${example} runs and is charged`, async () => {
    const { session, env } = await setting(usd("5"));
    const { stdout } = await promisify(execFile)(process.execPath, [program(example)], { env, cwd: directory });
    assert.match(stdout, said);
    const { actionCount, valueUsed, valueHeld } = await session.get();
    assert.equal(actionCount, calls);
    assert.ok(valueUsed > 0n && valueHeld === 0n, `${valueUsed} used, ${valueHeld} held`);
  });
}

test("the example of clients stops when the budget is spent", async () => {
  const { session, env } = await setting(1n);
  const { stdout } = await promisify(execFile)(process.execPath, [program("clients-of-openai-and-anthropic")], { env, cwd: directory });
  assert.equal(stdout, "out of max_value_usd: nothing was sent\n");
  assert.equal((await session.get()).actionCount, 0);
});

test("the example of an MCP server charges its tool, and refuses what does not fit", async () => {
  const { session, env } = await setting(usd("0.01"));
  const client = new MCPClient({ name: "agent", version: "1" });
  await client.connect(new StdioClientTransport({ command: process.execPath, args: [program("mcp-servers")], env }));
  try {
    const search = () => client.callTool({ name: "search", arguments: { query: "owls" } });
    assert.deepEqual((await search()).content, [{ type: "text", text: "nothing about owls" }]);
    const refused = await search();
    assert.equal(refused.isError, true);
    assert.match(JSON.stringify(refused.content), /max_value_usd does not allow it: search costs .* 0 of 0.01 USD are left/);
  } finally {
    await client.close();
  }
  assert.equal((await session.get()).valueUsed, usd("0.01"));
});

test("the example of a test runs", async () => {
  const { env } = await setting(1n);
  const { stdout } = await promisify(execFile)(process.execPath, ["--test", "--test-reporter=tap", program("tests")], { env });
  assert.match(stdout, /^# pass 1$/m);
  assert.match(stdout, /^# fail 0$/m);
});
