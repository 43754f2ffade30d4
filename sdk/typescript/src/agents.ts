import { agentUsageFrom, identityBody, limitsBody, limitsFrom, type AgentLimits, type AgentLimitsInfo, type AgentUsage } from "./agentlimits.js";
import { keyed, type Call, type Caller, type WriteOptions } from "./call.js";
import { Credential } from "./credential.js";
import { flag, maybe, object, own, text, texts, time, write, type JSONObject } from "./json.js";
import { jwksFrom, type JWKS } from "./jwk.js";
import { known, scopesOf, type Names } from "./options.js";
import { agentsPerPage, list } from "./pages.js";
import { agentPath, familyPath } from "./paths.js";
import { seconds } from "./seconds.js";

/** A new agent. */
export interface AgentParams {
  readonly name: string; // 1 to 200 characters
  readonly scopes?: readonly string[]; // at most 64; without any, the agent may do nothing that requires a scope
  readonly description?: string;
  readonly metadata?: object; // at most 16 KiB
  readonly limits?: AgentLimits; // over all of its sessions
  readonly audiences?: readonly string[]; // at most 16 audiences beside Remit; by default any https URL
  readonly jwks?: JWKS; // at most 8 public keys with which it may authenticate
  readonly jwksUri?: string; // where those keys are, instead
  readonly dpopRequired?: boolean; // it gets tokens only for a key that it proves to have
  readonly secret?: false; // without a secret
}

/** An agent as the service shows it. */
export interface AgentInfo {
  readonly id: string;
  readonly organizationId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly status: string; // active or revoked
  readonly description: string;
  readonly metadata: JSONObject;
  readonly createdAt: Date;
  readonly revokedAt: Date | undefined;
  readonly suspendedAt: Date | undefined;
  readonly suspensionReason: string; // empty: none
  readonly limits: AgentLimitsInfo | undefined; // undefined: not returned, as in lists
  readonly usage: AgentUsage | undefined;
  readonly audiences: readonly string[] | undefined; // undefined: any https URL
  readonly jwks: JWKS | undefined;
  readonly jwksUri: string | undefined;
  readonly dpopRequired: boolean;
  readonly hasSecret: boolean;
}

/** A new agent. Only this response has its secret. */
export interface CreatedAgent extends AgentInfo {
  readonly secret: Credential; // empty with `secret: false`
}

/** A new secret. The previous one ends at previousExpiresAt, or has ended. */
export interface RotatedSecret {
  readonly secret: Credential;
  readonly previousExpiresAt: Date;
}

/** Filters a list of agents. */
export interface AgentFilter {
  readonly status?: "active" | "revoked";
}

/** Options of a secret rotation. */
export interface RotateSecretParams {
  readonly graceSeconds?: number; // how long the old secret stays valid; by default it ends at once
  readonly revokeFamilies?: boolean; // also revokes all refresh and access tokens of the agent; use it if the secret was stolen
}

/** All refresh tokens that descend from one exchange of an agent's secret. */
export interface Family {
  readonly id: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | undefined;
  readonly expiresAt: Date;
}

export function createAgent(caller: Caller, params: AgentParams, options: WriteOptions): Promise<CreatedAgent> {
  const names: Names<AgentParams> = {
    name: true, scopes: true, description: true, metadata: true, limits: true, audiences: true, jwks: true, jwksUri: true,
    dpopRequired: true, secret: true,
  };
  const { name, scopes, description, metadata, limits, secret, ...identity } = known("an agent", params, names);
  const body = write({
    name, scopes: scopesOf(scopes) ?? [], description, metadata, limits: limitsBody(limits), ...identityBody(identity), secret,
  });
  return caller.do(keyed(caller.service, "/v1/agents", body, options, createdFrom), options.signal);
}

export function getAgent(id: string): Call<AgentInfo> {
  return { method: "GET", path: agentPath(id), semantics: "safe", read: agentFrom };
}

export function listAgents(caller: Caller, filter: AgentFilter, signal: AbortSignal | undefined) {
  const { status } = known("a filter of agents", filter, { status: true });
  return list(caller, "/v1/agents", { status, limit: agentsPerPage }, agentFrom, signal);
}

export function revokeAgent(id: string): Call<unknown> {
  return { method: "POST", path: `${agentPath(id)}/revoke`, semantics: "idempotent", read: object };
}

export function rotateAgentSecret(
  caller: Caller,
  id: string,
  params: RotateSecretParams,
  options: WriteOptions,
): Promise<RotatedSecret> {
  const names = { graceSeconds: true, revokeFamilies: true } as const;
  const { graceSeconds, revokeFamilies } = known("a rotation of a secret", params, names);
  const body = write({ grace_seconds: seconds(graceSeconds), revoke_families: revokeFamilies });
  const path = `${agentPath(id)}/secret/rotate`;
  return caller.do(keyed(caller.service, path, body, options, rotatedFrom), options.signal);
}

export function listFamilies(caller: Caller, agentId: string, signal: AbortSignal | undefined) {
  return list(caller, `${agentPath(agentId)}/families`, {}, familyFrom, signal);
}

export function revokeFamily(agentId: string, familyId: string): Call<unknown> {
  return { method: "DELETE", path: familyPath(agentId, familyId), semantics: "idempotent", read: object };
}

export function agentFrom(value: unknown): AgentInfo {
  const answer = object(value);
  return {
    id: text(answer, "id"),
    organizationId: text(answer, "org_id"),
    name: text(answer, "name"),
    scopes: texts(answer, "scopes"),
    status: text(answer, "status"),
    description: maybe(answer, "description", text) ?? "",
    metadata: own(answer, "metadata"),
    createdAt: time(answer, "created_at"),
    revokedAt: maybe(answer, "revoked_at", time),
    suspendedAt: maybe(answer, "suspended_at", time),
    suspensionReason: maybe(answer, "suspension_reason", text) ?? "",
    limits: maybe(answer, "limits", limitsFrom),
    usage: maybe(answer, "usage", agentUsageFrom),
    audiences: maybe(answer, "audiences", texts),
    jwks: maybe(answer, "jwks", jwksFrom),
    jwksUri: maybe(answer, "jwks_uri", text),
    dpopRequired: maybe(answer, "dpop_required", flag) ?? false,
    hasSecret: maybe(answer, "has_secret", flag) ?? true,
  };
}

function createdFrom(value: unknown): CreatedAgent {
  return { ...agentFrom(value), secret: new Credential(maybe(object(value), "secret", text) ?? "") };
}

function rotatedFrom(value: unknown): RotatedSecret {
  const answer = object(value);
  return {
    secret: new Credential(text(answer, "secret")),
    previousExpiresAt: time(answer, "previous_expires_at"),
  };
}

function familyFrom(value: unknown): Family {
  const answer = object(value);
  return {
    id: text(answer, "family_id"),
    createdAt: time(answer, "created_at"),
    lastUsedAt: maybe(answer, "last_used_at", time),
    expiresAt: time(answer, "expires_at"),
  };
}
