package server

import (
	"errors"
	"strings"

	"remit/money"
	"remit/redisstore"
)

// What the server refuses by itself; everything else it refuses comes from the store.
var (
	errNoRoute         = errors.New("there is nothing at this path")
	errMethod          = errors.New("this path does not answer to this method")
	errMediaType       = errors.New("the body must be application/json, without a Content-Encoding")
	errMissingKey      = errors.New("this needs an API key in the header X-API-Key")
	errMissingToken    = errors.New("this needs an access token in the header Authorization: Bearer")
	errMissingEither   = errors.New("this needs an API key in X-API-Key or an access token in Authorization: Bearer")
	errInvalidKey      = errors.New("the API key is not valid")
	errInvalidToken    = errors.New("the access token is not valid, has expired or was revoked")
	errForeignToken    = errors.New("the refresh token belongs to another agent")
	errNoBootstrap     = errors.New("this needs the bootstrap token in the header Authorization: Bearer")
	errWrongBootstrap  = errors.New("the bootstrap token is not valid")
	errNoNewOrgs       = errors.New("organizations are not created here")
	errUnknownOrg      = redisstore.ErrUnknownOrganization
	errBodyTooLarge    = errors.New("the body is larger than 256 KiB")
	errHeadersTooLarge = errors.New("the headers are larger than 16 KiB")
	errSlowRequest     = errors.New("the request did not arrive in time")
	errExpectation     = errors.New("of the expectations only 100-continue is met")
	errUnreadable      = errors.New("the request is not well-formed HTTP")
	errStaleKeys       = errors.New("the token may be signed by a key that is too new to be known here; the keys cannot be read now")
	errNoBootstrapHash = errors.New("the bootstrap token is not known yet; nothing was changed")
	errNoKeyring       = errors.New("the signing keys are not loaded yet")
	errRateLimited     = errors.New("too many requests of this kind came from your address")
	errPlainHTTP       = errors.New("this port speaks TLS: ask it by https://")
	errPanic           = errors.New("internal error")
	errManyWaiting     = errors.New("too many requests wait for events here")
	errManyBodies      = errors.New("too many large bodies are arriving; nothing was changed")
	errOwnBodies       = errors.New("too many large bodies of your organization or address are arriving; nothing was changed")
	errManyUnwritten   = errors.New("too many large answers wait for their clients to read them")
	errOwnUnwritten    = errors.New("too many large answers wait for clients of your organization or address to read them")
	errUnansweredWrite = errors.New("too many large answers wait for clients to read them; the change may have happened")
	errOwnWaiting      = errors.New("too many requests of your organization wait for events here")
	errAddressWaiting  = errors.New("too many requests from your address wait for events here")
)

// rule maps one error to its answer. An empty detail stands for the error's own text.
type rule struct {
	err    error
	status int
	code   string
	detail string
}

// rules is the only table from error to status and code. The first that matches answers; errors with members of their
// own (limits, states, scopes, fields) are in problemOf, beside it.
var rules = []rule{
	{errNoRoute, 404, "not_found", ""},
	{errUnknownOrg, 404, "not_found", ""},
	{redisstore.ErrUnknownAgent, 404, "not_found", ""},
	{redisstore.ErrUnknownFamily, 404, "not_found", ""},
	{redisstore.ErrUnknownSession, 404, "not_found", ""},
	{redisstore.ErrUnknownTransaction, 404, "not_found", ""},
	{redisstore.ErrKeyReused, 422, "idempotency_key_reused", ""},
	{redisstore.ErrSealed, 422, "idempotency_key_reused", ""},
	{errMethod, 405, "method_not_allowed", ""},
	{errMediaType, 415, "unsupported_media_type", ""},
	{errBodyTooLarge, 413, "body_too_large", ""},
	{errHeadersTooLarge, 431, "headers_too_large", ""},
	{errSlowRequest, 408, "request_timeout", ""},
	{errExpectation, 417, "expectation_failed", ""},
	{errUnreadable, 400, "invalid_request", ""},
	{errPlainHTTP, 400, "invalid_request", ""},
	{errMissingKey, 401, "missing_credentials", ""},
	{errMissingToken, 401, "missing_credentials", ""},
	{errMissingEither, 401, "missing_credentials", ""},
	{errNoBootstrap, 401, "missing_credentials", ""},
	{errWrongBootstrap, 401, "invalid_token", ""},
	{errInvalidKey, 401, "invalid_api_key", ""},
	{redisstore.ErrInvalidAPIKey, 401, "invalid_api_key", errInvalidKey.Error()},
	{errInvalidToken, 401, "invalid_token", ""},
	{redisstore.ErrInvalidToken, 401, "invalid_token", errInvalidToken.Error()},
	{redisstore.ErrInvalidCredentials, 401, "invalid_credentials", "the agent and secret do not match a live agent"},
	{redisstore.ErrInvalidRefreshToken, 401, "invalid_refresh_token", "the refresh token is not valid"},
	{redisstore.ErrTokenReused, 401, "invalid_refresh_token", "the refresh token is not valid"},
	{errForeignToken, 403, "forbidden", ""},
	{redisstore.ErrSuccessorUsed, 403, "forbidden", "the API key was replaced and its successor is in use: only that one rotates"},
	{errNoNewOrgs, 403, "organizations_closed", ""},
	{redisstore.ErrOrganizationSuspended, 403, "organization_suspended", "the organization is suspended by the operator of this service"},
	{redisstore.ErrAgentRevoked, 409, "agent_revoked", ""},
	{errRateLimited, 429, "rate_limited", ""},
	{errOwnWaiting, 429, "rate_limited", ""},
	{errAddressWaiting, 429, "rate_limited", ""},
	{redisstore.ErrOutcomeUnknown, 503, "outcome_unknown", "the store did not answer in time; the change may have happened"},
	{redisstore.ErrOverloaded, 503, "unavailable", overloadedDetail},
	{redisstore.ErrUnavailable, 503, "unavailable", "the store cannot be used now; nothing was changed"},
	{errManyBodies, 503, "unavailable", ""},
	{errOwnBodies, 503, "unavailable", ""},
	{errManyUnwritten, 503, "unavailable", ""},
	{errOwnUnwritten, 503, "unavailable", ""},
	{errUnansweredWrite, 503, "outcome_unknown", ""},
	{errManyWaiting, 503, "unavailable", ""},
	{errStaleKeys, 503, "unavailable", ""},
	{errNoKeyring, 503, "unavailable", "the service is starting; nothing was changed"},
	{errNoBootstrapHash, 503, "unavailable", ""},
}

var internalError = rule{errPanic, 500, "internal_error", "an internal error; it is logged under the request id"}

var titles = map[string]string{
	"invalid_request":        "Invalid request",
	"not_found":              "Not found",
	"method_not_allowed":     "Method not allowed",
	"unsupported_media_type": "Unsupported media type",
	"body_too_large":         "Body too large",
	"headers_too_large":      "Headers too large",
	"request_timeout":        "Request timeout",
	"expectation_failed":     "Expectation failed",
	"missing_credentials":    "Missing credentials",
	"invalid_api_key":        "Invalid API key",
	"invalid_token":          "Invalid access token",
	"invalid_credentials":    "Invalid credentials",
	"invalid_refresh_token":  "Invalid refresh token",
	"insufficient_scope":     "Insufficient scope",
	"forbidden":              "Forbidden",
	"organizations_closed":   "Organizations closed",
	"organization_suspended": "Organization suspended",
	"session_limit_reached":  "Session limit reached",
	"session_not_active":     "Session not active",
	"limit_below_usage":      "Limit below usage",
	"quota_exceeded":         "Quota exceeded",
	"idempotency_key_reused": "Idempotency key reused",

	"transaction_not_pending":    "Transaction not pending",
	"transaction_not_reversible": "Transaction not reversible",

	"agent_revoked":   "Agent revoked",
	"rate_limited":    "Rate limited",
	"outcome_unknown": "Outcome unknown",
	"unavailable":     "Unavailable",
	"internal_error":  "Internal error",
}

// problem is an RFC 9457 body.
type problem struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      string       `json:"code"`
	RequestID string       `json:"request_id"`
	Errors    []fieldError `json:"errors,omitzero"`

	RequiredScope     string            `json:"required_scope,omitzero"`
	SessionStatus     redisstore.Status `json:"session_status,omitzero"`
	TransactionStatus redisstore.Status `json:"transaction_status,omitzero"`
	Limit             string            `json:"limit,omitzero"`
	*limitUsage
	*quotaUsage
}

// quotaUsage tells which quota of an organization is reached, and how far.
type quotaUsage struct {
	Quota string `json:"quota"`
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// limitUsage tells what of a session is used and what remains.
type limitUsage struct {
	ActionCount      int64          `json:"action_count"`
	MaxActions       int64          `json:"max_actions"`
	ValueUsed        money.MicroUSD `json:"value_used_usd"`
	MaxValue         money.MicroUSD `json:"max_value_usd"`
	ValueHeld        money.MicroUSD `json:"value_held_usd"`
	RemainingActions int64          `json:"remaining_actions"`
	RemainingValue   money.MicroUSD `json:"remaining_value_usd"`
	Expires          timestamp      `json:"expires_at"`
}

func usageOf(u redisstore.Usage) limitUsage {
	return limitUsage{
		ActionCount: u.ActionCount, MaxActions: u.MaxActions,
		ValueUsed: u.ValueUsed, MaxValue: u.MaxValue, ValueHeld: u.ValueHeld,
		RemainingActions: u.MaxActions - u.ActionCount,
		RemainingValue:   u.RemainingValue(),
		Expires:          timestamp(u.Expires),
	}
}

// fieldError says what is wrong with one field of a request.
type fieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// scopeError refuses a caller without the scope.
type scopeError struct{ scope string }

func (e *scopeError) Error() string { return "the scope " + e.scope + " is needed" }

// conflict refuses to end or change a session that is not active: a conflict of states, where a charge is a refusal.
type conflict struct{ cause *redisstore.NotActiveError }

func (e *conflict) Error() string { return e.cause.Error() }

// asConflict makes a conflict of a refusal for the session's status.
func asConflict(err error) error {
	var notActive *redisstore.NotActiveError
	if errors.As(err, &notActive) {
		return &conflict{notActive}
	}
	return err
}

// problemOf returns the answer to an error. What it does not know is internal, and its text stays inside.
func problemOf(err error) problem {
	var (
		input      *invalidRequest
		limit      *redisstore.LimitError
		notActive  *redisstore.NotActiveError
		inactive   *conflict
		below      *redisstore.BelowUsageError
		notPending *redisstore.NotPendingError
		held       *redisstore.ScopeError
		scope      *scopeError
		gateway    *gatewayError
		notReady   *redisstore.NotReadyError
		quota      *redisstore.QuotaError
		tooFast    *redisstore.RateError
	)
	switch {
	case errors.As(err, &gateway):
		p := problemOf(gateway.cause)
		if p.Status < 500 && p.Status != 401 {
			p.Status = 403
		}
		return p
	case errors.As(err, &notReady):
		return newProblem(503, "unavailable", notReady.Reason)
	case errors.As(err, &input):
		p := newProblem(400, "invalid_request", input.Error())
		p.Errors = input.fields
		return p
	case errors.As(err, &limit):
		p := newProblem(403, "session_limit_reached", "this does not fit into what the session may still do; nothing was charged")
		usage := usageOf(limit.Usage)
		p.Limit, p.limitUsage = limit.Limit, &usage
		return p
	case errors.As(err, &quota):
		p := newProblem(403, "quota_exceeded", quotaDetail(quota))
		p.quotaUsage = &quotaUsage{quota.Quota, quota.Used, quota.Max}
		return p
	case errors.As(err, &tooFast):
		return newProblem(429, "rate_limited", "your organization or agent creates too much at once; nothing was changed")
	case errors.As(err, &below):
		p := newProblem(409, "limit_below_usage", below.Error())
		usage := usageOf(below.Usage)
		p.Limit, p.limitUsage = below.Limit, &usage
		return p
	case errors.As(err, &inactive):
		p := newProblem(409, "session_not_active", inactive.Error())
		p.SessionStatus = inactive.cause.Status
		return p
	case errors.As(err, &notPending):
		p := newProblem(409, "transaction_not_pending", notPending.Error())
		p.TransactionStatus = notPending.Status
		return p
	case errors.Is(err, redisstore.ErrNotReversible):
		p := newProblem(409, "transaction_not_reversible", redisstore.ErrNotReversible.Error())
		p.TransactionStatus = redisstore.Committed
		return p
	case errors.As(err, &notActive):
		p := newProblem(403, "session_not_active", notActive.Error())
		p.SessionStatus = notActive.Status
		return p
	case errors.As(err, &held):
		p := newProblem(403, "insufficient_scope", "the session does not hold the scope")
		p.RequiredScope = held.Scope
		return p
	case errors.As(err, &scope):
		p := newProblem(403, "insufficient_scope", "the access token does not hold the scope")
		p.RequiredScope = scope.scope
		return p
	}
	r := ruleFor(err)
	if r.detail == "" {
		r.detail = r.err.Error()
	}
	return newProblem(r.status, r.code, r.detail)
}

func quotaDetail(q *redisstore.QuotaError) string {
	return "your organization has reached its quota of " + strings.ReplaceAll(q.Quota, "_", " ") + "; nothing was changed"
}

func ruleFor(err error) rule {
	for _, r := range rules {
		if errors.Is(err, r.err) {
			return r
		}
	}
	return internalError
}

func newProblem(status int, code, detail string) problem {
	return problem{Type: "urn:remit:problem:" + code, Title: titles[code], Status: status, Detail: detail, Code: code}
}
