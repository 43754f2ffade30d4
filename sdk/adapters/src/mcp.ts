/** Charges for the tools of an MCP server. */
import type { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import { CallToolRequestSchema, ListToolsRequestSchema, type CallToolRequest, type CallToolResult, type ServerNotification, type ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { Session, Transaction } from "@remit/sdk";
import { refusalOf, type Refusal } from "./refusal.js";
import { checkedPrice, holdPrice, report, settlePrice, type ToolPrice } from "./tool.js";

export type { ToolPrice };

/** A tool has no price. It did not run. */
export class UnpricedTool extends Error {
  override name = "UnpricedTool";
  readonly tool: string;
  constructor(tool: string) {
    super(`the tool ${JSON.stringify(tool)} has no price: whoever runs this server must give it one; a price of 0 counts the call alone`);
    this.tool = tool;
  }
}

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** Settings of chargeTools. */
export interface ChargeToolsOptions {
  /** The session that pays, or a function that returns the one of a request, such as by `extra.authInfo`. */
  readonly session: Session | ((request: CallToolRequest, extra: Extra) => Session | Promise<Session>);
  /** The prices by the name of the tool. A tool without one does not run. */
  readonly tools: Readonly<Record<string, ToolPrice>>;
  /** Learns of a settlement that failed. The result is delivered all the same. The default writes the error to the console. */
  readonly onError?: (error: unknown) => void;
}

type Handler = (request: CallToolRequest, extra: Extra) => Promise<CallToolResult>;
type AnyHandler = (request: never, extra: never) => unknown;

/**
 * Has each tool call of a server authorised and charged: it holds the price, runs the tool, and commits; a call that fails is rolled
 * back. Call it before the first tool is registered. A refusal is a tool error whose text tells the model which limit it met, what is
 * left and whom to ask. A price that is negative or no amount throws RangeError at once.
 */
export function chargeTools(server: McpServer | Server, options: ChargeToolsOptions): void {
  Object.entries(options.tools).forEach(([name, price]) => checkedPrice(name, price));
  const inner: Server = "server" in server ? server.server : server;
  try {
    inner.assertCanSetRequestHandler("tools/call");
  } catch {
    throw new TypeError("remit: call chargeTools before the server's first tool is registered");
  }
  const set = inner.setRequestHandler.bind(inner) as (schema: unknown, handler: AnyHandler) => void;
  let list: AnyHandler | undefined;
  const charging = (schema: unknown, handler: AnyHandler) => {
    if (schema === ListToolsRequestSchema) {
      list = handler;
    }
    set(schema, schema === CallToolRequestSchema ? (charged(handler as Handler, options, () => list) as AnyHandler) : handler);
  };
  inner.setRequestHandler = charging as Server["setRequestHandler"];
}

function charged(handler: Handler, { session, tools, onError = report }: ChargeToolsOptions, list: () => AnyHandler | undefined): Handler {
  return async (request, extra) => {
    const { name } = request.params;
    const price = Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (price === undefined) {
      const { message } = new UnpricedTool(name);
      return toolError({ text: `Refused: ${message}.`, data: { code: "unpriced_tool", tool: name } }, await hasOwnShape(name, list(), extra));
    }
    let transaction: Transaction;
    try {
      const payer = typeof session === "function" ? await session(request, extra) : session;
      transaction = await holdPrice(payer, name, price, extra.signal);
    } catch (error) {
      const refusal = refusalOf(error, name, price.value);
      if (refusal === undefined) {
        throw error;
      }
      return toolError(refusal, await hasOwnShape(name, list(), extra));
    }
    let succeeded = false;
    try {
      const result = await handler(request, extra);
      succeeded = result.isError !== true;
      return result;
    } finally {
      await settlePrice(transaction, price, succeeded).catch(onError);
    }
  };
}

function toolError({ text, data }: Refusal, ownShape: boolean): CallToolResult {
  return { isError: true, content: [{ type: "text", text }], ...(ownShape ? {} : { structuredContent: data }) };
}

// hasOwnShape reports whether a tool says what its structured content looks like. Clients refuse any other, in errors too.
async function hasOwnShape(name: string, list: AnyHandler | undefined, extra: Extra): Promise<boolean> {
  try {
    const request = { method: "tools/list", params: {} } as never;
    const { tools } = (await list?.(request, extra as never)) as { tools: { name: string; outputSchema?: unknown }[] };
    return tools.some((tool) => tool.name === name && tool.outputSchema !== undefined);
  } catch {
    return true;
  }
}
