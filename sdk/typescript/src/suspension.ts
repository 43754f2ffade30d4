// Suspension of agents and sessions.

import { agentFrom, type AgentInfo } from "./agents.js";
import type { Call } from "./call.js";
import { object, whole, write } from "./json.js";
import { agentPath, sessionPath } from "./paths.js";
import { sessionFrom, type SessionInfo } from "./sessions.js";

/** Whether to suspend or to resume. */
export type Change = "suspend" | "resume";

export function changeAgent(id: string, change: Change, reason: string | undefined): Call<AgentInfo> {
  const path = `${agentPath(id)}/${change}`;
  return { method: "POST", path, body: write({ reason }), semantics: "idempotent", read: agentFrom };
}

export function changeSession(id: string, change: Change, reason: string | undefined): Call<SessionInfo> {
  const path = `${sessionPath(id)}/${change}`;
  return { method: "POST", path, body: write({ reason }), semantics: "idempotent", read: sessionFrom };
}

/** Changes all agents. The result is how many live agents are in the new state. */
export function changeAllAgents(change: Change, reason: string | undefined): Call<number> {
  const counted = change === "suspend" ? "suspended" : "resumed";
  const read = (answer: unknown) => whole(object(answer), counted);
  return { method: "POST", path: `/v1/agents/${change}`, body: write({ all: true, reason }), semantics: "idempotent", read };
}
