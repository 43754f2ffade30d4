// Trusted issuers: platforms whose tokens for their workloads stand for agents.

import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { array, maybe, object, text, time, write, type Answer } from "./json.js";
import { jwksFrom, type JWKS } from "./jwk.js";
import { known, listOf, type Names } from "./options.js";
import { trustedIssuerPath, trustedIssuersPath } from "./paths.js";

/** Which tokens of an issuer stand for an agent: those with all of these claims. */
export interface TrustRule {
  readonly agentId: string;
  readonly claims: { readonly [name: string]: string }; // a * after the last / or : stands for any end
}

/** A new trusted issuer, with its keys or where they are. */
export interface TrustedIssuerParams {
  readonly issuer: string; // as its tokens spell it
  readonly rules: readonly TrustRule[]; // 1 to 64
  readonly jwksUri?: string;
  readonly jwks?: JWKS;
  readonly description?: string;
}

/** Changes of a trusted issuer. What is omitted stays; jwksUri and jwks replace each other. */
export interface TrustedIssuerChanges {
  readonly rules?: readonly TrustRule[];
  readonly jwksUri?: string;
  readonly jwks?: JWKS;
  readonly description?: string;
}

/** A trusted issuer as the service shows it. */
export interface TrustedIssuerInfo {
  readonly id: string;
  readonly issuer: string;
  readonly rules: readonly TrustRule[];
  readonly jwksUri: string | undefined;
  readonly jwks: JWKS | undefined;
  readonly description: string;
  readonly createdAt: Date;
}

export function createTrustedIssuer(caller: Caller, params: TrustedIssuerParams, options: WriteOptions): Promise<TrustedIssuerInfo> {
  const names: Names<TrustedIssuerParams> = { issuer: true, rules: true, jwksUri: true, jwks: true, description: true };
  const { issuer, ...settings } = known("a trusted issuer", params, names);
  const body = write({ issuer, ...members(settings) });
  return caller.do(keyed(caller.service, trustedIssuersPath, body, options, trustedIssuerFrom), options.signal);
}

export function listTrustedIssuers(): Call<TrustedIssuerInfo[]> {
  return { method: "GET", path: trustedIssuersPath, semantics: "safe", read: (answer) => array(answer, trustedIssuerFrom) };
}

export function getTrustedIssuer(id: string): Call<TrustedIssuerInfo> {
  return { method: "GET", path: trustedIssuerPath(id), semantics: "safe", read: trustedIssuerFrom };
}

export function updateTrustedIssuer(id: string, changes: TrustedIssuerChanges): Call<TrustedIssuerInfo> {
  const names: Names<TrustedIssuerChanges> = { rules: true, jwksUri: true, jwks: true, description: true };
  const body = write(members(known("changes of a trusted issuer", changes, names)));
  return { method: "PATCH", path: trustedIssuerPath(id), body, semantics: "idempotent", read: trustedIssuerFrom };
}

export function deleteTrustedIssuer(id: string): Call<void> {
  return { method: "DELETE", path: trustedIssuerPath(id), semantics: "idempotent", gone: true, read: () => undefined };
}

function members({ rules, jwksUri, jwks, description }: TrustedIssuerChanges): Answer {
  return { jwks_uri: jwksUri, jwks, rules: listOf("rules", rules, "{ agentId, claims }")?.map(ruleBody), description };
}

function ruleBody(rule: TrustRule): Answer {
  const { agentId, claims } = known("a rule", rule, { agentId: true, claims: true });
  return { agent_id: agentId, claims };
}

function trustedIssuerFrom(value: unknown): TrustedIssuerInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    issuer: text(answer, "issuer"),
    rules: array(answer["rules"], ruleFrom),
    jwksUri: maybe(answer, "jwks_uri", text),
    jwks: maybe(answer, "jwks", jwksFrom),
    description: maybe(answer, "description", text) ?? "",
    createdAt: time(answer, "created_at"),
  };
}

function ruleFrom(value: unknown): TrustRule {
  const answer = object(value);
  const claims = object(answer["claims"]);
  return { agentId: text(answer, "agent_id"), claims: Object.fromEntries(Object.keys(claims).map((name) => [name, text(claims, name)])) };
}
