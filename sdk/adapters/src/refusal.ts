// Words a refusal so that a model can act on it.

import {
  AgentLimitReached, AgentSuspended, formatUSD, InsufficientScope, LimitReached, OutcomeUnknown, RateLimited, RemitError, SessionNotActive,
  SessionSuspended, Unavailable, type MicroUSD,
} from "@remit/sdk";

/** A refusal, for a model to read and for a program. */
export interface Refusal {
  readonly text: string;
  readonly data: { readonly [name: string]: unknown };
}

const ask = "Ask for more with request_more of remit's own MCP server, or ask the owner of this session.";
const notRun = "The tool did not run, and nothing was charged.";

/** Returns a refusal by the budget. Undefined: the error is none. The price is that of the call, if it is known. */
export function refusalOf(error: unknown, tool: string, price?: MicroUSD): Refusal | undefined {
  if (error instanceof LimitReached) {
    return limitReached(error, tool, price);
  }
  if (error instanceof AgentLimitReached) {
    const until = error.resetsAt === undefined ? "" : ` It resets at ${error.resetsAt.toISOString()}.`;
    return refusal(error.code, `the agent's limit ${error.limit} is reached.${until} Go on then, or ask the operator of this agent.`, {
      limit: error.limit, ...required(price), ...(error.resetsAt === undefined ? {} : { resets_at: error.resetsAt.toISOString() }),
    });
  }
  if (error instanceof InsufficientScope) {
    const { requiredScope } = error;
    return refusal(error.code, `it needs the scope ${requiredScope}, which this agent or session lacks. Do without ${tool}, or ask the owner of this session.`, { required_scope: requiredScope });
  }
  if (error instanceof SessionNotActive) {
    return refusal(error.code, `the session is ${error.sessionStatus}. Stop, and ask for a new session.`, { session_status: error.sessionStatus });
  }
  if (error instanceof AgentSuspended || error instanceof SessionSuspended) {
    return refusal(error.code, "it is suspended. Stop until it is resumed.", {});
  }
  if (error instanceof Unavailable || error instanceof OutcomeUnknown || error instanceof RateLimited) {
    return refusal(error.code || "unavailable", "the budget cannot be checked now. Try again later.", error.retryAfter === undefined ? {} : { retry_after_seconds: error.retryAfter });
  }
  return error instanceof RemitError ? refusal(error.code || "refused", "the budget cannot be used. Tell the operator of this server.", {}) : undefined;
}

function limitReached({ code, limit, usage, remaining }: LimitReached, tool: string, price: MicroUSD | undefined): Refusal {
  const left = `${remaining.actions} of ${usage.maxActions} actions and ${formatUSD(remaining.value)} of ${formatUSD(usage.maxValue)} USD are left until ${usage.expiresAt.toISOString()}`;
  return refusal(code, `${limit} does not allow it: ${tool} costs 1 action${price === undefined ? "" : ` and ${formatUSD(price)} USD`}; ${left}. ${ask}`, {
    limit, remaining_actions: remaining.actions, remaining_value_usd: number(remaining.value), ...required(price), session_expires_at: usage.expiresAt.toISOString(),
  });
}

function refusal(code: string, why: string, data: Refusal["data"]): Refusal {
  return { text: `Refused: ${why} ${notRun}`, data: { code, ...data } };
}

function required(price: MicroUSD | undefined): Refusal["data"] {
  return price === undefined ? {} : { required_value_usd: number(price) };
}

// number is exact: an amount has at most 16 digits, and the one with 16 is whole.
function number(amount: MicroUSD): number {
  return Number(formatUSD(amount));
}
