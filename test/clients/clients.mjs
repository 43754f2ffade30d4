// Makes calls with the packages that people use, as they are: each gets the gateway's address and a session key, and nothing else of
// Remit. Standard input is a JSON array of cases ({client, base_url, key, model, streamed, tool}); standard output gets an array with what
// each came to: {text, queries} or {status, message}.
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { HumanMessage, ToolMessage } from "@langchain/core/messages";
import { ChatOpenAI } from "@langchain/openai";
import { Agent, OpenAIProvider, Runner, setTracingDisabled, tool as agentTool } from "@openai/agents";
import { generateText, stepCountIs, streamText, tool as aiTool } from "ai";
import OpenAI from "openai";
import { z } from "zod";

setTracingDisabled(true); // the agents' traces would go to OpenAI

const question = "What is left of the budget? 🦉";
const most = 64; // tokens of an answer, where a client must say
const description = "Looks up what is asked";
const parameters = { type: "object", properties: { query: { type: "string" } }, required: ["query"], additionalProperties: false };
const inputSchema = z.object({ query: z.string() });

// lookup returns the tool that is called, and what it was asked.
function lookup() {
  const queries = [];
  const run = async (input) => {
    queries.push((typeof input === "string" ? JSON.parse(input) : input).query);
    return "found";
  };
  return { queries, run };
}

async function openaiChat({ base_url: baseURL, key: apiKey, model, streamed, tool }, { run }) {
  const client = new OpenAI({ baseURL, apiKey });
  const body = { model, messages: [{ role: "user", content: question }] };
  if (tool) {
    const tools = [{ type: "function", function: { name: "lookup", description, parameters, parse: JSON.parse, function: run } }];
    return await client.chat.completions.runTools({ ...body, tools, stream: streamed }).finalContent();
  }
  if (streamed) {
    return await client.chat.completions.stream(body).finalContent();
  }
  return (await client.chat.completions.create(body)).choices[0].message.content;
}

async function openaiResponses({ base_url: baseURL, key: apiKey, model, streamed, tool }, { run }) {
  const client = new OpenAI({ baseURL, apiKey });
  const input = [{ role: "user", content: question }];
  const tools = tool ? [{ type: "function", name: "lookup", description, parameters, strict: true }] : undefined;
  for (;;) {
    const body = { model, input, tools };
    const answer = streamed ? await client.responses.stream(body).finalResponse() : await client.responses.create(body);
    const calls = answer.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return answer.output_text;
    input.push(...answer.output);
    for (const call of calls) {
      input.push({ type: "function_call_output", call_id: call.call_id, output: await run(call.arguments) });
    }
  }
}

async function anthropic({ base_url: baseURL, key: apiKey, model, streamed, tool }, { run }) {
  const client = new Anthropic({ baseURL, apiKey });
  const body = { model, max_tokens: most, messages: [{ role: "user", content: question }] };
  const textOf = (message) => message.content.find((block) => block.type === "text").text;
  if (tool) {
    const tools = [{ type: "custom", name: "lookup", description, input_schema: parameters, run, parse: (input) => input }];
    const runner = client.beta.messages.toolRunner({ ...body, tools, stream: streamed });
    for await (const turn of runner) {
      if (streamed) await turn.finalMessage();
    }
    return textOf(await runner.done());
  }
  return textOf(streamed ? await client.messages.stream(body).finalMessage() : await client.messages.create(body));
}

const ai = (modelOf) => async (c, { run }) => {
  const model = modelOf(c);
  const tools = c.tool ? { lookup: aiTool({ description, inputSchema, execute: run }) } : undefined;
  const options = { model, prompt: question, tools, stopWhen: stepCountIs(2), maxOutputTokens: most };
  if (!c.streamed) {
    return (await generateText(options)).text;
  }
  let text = "";
  for await (const part of streamText({ ...options, onError: () => {} }).fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") text += part.text;
  }
  return text;
};

const langchain = (useResponsesApi) => async ({ base_url: baseURL, key: apiKey, model, streamed, tool }, { run }) => {
  const plain = new ChatOpenAI({ model, apiKey, useResponsesApi, configuration: { baseURL } });
  const chat = tool ? plain.bindTools([{ type: "function", function: { name: "lookup", description, parameters } }]) : plain;
  const messages = [new HumanMessage(question)];
  for (;;) {
    let answer;
    if (streamed) {
      for await (const chunk of await chat.stream(messages)) answer = answer === undefined ? chunk : answer.concat(chunk);
    } else {
      answer = await chat.invoke(messages);
    }
    if (!answer.tool_calls?.length) return answer.text;
    messages.push(answer);
    for (const call of answer.tool_calls) {
      messages.push(new ToolMessage({ tool_call_id: call.id, content: await run(call.args) }));
    }
  }
};

const agents = (useResponses) => async ({ base_url: baseURL, key: apiKey, model, streamed, tool }, { run }) => {
  const runner = new Runner({ modelProvider: new OpenAIProvider({ useResponses, baseURL, apiKey }) });
  const tools = tool ? [agentTool({ name: "lookup", description, parameters: inputSchema, execute: run })] : [];
  const agent = new Agent({ name: "scout", model, tools });
  if (!streamed) {
    return (await runner.run(agent, question)).finalOutput;
  }
  const stream = await runner.run(agent, question, { stream: true });
  for await (const _ of stream) {
  }
  await stream.completed;
  return stream.finalOutput;
};

const clients = {
  "openai, chat": openaiChat,
  "openai, responses": openaiResponses,
  "@anthropic-ai/sdk": anthropic,
  "ai, @ai-sdk/openai, chat": ai((c) => createOpenAI({ baseURL: c.base_url, apiKey: c.key }).chat(c.model)),
  "ai, @ai-sdk/openai, responses": ai((c) => createOpenAI({ baseURL: c.base_url, apiKey: c.key }).responses(c.model)),
  "ai, @ai-sdk/anthropic": ai((c) => createAnthropic({ baseURL: `${c.base_url}/v1`, apiKey: c.key })(c.model)),
  "@langchain/openai, chat": langchain(false),
  "@langchain/openai, responses": langchain(true),
  "@openai/agents, chat": agents(false),
  "@openai/agents, responses": agents(true),
};

// statusOf finds the status in an error, or in the one that it tells of.
function statusOf(error) {
  for (let at = error; at != null; at = at.lastError ?? at.cause) {
    const status = at.status ?? at.statusCode;
    if (status !== undefined) return status;
  }
  return 0;
}

async function outcome(c) {
  const tool = lookup();
  try {
    return { text: await clients[c.client](c, tool), queries: tool.queries };
  } catch (error) {
    return { status: statusOf(error), message: String(error?.lastError?.message ?? error?.message ?? error) };
  }
}

let input = "";
for await (const piece of process.stdin) input += piece;
const outcomes = await Promise.all(JSON.parse(input).map(outcome));
process.stdout.write(JSON.stringify(outcomes));
