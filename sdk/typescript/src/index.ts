/**
 * The TypeScript SDK of Remit. An agent gets, caches and renews its tokens; an organization manages agents and sessions with
 * its API key.
 *
 * Each write happens at most once: charges, batches, relative top-ups, creations, rotations and all steps of a transaction
 * carry an Idempotency-Key, and their retries reuse it. OutcomeUnknown means that a write may have happened; any other error
 * means that it did not. No error and no printed value contains a credential. An unknown option throws a TypeError.
 */
export { Agent } from "./agent.js";
export type { AgentOptions } from "./agentoptions.js";
export type {
  AgentFilter, AgentInfo, AgentParams, CreatedAgent, Family, RotatedSecret, RotateSecretParams,
} from "./agents.js";
export type { AgentChanges, AgentLimits, AgentLimitsInfo, AgentUsage } from "./agentlimits.js";
export type { OnLimit } from "./ask.js";
export type { Budget, BudgetParams, Period } from "./budget.js";
export type { CallOptions, WriteOptions } from "./call.js";
export type { AskingCharge, Charge, Result, SessionCharge } from "./charges.js";
export { Client, type OrganizationParams, type TokenPair } from "./client.js";
export type { AllEventsOptions, OrganizationEvent } from "./allevents.js";
export type { ApiKeyInfo, ApiKeyParams, CreatedApiKey, Role, RotatedKey, RotateKeyParams } from "./apikeys.js";
export type { ClientOptions } from "./connect.js";
export { Credential } from "./credential.js";
export type { DelegatedToken, DelegateParams } from "./delegation.js";
export type { Environment } from "./environment.js";
export {
  AgentLimitReached,
  AgentSuspended,
  BudgetExhausted,
  DelegatedTokenRefused,
  DPoPRequired,
  HeldByGateway,
  IdempotencyKeyReused,
  InsufficientRole,
  InsufficientScope,
  InvalidProof,
  InvalidTarget,
  IssuerExists,
  LastAdminKey,
  LeaseClosed,
  LimitBelowUsage,
  LimitReached,
  NotFound,
  OrganizationSuspended,
  OutcomeUnknown,
  QuotaExceeded,
  RateLimited,
  RemitError,
  RequestDecided,
  RequestNotApproved,
  SessionKeyOnly,
  SessionNotActive,
  SessionSuspended,
  TooManySessionKeys,
  TransactionDone,
  TransactionNotPending,
  TransactionNotReversible,
  Unauthorized,
  Unavailable,
  UnusableCredential,
  type FieldError,
  type Needed,
} from "./errors.js";
export type { Event, EventOptions } from "./events.js";
export type { EventType } from "./eventtypes.js";
export type { TokenOptions } from "./fixedtoken.js";
export type { JSONObject } from "./json.js";
export type { JWK, JWKS } from "./jwk.js";
export { generateKey, Key, parseKey, publicJwks, type PlatformKey, type PlatformKeyPair, type PrivateKey } from "./keys.js";
export { Lease } from "./lease.js";
export type { LeaseOptions } from "./leases.js";
export type { ApprovalParams, MoreFilter, MoreParams, MoreRequest } from "./more.js";
export { formatUSD, usd, USD, type MicroUSD } from "./money.js";
export { Organization, type Introspection, type OrganizationInfo, type Quantities } from "./organization.js";
export { ProtectedResource, type ProtectedResourceParams } from "./protectedresource.js";
export { Session } from "./session.js";
export type { CreatedSessionKey, SessionKeyInfo, SessionKeyParams } from "./sessionkeys.js";
export type {
  ChildParams, SessionChanges, SessionFilter, SessionInfo, SessionLimits, SessionParams, SessionSummary, SessionTree,
} from "./sessions.js";
export { Transaction, type DryRun, type Work } from "./transaction.js";
export type { CommitParams, TransactionChanges, TransactionFilter, TransactionInfo, TransactionParams } from "./transactions.js";
export type {
  TrustedIssuerChanges, TrustedIssuerInfo, TrustedIssuerParams, TrustRule,
} from "./trustedissuers.js";
export type { Usage } from "./usage.js";
export type { UsageGroup, UsageLine, UsageParams } from "./usagereport.js";
export type { Verified, VerifyOptions } from "./verify.js";
export type {
  CreatedWebhook, Delivery, DeliveryFilter, RotatedWebhookSecret, RotateWebhookParams, WebhookChanges, WebhookInfo, WebhookParams,
} from "./webhooks.js";
