/** Charges for the tools of an MCP server. */
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { CallToolRequest, CallToolResult, ServerNotification, ServerRequest } from "@modelcontextprotocol/sdk/types.js";
import type { Session, Transaction } from "@remit/sdk";
import { UnboundedCall } from "@remit/sdk/metering";
import { methodOf } from "./mcpmethod.js";
import { refusalOf, type Refusal } from "./refusal.js";
import { checkedPrice, holdPrice, report, settlePrice, type ToolPrice } from "./tool.js";

export type { ToolPrice };

/** A tool has no price. It did not run. */
export class UnpricedTool extends Error {
  override name = "UnpricedTool";
  readonly tool: string;
  constructor(tool: string) {
    super(`the tool ${JSON.stringify(tool)} has no price: the operator of this server must set one; a price of 0 counts the call alone`);
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

/** What chargeTools needs of a `Server`. It is any copy's: a program may load the MCP SDK twice, as ES modules and as CommonJS. */
export interface ToolServer {
  setRequestHandler(schema: any, handler: any): void;
  removeRequestHandler(method: string): void;
  assertCanSetRequestHandler(method: string): void;
  fallbackRequestHandler?: any;
}

/**
 * Has each tool call of a server authorised and charged: it holds the price, runs the tool, and commits; a call that fails is rolled
 * back. Call it before the first tool is registered. A refusal is a tool error whose text tells the model which limit it met, what is
 * left and where to ask for more. A price that is negative or no amount throws RangeError at once. A server whose tool calls it cannot charge
 * throws UnboundedCall, and so does a handler that does not say which requests it is for, when it is set.
 */
export function chargeTools(server: ToolServer | { readonly server: ToolServer }, options: ChargeToolsOptions): void {
  Object.entries(options.tools).forEach(([name, price]) => checkedPrice(name, price));
  const inner = "server" in server ? server.server : server;
  if (needed.some((name) => typeof inner[name] !== "function")) {
    throw uncharged(`it has no ${needed.join(", ")}`);
  }
  if (hasTools(inner)) {
    throw new TypeError("remit: call chargeTools before the server's first tool is registered");
  }
  let list: AnyHandler | undefined;
  const charging = (handler: AnyHandler) => charged(handler as Handler, options, () => list) as AnyHandler;
  chargeHandlers(inner, charging, (handler) => (list = handler));
  chargeFallback(inner, charging);
}

const needed = ["setRequestHandler", "removeRequestHandler", "assertCanSetRequestHandler"] as const;
const calls = "tools/call";

function uncharged(why: string): UnboundedCall {
  return new UnboundedCall("an MCP server", `${why}, so its tools cannot be charged`);
}

function hasTools(server: ToolServer): boolean {
  try {
    server.assertCanSetRequestHandler(calls);
    return false;
  } catch {
    return true;
  }
}

// chargeHandlers charges the handlers that are set from now on. Whether the server agrees on which of them is for tools is seen after
// each.
function chargeHandlers(server: ToolServer, charging: (handler: AnyHandler) => AnyHandler, onList: (handler: AnyHandler) => void): void {
  const set = server.setRequestHandler.bind(server) as (schema: unknown, handler: AnyHandler) => void;
  const setCharged = (schema: unknown, handler: AnyHandler): void => {
    const method = methodOf(schema);
    if (method === undefined) {
      throw uncharged("the schema of a request handler does not say its method");
    }
    const isForTools = method === calls;
    const hadTools = hasTools(server);
    set(schema, isForTools ? charging(handler) : handler);
    if (hasTools(server) !== (hadTools || isForTools)) {
      server.removeRequestHandler(calls);
      throw uncharged(`it takes a handler of ${method} for one of other requests`);
    }
    if (method === "tools/list") {
      onList(handler);
    }
  };
  server.setRequestHandler = setCharged;
  if (server.setRequestHandler !== setCharged) {
    throw uncharged("its setRequestHandler cannot be replaced");
  }
}

// chargeFallback charges the tool calls of a server that handles all requests by its fallback.
function chargeFallback(server: ToolServer, charging: (handler: AnyHandler) => AnyHandler): void {
  const wrapped = (handler: AnyHandler | undefined): AnyHandler | undefined => {
    if (handler === undefined) {
      return undefined;
    }
    const forTools = charging(handler) as (request: unknown, extra: unknown) => unknown;
    return (request: { readonly method: string }, extra: unknown) => (request.method === calls ? forTools : (handler as typeof forTools))(request, extra);
  };
  let fallback = wrapped(server.fallbackRequestHandler as AnyHandler | undefined);
  Object.defineProperty(server, "fallbackRequestHandler", {
    configurable: true, enumerable: true, get: () => fallback, set: (handler: AnyHandler | undefined) => (fallback = wrapped(handler)),
  });
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
