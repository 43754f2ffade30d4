// A server that accepts agents' tokens (a protected resource, RFC 9728), such as an MCP server.

import { InsufficientScope, InvalidProof, RemitError, Unauthorized } from "./errors.js";
import { known, listOf, type Names } from "./options.js";
import type { Verified, VerifyOptions } from "./verify.js";

/** What a protected resource says of itself. */
export interface ProtectedResourceParams {
  /** Its URL, which is the audience of the tokens that it accepts. */
  readonly resource: string;
  /** The issuers of those tokens: Remit's. */
  readonly authorizationServers: readonly string[];
  readonly scopes?: readonly string[];
  readonly name?: string;
  readonly documentation?: string; // a URL
}

/** What verifies tokens: a Client. */
interface Verifier {
  verify(accessToken: string, scope?: string, options?: VerifyOptions): Promise<Verified>;
}

const algorithms = ["ES256", "ES384", "EdDSA", "RS256", "PS256"];

/** A server that accepts tokens that are made for it, and tells clients where they get them. */
export class ProtectedResource {
  readonly resource: string;
  /** Where clients look for the metadata (RFC 9728 §3.1). */
  readonly metadataUrl: string;
  readonly #params: ProtectedResourceParams;

  constructor(params: ProtectedResourceParams) {
    const names: Names<ProtectedResourceParams> = {
      resource: true, authorizationServers: true, scopes: true, name: true, documentation: true,
    };
    this.#params = known("a protected resource", params, names);
    listOf("authorizationServers", params.authorizationServers, "https://remit.example");
    listOf("scopes", params.scopes, "read");
    const { origin, pathname } = new URL(params.resource);
    this.resource = params.resource;
    this.metadataUrl = `${origin}/.well-known/oauth-protected-resource${pathname.replace(/\/$/, "")}`;
  }

  /** Returns the document for `metadataUrl` (RFC 9728 §2). */
  metadata(): { readonly [name: string]: unknown } {
    const { authorizationServers, scopes, name, documentation } = this.#params;
    return {
      resource: this.resource,
      authorization_servers: authorizationServers,
      ...(scopes === undefined ? {} : { scopes_supported: scopes }),
      bearer_methods_supported: ["header"],
      dpop_signing_alg_values_supported: algorithms,
      ...(name === undefined ? {} : { resource_name: name }),
      ...(documentation === undefined ? {} : { resource_documentation: documentation }),
    };
  }

  /** Returns the WWW-Authenticate of a refusal (RFC 6750 §3, RFC 9728 §5.1). Without an error: of a request without a token. */
  challenge(error?: unknown): string {
    const where = `resource_metadata="${this.metadataUrl}"`;
    if (error instanceof InsufficientScope) {
      return `Bearer error="insufficient_scope", scope="${error.requiredScope}", ${where}`;
    }
    if (error instanceof InvalidProof) {
      return `DPoP error="${error.code}", algs="${algorithms.join(" ")}", ${where}`;
    }
    return error instanceof RemitError && error.status === 401 ? `Bearer error="invalid_token", ${where}` : `Bearer ${where}`;
  }

  /**
   * Handles what is not the server's own work: it answers requests for the metadata, and refuses requests without a token for this
   * server, which has the scope if there is one. For the others it returns whose the token is. A request with a proof needs this
   * server among Remit's trusted proxies.
   */
  async handle(request: Request, client: Verifier, scope?: string): Promise<Verified | Response> {
    const { pathname, search } = new URL(request.url);
    if (["GET", "HEAD"].includes(request.method) && pathname === new URL(this.metadataUrl).pathname) {
      return Response.json(this.metadata(), { headers: { "Cache-Control": "public, max-age=3600" } });
    }
    const [, scheme, token] = /^(Bearer|DPoP) +([\x21-\x7e]+)$/i.exec(request.headers.get("Authorization") ?? "") ?? [];
    if (token === undefined) {
      return this.#refusal(401);
    }
    const proof = request.headers.get("DPoP");
    const isBound = scheme!.toLowerCase() === "dpop";
    if (isBound && proof === null) {
      return this.#refusal(401, new InvalidProof("a request", { status: 401, code: "invalid_dpop_proof" }));
    }
    // The client sees the resource's origin, whatever address a proxy in front has for this server.
    const url = new URL(this.resource).origin + pathname + search;
    const shown = isBound ? { proof: proof!, method: request.method, url } : {};
    try {
      return await client.verify(token, scope, { audience: this.resource, ...shown, signal: request.signal });
    } catch (error) {
      return this.#answer(error);
    }
  }

  #answer(error: unknown): Response {
    if (error instanceof Unauthorized || error instanceof InvalidProof || error instanceof InsufficientScope) {
      return this.#refusal(error instanceof InsufficientScope ? 403 : 401, error);
    }
    if (error instanceof RemitError) { // the token may be good
      return new Response(null, { status: 503, headers: { "Retry-After": String(Math.ceil(error.retryAfter ?? 1)) } });
    }
    throw error;
  }

  #refusal(status: number, error?: unknown): Response {
    return new Response(null, { status, headers: { "WWW-Authenticate": this.challenge(error) } });
  }
}
