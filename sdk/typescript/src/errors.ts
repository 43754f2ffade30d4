import { codes, type Code } from "./codes.js";
import { amount, array, maybe, object, parse, text, time, whole, type Answer } from "./json.js";
import type { MoreRequest } from "./more.js";
import { formatUSD, type MicroUSD } from "./money.js";
import { DelegatedTokenRefused, DPoPRequired, InvalidProof, InvalidTarget, SessionKeyOnly, TooManySessionKeys, useNonce } from "./credentialerrors.js";
import { RemitError, type FieldError, type Said } from "./remiterror.js";
import { usageFrom, type Usage } from "./usage.js";

export {
  DelegatedTokenRefused, DPoPRequired, InvalidProof, InvalidTarget, SessionKeyOnly, TooManySessionKeys, UnusableCredential, useNonce,
} from "./credentialerrors.js";
export { RemitError, type FieldError } from "./remiterror.js";

/** What a refused call wanted. */
export interface Needed {
  readonly actions: number;
  /** To spend, hold, lease or set aside; to raise a hold, the new hold in full. */
  readonly value: MicroUSD;
}

function neededIn(answer: Answer): Needed {
  return { actions: maybe(answer, "needed_actions", whole) ?? 0, value: maybe(answer, "needed_value_usd", amount) ?? 0n };
}

// needs ends a text with what the call wanted of the limit. It returns "" for a limit of neither actions nor value.
function needs(limit: string, { actions, value }: Needed): string {
  if (limit.startsWith("max_actions") && actions > 0) {
    return `; this call needs ${actions} action${actions === 1 ? "" : "s"}`;
  }
  return (limit.startsWith("max_value_usd") || limit === "max_committed_usd") && value > 0n ? `; this call needs ${formatUSD(value)} USD` : "";
}

/** The charge or hold exceeds a limit of the session. Nothing was charged. */
export class LimitReached extends RemitError {
  override name = "LimitReached";
  /**
   * max_actions, max_value_usd, max_committed_usd or max_value_usd_per_action; for a lease also max_lease_seconds, expires_at or
   * max_open_leases; for a request for more max_pending_requests; for a child also
   * max_lease_seconds, expires_at, max_depth or max_open_children
   */
  readonly limit: string;
  /** Whose limit it is, when a child is refused. */
  readonly parentSessionId: string | undefined;
  /** What the call wanted. */
  readonly needed: Needed;
  readonly usage: Usage;
  readonly #answer: Answer;
  constructor(place: string, said: Said, answer: Answer) {
    const limit = text(answer, "limit");
    const parent = maybe(answer, "parent_session_id", text);
    const usage = usageFrom(answer);
    const value = `${formatUSD(usage.remainingValue)} of ${formatUSD(usage.maxValue)} USD`;
    const whose = parent === undefined ? limit : `${limit} of the parent ${parent}`;
    const needed = neededIn(answer);
    const left = `${whose}: ${usage.remainingActions} of ${usage.maxActions} actions and ${value} left${needs(limit, needed)}`;
    super(place, { ...said, more: said.more === undefined ? left : `${left}; ${said.more}` });
    this.#answer = answer;
    this.limit = limit;
    this.parentSessionId = parent;
    this.needed = needed;
    this.usage = usage;
  }
  /** @internal */
  static answerOf(error: LimitReached): Answer {
    return error.#answer;
  }
  /** What is left of the session. */
  get remaining(): { readonly actions: number; readonly value: bigint } {
    return { actions: this.usage.remainingActions, value: this.usage.remainingValue };
  }
}

/**
 * A charge asked for more in vain: the request was denied, or could not be made. Nothing was charged. What is approved later still
 * raises the session's limits.
 */
export class RequestNotApproved extends LimitReached {
  override name = "RequestNotApproved";
  /** undefined: it could not be made. */
  readonly request: MoreRequest | undefined;
  constructor(refusal: LimitReached, request: MoreRequest | undefined, cause: RemitError | undefined) {
    const { status, code, detail, requestId } = refusal;
    const decided = request === undefined ? "no request for more was made" : `request for more ${request.status}`;
    const why = cause?.message ?? request?.comment ?? "";
    const more = `${decided}${why && `: ${why}`}`;
    super("a charge", { status, code, detail, requestId, cause, more }, LimitReached.answerOf(refusal));
    this.request = request;
  }
}

/** A charge, a hold, a lease or a session exceeds a limit of the agent. Nothing was done. */
export class AgentLimitReached extends RemitError {
  override name = "AgentLimitReached";
  /** max_value_usd_per_day or max_open_sessions */
  readonly limit: string;
  readonly resetsAt: Date | undefined; // of a limit per day
  /** What the call wanted. */
  readonly needed: Needed;
  constructor(place: string, said: Said, answer: Answer) {
    const limit = text(answer, "limit");
    const resetsAt = maybe(answer, "resets_at", time);
    const needed = neededIn(answer);
    const until = resetsAt === undefined ? "" : `, until ${resetsAt.toISOString().replace(".000", "")}`;
    super(place, { ...said, more: `${limit}${until}${needs(limit, needed)}` });
    this.limit = limit;
    this.resetsAt = resetsAt;
    this.needed = needed;
  }
}

/** A root session, or its top-up, exceeds what remains of the organization's budget. Nothing was done. */
export class BudgetExhausted extends RemitError {
  override name = "BudgetExhausted";
  readonly remaining: MicroUSD;
  readonly resetsAt: Date | undefined; // undefined: the budget has no period
  /** What the call wanted. */
  readonly needed: Needed;
  constructor(place: string, said: Said, answer: Answer) {
    const remaining = amount(answer, "remaining_usd");
    const needed = neededIn(answer);
    super(place, { ...said, more: `${formatUSD(remaining)} USD left${needs("max_value_usd", needed)}` });
    this.remaining = remaining;
    this.needed = needed;
    this.resetsAt = maybe(answer, "resets_at", time);
  }
}

/** The agent is suspended. */
export class AgentSuspended extends RemitError {
  override name = "AgentSuspended";
  readonly suspendedAt: Date | undefined;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.suspendedAt = maybe(answer, "suspended_at", time);
  }
}

/** The session is suspended. */
export class SessionSuspended extends RemitError {
  override name = "SessionSuspended";
  readonly suspendedAt: Date | undefined;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.suspendedAt = maybe(answer, "suspended_at", time);
  }
}

/** The request for more was decided otherwise before. */
export class RequestDecided extends RemitError {
  override name = "RequestDecided";
}

/** A new limit of a session is below what is used and held. */
export class LimitBelowUsage extends RemitError {
  override name = "LimitBelowUsage";
  /** max_actions or max_value_usd */
  readonly limit: string;
  readonly usage: Usage;
  constructor(place: string, said: Said, answer: Answer) {
    const limit = text(answer, "limit");
    const usage = usageFrom(answer);
    const value = `${formatUSD(usage.valueUsed)} USD used, ${formatUSD(usage.valueHeld)} USD held`;
    super(place, { ...said, more: `${limit}: ${usage.actionCount} actions and ${value}` });
    this.limit = limit;
    this.usage = usage;
  }
}

/** The request exceeds a quota of the organization. Nothing was changed. */
export class QuotaExceeded extends RemitError {
  override name = "QuotaExceeded";
  /** Which one, such as agents. */
  readonly quota: string;
  readonly used: number;
  readonly max: number;
  constructor(place: string, said: Said, answer: Answer) {
    const [quota, used, max] = [text(answer, "quota"), whole(answer, "used"), whole(answer, "max")] as const;
    super(place, { ...said, more: `${quota}: ${used} of ${max} used` });
    this.quota = quota;
    this.used = used;
    this.max = max;
  }
}

/** The operator of the service has suspended the organization. */
export class OrganizationSuspended extends RemitError {
  override name = "OrganizationSuspended";
}

/** The session is not active. */
export class SessionNotActive extends RemitError {
  override name = "SessionNotActive";
  /** completed, expired or revoked */
  readonly sessionStatus: string;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.sessionStatus = text(answer, "session_status");
  }
}

/** The access token or the session lacks a scope. */
export class InsufficientScope extends RemitError {
  override name = "InsufficientScope";
  readonly requiredScope: string;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.requiredScope = text(answer, "required_scope");
  }
}

/** The API key's role does not allow the call. Nothing was done. */
export class InsufficientRole extends RemitError {
  override name = "InsufficientRole";
  /** operator or admin */
  readonly requiredRole: string;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.requiredRole = text(answer, "required_role");
  }
}

/** The organization trusts this issuer already: change that trusted issuer. */
export class IssuerExists extends RemitError {
  override name = "IssuerExists";
}

/** The last admin key that never expires cannot be deleted. */
export class LastAdminKey extends RemitError {
  override name = "LastAdminKey";
}

/** The transaction is committed or rolled back, or has expired. */
export class TransactionNotPending extends RemitError {
  override name = "TransactionNotPending";
  /** committed, rolled_back or expired */
  readonly transactionStatus: string;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.transactionStatus = text(answer, "transaction_status");
  }
}

/** The metering gateway holds the transaction, and alone settles or changes it. Nothing was done. */
export class HeldByGateway extends RemitError {
  override name = "HeldByGateway";
}

/** The transaction is committed and was begun as irreversible. */
export class TransactionNotReversible extends RemitError {
  override name = "TransactionNotReversible";
  readonly transactionStatus: string;
  constructor(place: string, said: Said, answer: Answer) {
    super(place, said);
    this.transactionStatus = text(answer, "transaction_status");
  }
}

/** The API key, secret or token is not valid (401). */
export class Unauthorized extends RemitError {
  override name = "Unauthorized";
}

/** The object does not exist or belongs to another organization or agent (404, or 400 at the token endpoint). */
export class NotFound extends RemitError {
  override name = "NotFound";
}

/** Too many requests (429). retryAfter says how long to wait. */
export class RateLimited extends RemitError {
  override name = "RateLimited";
}

/** The idempotency key was used for another request (422). */
export class IdempotencyKeyReused extends RemitError {
  override name = "IdempotencyKeyReused";
}

/** The service or its Redis cannot be reached or used now. Nothing happened. */
export class Unavailable extends RemitError {
  override name = "Unavailable";
}

/** The write may have happened: its response was lost. The cause is the error of the last attempt. */
export class OutcomeUnknown extends RemitError {
  override name = "OutcomeUnknown";
}

/** This Transaction is already committed or rolled back. Nothing was sent. */
export class TransactionDone extends RemitError {
  override name = "TransactionDone";
}

/** This Lease is closed. Nothing was charged or sent. */
export class LeaseClosed extends RemitError {
  override name = "LeaseClosed";
}

type ErrorType = new (place: string, said: Said, answer: Answer) => RemitError;

// Codes that the description of the API does not list as those of problems.
type OAuthCode = "invalid_dpop_proof" | typeof useNonce | "dpop_required" | "invalid_grant";

const byCode: ReadonlyMap<string, ErrorType> = new Map<Code | OAuthCode, ErrorType>([
  [codes.sessionLimitReached, LimitReached],
  [codes.agentLimitReached, AgentLimitReached],
  [codes.budgetExhausted, BudgetExhausted],
  [codes.agentSuspended, AgentSuspended],
  [codes.sessionSuspended, SessionSuspended],
  [codes.requestDecided, RequestDecided],
  [codes.limitBelowUsage, LimitBelowUsage],
  [codes.quotaExceeded, QuotaExceeded],
  [codes.organizationSuspended, OrganizationSuspended],
  [codes.notFound, NotFound],
  [codes.sessionNotActive, SessionNotActive],
  [codes.insufficientScope, InsufficientScope],
  [codes.insufficientRole, InsufficientRole],
  [codes.issuerExists, IssuerExists],
  [codes.lastAdminKey, LastAdminKey],
  [codes.transactionNotPending, TransactionNotPending],
  [codes.transactionNotReversible, TransactionNotReversible],
  [codes.idempotencyKeyReused, IdempotencyKeyReused],
  [codes.unavailable, Unavailable],
  [codes.invalidTarget, InvalidTarget],
  ["invalid_dpop_proof", InvalidProof],
  [useNonce, InvalidProof],
  ["dpop_required", DPoPRequired],
  [codes.delegatedToken, DelegatedTokenRefused],
  [codes.sessionKeyOnly, SessionKeyOnly],
  [codes.tooManySessionKeys, TooManySessionKeys],
  [codes.heldByGateway, HeldByGateway],
  ["invalid_grant", Unauthorized],
]);

const byStatus: Readonly<Record<number, new (place: string, said: Said) => RemitError>> = {
  401: Unauthorized,
  404: NotFound,
  429: RateLimited,
};

/** Reads an error response, a problem or an OAuth error (RFC 6749 §5.2, with a code where that says more), into the type for its code. */
export function errorFrom(place: string, status: number, body: string | Answer, headers = new Headers()): RemitError {
  const retryAfter = retryAfterFrom(headers);
  try {
    const answer = object(typeof body === "string" ? parse(body) : body);
    const seconds = retryAfter ?? maybe(answer, "retry_after_seconds", whole);
    const said = { ...saidIn(answer), status, retryAfter: seconds, clockSkew: clockSkewFrom(headers) };
    return new (typeOf(said.code, status))(place, said, answer);
  } catch {
    const foreign = { status, detail: "the answer is not Remit's", retryAfter };
    return new (byStatus[status] ?? RemitError)(place, foreign);
  }
}

function typeOf(code: string, status: number): new (place: string, said: Said, answer: Answer) => RemitError {
  const type = byCode.get(code);
  // `unavailable` promises that nothing happened. Only with status 503 does the promise come from the service.
  return type !== undefined && (type !== Unavailable || status === 503) ? type : (byStatus[status] ?? RemitError);
}

function saidIn(answer: Answer) {
  return {
    code: maybe(answer, "code", text) ?? text(answer, "error"),
    detail: maybe(answer, "detail", text) ?? maybe(answer, "error_description", text) ?? "",
    requestId: maybe(answer, "request_id", text) ?? "",
    fields: maybe(answer, "errors", fieldErrors) ?? [],
  };
}

function fieldErrors(answer: Answer, name: string): FieldError[] {
  return array(answer[name], (value) => {
    const about = object(value);
    return { field: text(about, "field"), message: text(about, "message") };
  });
}

// retryAfterFrom returns Retry-After in seconds, from either form of RFC 9110 §10.2.3.
function retryAfterFrom(headers: Headers): number | undefined {
  const said = headers.get("Retry-After");
  if (said === null) {
    return undefined;
  }
  const seconds = /^\d+$/.test(said) ? Number(said) : (Date.parse(said) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(seconds, 0);
}

// clockSkewFrom returns how many seconds this machine's clock is ahead of the service's.
function clockSkewFrom(headers: Headers): number | undefined {
  const skew = (Date.now() - Date.parse(headers.get("Date") ?? "")) / 1000;
  return Number.isNaN(skew) ? undefined : skew;
}
