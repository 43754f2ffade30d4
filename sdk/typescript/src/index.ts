/**
 * The TypeScript SDK of Remit. An agent gets, keeps and renews its tokens by itself; an organization manages agents and
 * sessions with its API key.
 *
 * A write is charged once: charges, batches, new sessions and all steps of a transaction carry an Idempotency-Key, the same
 * over their retries. An error tells what happened: OutcomeUnknown marks a write that may have; any other error means that
 * it did not. Credentials appear in no error and in nothing that is printed.
 */
export type { Action, Result, SessionAction } from "./actions.js";
export { Agent } from "./agent.js";
export { Agents, type AgentFilter, type AgentInfo, type AgentParams, type CreatedAgent, type RotatedSecret } from "./agents.js";
export type { CallOptions, WriteOptions } from "./call.js";
export { Credential } from "./credential.js";
export {
  IdempotencyKeyReused,
  InsufficientScope,
  LimitBelowUsage,
  LimitReached,
  NotFound,
  OutcomeUnknown,
  RateLimited,
  RemitError,
  SessionNotActive,
  TransactionDone,
  TransactionNotPending,
  TransactionNotReversible,
  Unauthorized,
  Unavailable,
  type FieldError,
} from "./errors.js";
export type { Event, EventOptions } from "./events.js";
export type { JSONObject } from "./json.js";
export { formatUSD, usd, USD, type MicroUSD } from "./money.js";
export { Organization, type Introspection, type OrganizationInfo, type RotatedKey } from "./organization.js";
export { Remit, type OrganizationParams, type RemitOptions, type TokenPair, type Verified } from "./remit.js";
export { Session } from "./session.js";
export { Sessions, type SessionFilter, type SessionInfo, type SessionLimits, type SessionParams, type SessionSummary } from "./sessions.js";
export { Transaction } from "./transaction.js";
export type { CommitParams, TransactionFilter, TransactionInfo, TransactionParams } from "./transactions.js";
export type { Usage } from "./usage.js";
