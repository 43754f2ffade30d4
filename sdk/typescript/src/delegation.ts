// Token exchange (RFC 8693): an agent gets a token that is good for one child session.

import { withTargets } from "./agentoptions.js";
import type { Caller, TokenSource } from "./call.js";
import { codes } from "./codes.js";
import { Credential } from "./credential.js";
import { RemitError } from "./errors.js";
import { claimsOf } from "./fixedtoken.js";
import { maybe, object, text, Unreadable, whole } from "./json.js";
import { known, listOf, scopesOf, type Names } from "./options.js";
import { tokenType } from "./tokens.js";

/** What a delegated token may do. By default all that the agent and the session may. */
export interface DelegateParams {
  readonly scopes?: readonly string[];
  readonly resource?: readonly string[]; // the audience, within that of the agent's own token; the default is Remit
}

/** A token for one child session. It ends with the session, and cannot be renewed. */
export interface DelegatedToken {
  readonly accessToken: Credential;
  readonly tokenType: string; // Bearer or DPoP
  readonly expiresIn: number; // seconds
  readonly scopes: readonly string[];
  readonly sessionId: string;
  readonly agentId: string; // of the child session
}

const accessTokenType = "urn:ietf:params:oauth:token-type:access_token";

/** Asks for a token of the child session. Repeating it does no harm. */
export async function delegate(
  issuer: Caller,
  tokens: TokenSource,
  session: string,
  params: DelegateParams,
  signal: AbortSignal | undefined,
): Promise<DelegatedToken> {
  const names: Names<DelegateParams> = { scopes: true, resource: true };
  const { scopes, resource } = known("a delegation", params, names);
  scopesOf(scopes);
  listOf("resource", resource, "https://tools.example/mcp");
  let presented = "";
  const form = async (limited: AbortSignal | undefined) => {
    presented = await tokens.get("", limited);
    const fields = {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: presented, subject_token_type: accessTokenType, session_id: session,
    };
    return withTargets(new URLSearchParams(fields), scopes, resource);
  };
  const read = (answer: unknown) => delegatedFrom(answer, session, issuer.proves);
  const ask = () => issuer.do({ method: "POST", path: "/oauth2/token", form, semantics: "safe", read }, signal);
  try {
    return await ask();
  } catch (error) {
    if (!tokens.renews || !(error instanceof RemitError) || error.code !== codes.invalidRequest) {
      throw error;
    }
    // So the service refuses a token that was revoked (RFC 8693 §2.2.2), and other mistakes.
    await tokens.get(presented, signal).catch(() => {
      throw error;
    });
    return ask();
  }
}

function delegatedFrom(value: unknown, sessionId: string, bound: boolean): DelegatedToken {
  const answer = object(value);
  const token = text(answer, "access_token");
  return {
    accessToken: new Credential(token),
    tokenType: tokenType(answer, bound),
    expiresIn: whole(answer, "expires_in"),
    scopes: (maybe(answer, "scope", text) ?? "").split(" ").filter((scope) => scope !== ""),
    sessionId,
    agentId: agentIn(token),
  };
}

function agentIn(token: string): string {
  try {
    return text(claimsOf(token), "sub");
  } catch {
    throw new Unreadable("its token cannot be read");
  }
}
