// Tells which calls can reason. Reasoning is output that a provider counts and mostly does not send, so the bytes of an answer that
// breaks off do not bound it.

import { membersOf, type Members } from "./modelusage.js";

const names = ["reasoning", "reasoning_effort", "reasoning_config", "thinking", "thinking_config"];
const off: readonly unknown[] = ["none", "disabled", false];

/** Returns whether a request asks the model to reason, or turns it off; undefined: it says neither. */
export function asksToReason(request: Members): boolean | undefined {
  const levels = names.map((name) => levelOf(request[name])).filter((level) => (level ?? undefined) !== undefined);
  return levels.length === 0 ? undefined : levels.some((level) => !off.includes(level));
}

// levelOf returns true for an object with another member than a level, such as enabled or a budget: what it asks for is unknown.
function levelOf(value: unknown): unknown {
  const { effort, type, ...others } = membersOf(value);
  const asks = Object.values(others).some((member) => (member ?? undefined) !== undefined);
  return membersOf(value) === value ? asks || (effort ?? type) : value;
}
