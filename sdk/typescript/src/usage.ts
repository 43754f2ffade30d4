import { amount, maybe, object, text, time, whole } from "./json.js";
import type { MicroUSD } from "./money.js";

/** What a session has used, and what remains. Pending transactions hold valueHeld; it is not part of what remains. */
export interface Usage {
  readonly actionCount: number;
  readonly maxActions: number;
  readonly remainingActions: number;
  readonly valueUsed: MicroUSD;
  readonly maxValue: MicroUSD;
  readonly valueHeld: MicroUSD;
  readonly remainingValue: MicroUSD;
  readonly expiresAt: Date;
  /** The limit that would have refused a charge to a session that only observes its limits. */
  readonly wouldRefuse: string | undefined;
}

export function usageFrom(value: unknown): Usage {
  const answer = object(value);
  return {
    actionCount: whole(answer, "action_count"),
    maxActions: whole(answer, "max_actions"),
    remainingActions: whole(answer, "remaining_actions"),
    valueUsed: amount(answer, "value_used_usd"),
    maxValue: amount(answer, "max_value_usd"),
    valueHeld: amount(answer, "value_held_usd"),
    remainingValue: amount(answer, "remaining_value_usd"),
    expiresAt: time(answer, "expires_at"),
    wouldRefuse: maybe(answer, "would_refuse", text),
  };
}
