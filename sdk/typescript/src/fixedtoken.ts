// An agent's access token without what renews it, such as one that another agent has delegated.

import { fromBase64 } from "./base64.js";
import type { TokenSource } from "./call.js";
import { codes } from "./codes.js";
import { forHeader, type Credential } from "./credential.js";
import { Unauthorized, UnusableCredential } from "./errors.js";
import { object, text, type Answer } from "./json.js";
import type { PrivateKey } from "./keys.js";

/** Options of an agent by a token alone. */
export interface TokenOptions {
  /** The key to which the token is bound. */
  readonly dpop?: PrivateKey;
}

/** One access token, for as long as it lives. */
export class FixedToken implements TokenSource {
  readonly renews = false;
  /** The agent that the token says it is of. */
  readonly agent: string;
  readonly isBound: boolean;
  readonly #token: string;

  constructor(token: string | Credential) {
    this.#token = forHeader(token);
    try {
      const claims = claimsOf(this.#token);
      this.agent = text(claims, "sub");
      this.isBound = claims["cnf"] !== undefined;
    } catch {
      throw new UnusableCredential("token", "it is no access token"); // the first error would quote it
    }
  }

  async get(): Promise<string> {
    return this.#token;
  }

  async renew(): Promise<string> {
    const detail = "the token cannot be renewed: get a new one from the agent that delegated";
    throw new Unauthorized("an access token", { status: 401, code: codes.invalidToken, detail });
  }
}

/** Reads the claims of an access token without verifying them, which is for the service. Throws for what is no such token. */
export function claimsOf(token: string): Answer {
  return object(JSON.parse(new TextDecoder().decode(fromBase64(token.split(".")[1] ?? ""))));
}
