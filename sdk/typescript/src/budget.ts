// The budget of an organization.

import type { Call } from "./call.js";
import { amount, maybe, object, text, time, write } from "./json.js";
import type { MicroUSD } from "./money.js";
import { known } from "./options.js";

/** After which time a budget starts anew, in UTC. */
export type Period = "day" | "month" | "none";

/** A budget of an organization. */
export interface BudgetParams {
  readonly maxValue: MicroUSD;
  readonly period: Period;
}

/**
 * What an organization's root sessions may spend in a period. A root session reserves its maxValue when it is created or topped up,
 * and gives back what it did not use when it is over.
 */
export interface Budget {
  readonly maxValue: MicroUSD;
  readonly period: string; // day, month or none
  readonly valueReserved: MicroUSD;
  readonly valueUsed: MicroUSD;
  readonly remaining: MicroUSD;
  readonly periodStartedAt: Date | undefined; // undefined: the period is none
  readonly resetsAt: Date | undefined;
}

const path = "/v1/budget";

export function setBudget(params: BudgetParams): Call<Budget> {
  const { maxValue, period } = known("a budget", params, { maxValue: true, period: true });
  return { method: "PUT", path, body: write({ max_value_usd: maxValue, period }), semantics: "idempotent", read: budgetFrom };
}

export function getBudget(): Call<Budget> {
  return { method: "GET", path, semantics: "safe", read: budgetFrom };
}

export function deleteBudget(): Call<void> {
  return { method: "DELETE", path, semantics: "idempotent", gone: true, read: () => undefined };
}

function budgetFrom(value: unknown): Budget {
  const answer = object(value);
  return {
    maxValue: amount(answer, "max_value_usd"),
    period: text(answer, "period"),
    valueReserved: amount(answer, "value_reserved_usd"),
    valueUsed: amount(answer, "value_used_usd"),
    remaining: amount(answer, "remaining_usd"),
    periodStartedAt: maybe(answer, "period_started_at", time),
    resetsAt: maybe(answer, "resets_at", time),
  };
}
