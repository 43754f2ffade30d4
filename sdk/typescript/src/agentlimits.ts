// What bounds an agent over all of its sessions, and changes of an agent.

import { agentFrom, type AgentInfo } from "./agents.js";
import type { Call } from "./call.js";
import { amount, maybe, time, whole, write, Written, type Answer } from "./json.js";
import type { MicroUSD } from "./money.js";
import type { JWKS } from "./jwk.js";
import { known, listOf, scopesOf, type Names } from "./options.js";
import { agentPath } from "./paths.js";

/** Limits of an agent over all of its sessions. null removes a limit; in a change, omitted ones stay. */
export interface AgentLimits {
  readonly maxValuePerDay?: MicroUSD | null; // of a UTC day; 0n is a limit
  readonly maxActionsPerMinute?: number | null; // 1 to 1,000,000
  readonly maxOpenSessions?: number | null; // 0 to 1,000,000
}

/** The limits of an agent as the service shows them. undefined: there is no such limit. */
export interface AgentLimitsInfo {
  readonly maxValuePerDay: MicroUSD | undefined;
  readonly maxActionsPerMinute: number | undefined;
  readonly maxOpenSessions: number | undefined;
}

/** What is used of an agent's limits. Nothing is counted for a limit that the agent does not have. */
export interface AgentUsage {
  readonly valueUsedToday: MicroUSD | undefined; // of the UTC day
  readonly resetsAt: Date | undefined; // the end of the day
  readonly openSessions: number | undefined;
}

/** Changes of an agent. Omitted members stay. */
export interface AgentChanges {
  readonly name?: string;
  readonly description?: string;
  readonly metadata?: object; // at most 16 KiB
  readonly scopes?: readonly string[]; // at most 64
  readonly limits?: AgentLimits;
  /** The audiences that its tokens may have besides Remit. null: any https URL. New tokens only. */
  readonly audiences?: readonly string[] | null;
  /** The keys with which it may authenticate. null removes them. */
  readonly jwks?: JWKS | null;
  /** Where those keys are. null removes it. */
  readonly jwksUri?: string | null;
  readonly dpopRequired?: boolean;
}

export function updateAgent(id: string, changes: AgentChanges): Call<AgentInfo> {
  const names: Names<AgentChanges> = {
    name: true, description: true, metadata: true, scopes: true, limits: true, audiences: true, jwks: true, jwksUri: true, dpopRequired: true,
  };
  const { name, description, metadata, scopes, limits, ...identity } = known("a change of an agent", changes, names);
  const body = write({ name, description, metadata, scopes: scopesOf(scopes), limits: limitsBody(limits), ...identityBody(identity) });
  return { method: "PATCH", path: agentPath(id), body, semantics: "idempotent", read: agentFrom };
}

/** Returns the members that say how an agent authenticates and which audiences its tokens have. */
export function identityBody({ audiences, jwks, jwksUri, dpopRequired }: AgentChanges): Answer {
  return {
    audiences: audiences === null ? null : listOf("audiences", audiences, "https://tools.example/mcp"),
    jwks, jwks_uri: jwksUri, dpop_required: dpopRequired,
  };
}

/** Returns the limits to write; undefined: there are none. */
export function limitsBody(limits: AgentLimits | undefined): Written | undefined {
  if (limits === undefined) {
    return undefined;
  }
  const names: Names<AgentLimits> = { maxValuePerDay: true, maxActionsPerMinute: true, maxOpenSessions: true };
  const { maxValuePerDay, maxActionsPerMinute, maxOpenSessions } = known("the limits of an agent", limits, names);
  const members = {
    max_value_usd_per_day: maxValuePerDay, max_actions_per_minute: maxActionsPerMinute, max_open_sessions: maxOpenSessions,
  };
  return new Written(write(members));
}

export function limitsFrom(from: Answer, name: string): AgentLimitsInfo {
  const limits = from[name] as Answer;
  return {
    maxValuePerDay: maybe(limits, "max_value_usd_per_day", amount),
    maxActionsPerMinute: maybe(limits, "max_actions_per_minute", whole),
    maxOpenSessions: maybe(limits, "max_open_sessions", whole),
  };
}

export function agentUsageFrom(from: Answer, name: string): AgentUsage {
  const usage = from[name] as Answer;
  return {
    valueUsedToday: maybe(usage, "value_used_usd_today", amount),
    resetsAt: maybe(usage, "resets_at", time),
    openSessions: maybe(usage, "open_sessions", whole),
  };
}
