// Reports of what an organization and a session used.

import type { Call } from "./call.js";
import { array, change, maybe, object, text, whole } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known } from "./options.js";
import { sessionPath, withQuery } from "./paths.js";

const longestReport = 16 << 20; // bytes of 10,000 lines

/** What the lines of a report tell apart. */
export type UsageGroup = "day" | "agent" | "session" | "action_type";

/** What a report of usage contains: by default the last 30 days, by day. */
export interface UsageParams {
  readonly firstDay?: string; // such as 2026-11-01, in UTC; by default 29 days before lastDay
  readonly lastDay?: string; // at most 399 days after firstDay; by default today
  readonly groupBy?: readonly UsageGroup[]; // one or two; by default day
  readonly agentId?: string; // only this agent's usage
}

/** What a group used. It has the members of the groups that the report tells apart. */
export interface UsageLine {
  readonly day: string | undefined; // such as 2026-11-21, in UTC
  readonly agentId: string | undefined;
  readonly sessionId: string | undefined; // in a report by session, undefined: those that are no longer kept, together
  readonly actionType: string | undefined; // in a report by action type, undefined: charges without one
  readonly actionCount: number;
  readonly value: MicroUSD; // below 0n when more was given back than used
}

export function usage(params: UsageParams): Call<UsageLine[]> {
  return { method: "GET", path: pathOf(params, "json"), semantics: "safe", most: longestReport, read: linesFrom };
}

export function usageCsv(params: UsageParams): Call<string> {
  return { method: "GET", path: pathOf(params, "csv"), semantics: "safe", most: longestReport, verbatim: true, read: String };
}

export function sessionUsage(id: string): Call<UsageLine[]> {
  return { method: "GET", path: `${sessionPath(id)}/usage`, semantics: "safe", most: longestReport, read: linesFrom };
}

function pathOf(params: UsageParams, format: "json" | "csv"): string {
  const names = { firstDay: true, lastDay: true, groupBy: true, agentId: true } as const;
  const { firstDay, lastDay, groupBy, agentId } = known("a report of usage", params, names);
  if (groupBy !== undefined && !Array.isArray(groupBy)) {
    throw new TypeError('remit: groupBy must be a list, such as ["day"]');
  }
  return withQuery("/v1/usage", { from: firstDay, to: lastDay, group_by: groupBy?.join(","), agent_id: agentId, format });
}

function linesFrom(answer: unknown): UsageLine[] {
  return array(answer, (value) => {
    const line = object(value);
    return {
      day: maybe(line, "day", text),
      agentId: maybe(line, "agent_id", text),
      sessionId: maybe(line, "session_id", text),
      actionType: maybe(line, "action_type", text),
      actionCount: whole(line, "action_count"),
      value: change(line, "value_usd"),
    };
  });
}
