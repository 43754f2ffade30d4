// A proxy between the SDK and the service that loses or delays responses on demand.
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { Client, type ClientOptions } from "@remit/sdk";
import { serviceURL } from "./service.js";

/** A request that the proxy received. */
export interface Seen {
  readonly place: string; // method and path
  readonly query: string; // decoded, without the question mark
  readonly key: string | undefined; // Idempotency-Key
  readonly token: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly nth: number; // counts the requests with the same place, from 1
}

/**
 * What becomes of a request. "pass" hands it on; "lose" too, and drops the answer, so that the service has done it; "hang"
 * keeps it for ever; an answer is given instead of the service's; a function rewrites the service's answer.
 */
export type Fate =
  | "pass"
  | "lose"
  | "hang"
  | { readonly status: number; readonly headers?: Record<string, string>; readonly body?: string }
  | ((answer: string) => string);

export class Network {
  readonly seen: Seen[] = [];
  /** Decides what happens to a request; by default all pass. */
  fate: (seen: Seen) => Fate = () => "pass";
  readonly url: string;

  constructor(url: string) {
    this.url = url;
  }

  client(options: ClientOptions = {}): Client {
    return new Client(this.url, options);
  }

  count(place: string): number {
    return this.seen.filter((s) => s.place === place).length;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) {
      parts.push(part as Buffer);
    }
    const body = Buffer.concat(parts).toString();
    const place = `${request.method} ${request.url!.replace(/\?.*/, "")}`;
    const key = request.headers["idempotency-key"] as string | undefined;
    const query = new URL(request.url!, "http://h").searchParams;
    const said = [...query].map(([name, value]) => `${name}=${value}`).join("&");
    const { headers: sent } = request;
    const seen = { place, query: said, key, token: sent.authorization, headers: sent, body, nth: this.count(place) + 1 };
    this.seen.push(seen);
    const fate = this.fate(seen);
    if (fate === "hang") {
      return;
    }
    if (typeof fate === "object") {
      response.writeHead(fate.status, fate.headers).end(fate.body);
      return;
    }
    const { host: _, connection: __, "content-length": ___, ...headers } = request.headers;
    const init: RequestInit = { method: request.method!, headers: headers as Record<string, string>, redirect: "manual" };
    const answer = await fetch(serviceURL + request.url, body === "" ? init : { ...init, body });
    const text = await answer.text();
    if (fate === "lose") {
      request.socket.destroy();
      return;
    }
    const kept = [...answer.headers].filter(([name]) => !["content-length", "connection", "keep-alive"].includes(name));
    response.writeHead(answer.status, Object.fromEntries(kept)).end(typeof fate === "function" ? fate(text) : text);
  }
}

/** Returns a proxy that ends with the test. */
export async function newNetwork(t: TestContext): Promise<Network> {
  let network: Network;
  const server = createServer((request, response) => {
    network.handle(request, response).catch((error: unknown) => {
      console.error(error);
      request.socket.destroy();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  network = new Network(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return network;
}
