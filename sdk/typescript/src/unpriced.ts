// Tells which requests cost something else than their tokens by the price table.

import { membersOf, type Members } from "./modelusage.js";

// The values of members with which tokens cost what the table says.
const standard: Readonly<Record<string, readonly unknown[]>> = {
  service_tier: ["auto", "default", "flex", "priority", "standard_only"],
  speed: ["standard"],
  inference_geo: ["global"],
  background: [false], // where its usage is not seen
  audio: [],
  models: [], // others than the one that is priced
  fallbacks: [],
};
const mostDepth = 1000;

/** Returns why a request can cost something else than its tokens by the price table; undefined: it cannot. */
export function unpriced(body: Members): string | undefined {
  const odd = Object.keys(standard).find((name) => (body[name] ?? undefined) !== undefined && !standard[name]!.includes(body[name]));
  if (odd !== undefined) {
    return `with this ${odd} it can cost something else than its tokens by the price table`;
  }
  const modalities = body["modalities"] ?? [];
  if (!Array.isArray(modalities) || modalities.some((one) => one !== "text")) {
    return "modalities other than text have no price in the table";
  }
  if (compacts(body["context_management"] ?? [])) {
    return "a compaction can cost as much again, and no count of the usage has it";
  }
  return unpricedContent(body, mostDepth);
}

// compacts reports whether the provider may have the model rewrite the prompt before it answers: Anthropic's edits, OpenAI's list.
function compacts(management: unknown): boolean {
  const edits = membersOf(management) === management ? (membersOf(management)["edits"] ?? []) : management;
  const types = Array.isArray(edits) ? edits.map((edit) => membersOf(edit)["type"]) : [undefined];
  return types.some((type) => typeof type !== "string" || type.startsWith("compact"));
}

// unpricedContent looks for audio, and for caches that cost more than the ones of 5 minutes.
function unpricedContent(content: unknown, depth: number): string | undefined {
  if (typeof content !== "object" || content === null) {
    return undefined;
  }
  if (depth === 0) {
    return "it is nested too deeply";
  }
  const { type, cache_control: cache } = membersOf(content);
  if (type === "input_audio") {
    return "audio has no price in the table";
  }
  if ((membersOf(cache)["ttl"] ?? "5m") !== "5m") {
    return "a cache of another ttl than 5m has no price in the table";
  }
  for (const member of Object.values(content)) {
    const why = unpricedContent(member, depth - 1);
    if (why !== undefined) {
      return why;
    }
  }
  return undefined;
}
