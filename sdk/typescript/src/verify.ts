// Whose an access token is, for servers that accept agents' tokens.

import { Caller, type CallOptions, type Service } from "./call.js";
import type { Credential } from "./credential.js";
import { text, Unreadable } from "./json.js";
import { known, type Names } from "./options.js";
import { withQuery } from "./paths.js";

/** The agent that an access token belongs to. */
export interface Verified {
  readonly agentId: string;
  readonly organizationId: string;
  readonly scopes: readonly string[];
  readonly actorId: string | undefined; // the agent that asked for a delegated token; undefined: it is the agent's own
  readonly thumbprint: string | undefined; // of the key to which the token is bound; undefined: it is a bearer token
}

/** What a token must be good for. */
export interface VerifyOptions extends CallOptions {
  /** The audience that the token must have; the default is Remit. */
  readonly audience?: string;
  /** The DPoP header of the request that brought the token, whose method and URL the proof must name. */
  readonly proof?: string;
  readonly method?: string;
  /** The URL as the agent sees it. Remit believes it from its trusted proxies only, so the caller must be one. */
  readonly url?: string | URL;
}

export function verify(
  service: Service,
  accessToken: string | Credential,
  scope: string | undefined,
  options: VerifyOptions,
): Promise<Verified> {
  const names: Names<VerifyOptions> = { audience: true, proof: true, method: true, url: true, signal: true };
  const { audience, proof, signal } = known("the options of verify", options, names);
  const caller = new Caller(service, { header: proof === undefined ? "Bearer" : "DPoP", credential: accessToken });
  const path = withQuery("/v1/auth/verify", { scope, audience });
  const headers = proof === undefined ? {} : original(proof, options);
  const semantics = proof === undefined ? "safe" : "unsafe"; // the service takes a proof once
  return caller.do({ method: "GET", path, headers, semantics, read: verifiedFrom }, signal);
}

// original describes the request with the proof as a proxy does.
function original(proof: string, { method, url }: VerifyOptions): Record<string, string> {
  if (method === undefined || url === undefined) {
    throw new TypeError("remit: a proof needs the method and url of its request");
  }
  const { protocol, host, pathname, search } = new URL(url);
  return {
    DPoP: proof, "X-Forwarded-Method": method, "X-Forwarded-Proto": protocol.slice(0, -1), "X-Forwarded-Host": host,
    "X-Forwarded-Uri": pathname + search,
  };
}

function verifiedFrom(_: unknown, headers: Headers): Verified {
  const said = { agentId: headers.get("X-Agent-Id"), organizationId: headers.get("X-Org-Id") };
  if (headers.get("X-Scopes") === null) {
    throw new Unreadable("X-Scopes is missing");
  }
  return {
    agentId: text(said, "agentId"),
    organizationId: text(said, "organizationId"),
    scopes: (headers.get("X-Scopes") ?? "").split(" ").filter((scope) => scope !== ""),
    actorId: headers.get("X-Actor-Id") || undefined,
    thumbprint: headers.get("X-Cnf-Jkt") || undefined,
  };
}
