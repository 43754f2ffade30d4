package server

import (
	"cmp"
	"errors"

	"remit/redisstore"
	"remit/redisstore/records"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
	"remit/server/pages"
)

// rule maps one error to its problem. An empty detail means the text of the error.
type rule struct {
	err    error
	status int
	code   string
	detail string
}

// rules is the only table from errors to statuses and codes. The first rule that matches wins. An error with members of its
// own (limits, states, scopes, fields) has a function instead: see storeProblem and the problem methods.
var rules = []rule{
	{web.ErrNoRoute, 404, "not_found", ""},
	{web.ErrSlashAtEnd, 404, "not_found", ""},
	{pages.ErrNotHere, 404, "not_found", ""},
	{access.ErrUnknownOrg, 404, "not_found", ""},
	{redisstore.ErrUnknownAgent, 404, "not_found", ""},
	{redisstore.ErrUnknownAPIKey, 404, "not_found", ""},
	{redisstore.ErrUnknownFamily, 404, "not_found", ""},
	{redisstore.ErrUnknownSession, 404, "not_found", ""},
	{redisstore.ErrUnknownTransaction, 404, "not_found", ""},
	{redisstore.ErrUnknownLease, 404, "not_found", ""},
	{redisstore.ErrUnknownRequest, 404, "not_found", ""},
	{redisstore.ErrUnknownSessionKey, 404, "not_found", ""},
	{redisstore.ErrUnknownWebhook, 404, "not_found", ""},
	{redisstore.ErrUnknownIssuer, 404, "not_found", ""},
	{redisstore.ErrUnknownDelivery, 404, "not_found", ""},
	{redisstore.ErrIdempotencyKeyReused, 422, "idempotency_key_reused", ""},
	{redisstore.ErrSealed, 422, "idempotency_key_reused", ""},
	{web.ErrMethod, 405, "method_not_allowed", ""},
	{web.ErrMediaType, 415, "unsupported_media_type", ""},
	{web.ErrBodyTooLarge, 413, "body_too_large", ""},
	{web.ErrHeadersTooLarge, 431, "headers_too_large", ""},
	{web.ErrSlowRequest, 408, "request_timeout", ""},
	{web.ErrExpectation, 417, "expectation_failed", ""},
	{web.ErrUnreadable, 400, "invalid_request", ""},
	{web.ErrPlainHTTP, 400, "invalid_request", ""},
	{redisstore.ErrNotHeldSo, 400, "invalid_request", ""},
	{redisstore.ErrNoBudget, 404, "not_found", ""},
	{access.ErrMissingKey, 401, "missing_credentials", ""},
	{access.ErrMissingToken, 401, "missing_credentials", ""},
	{access.ErrMissingEither, 401, "missing_credentials", ""},
	{access.ErrNoBootstrap, 401, "missing_credentials", ""},
	{access.ErrWrongBootstrap, 401, "invalid_token", ""},
	{access.ErrInvalidKey, 401, "invalid_api_key", ""},
	{redisstore.ErrInvalidAPIKey, 401, "invalid_api_key", access.ErrInvalidKey.Error()},
	{access.ErrTokenAsKey, 401, "invalid_api_key", ""},
	{access.ErrKeyAsToken, 401, "invalid_token", ""},
	{access.ErrInvalidToken, 401, "invalid_token", ""},
	{redisstore.ErrInvalidToken, 401, "invalid_token", access.ErrInvalidToken.Error()},
	{access.ErrBoundToken, 401, "invalid_token", ""},
	{access.ErrUnboundToken, 401, "invalid_token", ""},
	{redisstore.ErrProofUsed, 401, "invalid_dpop_proof", ""},
	{redisstore.ErrProofRequired, 401, "dpop_required", "the agent's tokens must be bound to a key: send a DPoP proof"},
	{redisstore.ErrManyMarks, 429, "rate_limited", "1,000 of the agent's delegated and workload tokens were revoked one by one within six hours: revoke all of them by a rotation of its secret with revoke_families"},
	{redisstore.ErrManyProofs, 429, "rate_limited", ""},
	{redisstore.ErrInvalidCredentials, 401, "invalid_credentials", "the agent and secret do not match a live agent"},
	{redisstore.ErrInvalidRefreshToken, 401, "invalid_refresh_token", "the refresh token is not valid"},
	{redisstore.ErrTokenReused, 401, "invalid_refresh_token", "the refresh token is not valid"},
	{access.ErrForeignToken, 403, "forbidden", ""},
	{access.ErrDelegatedToken, 403, "delegated_token", ""},
	{redisstore.ErrHeldByGateway, 403, "held_by_gateway", ""},
	{access.ErrSessionKeyOnly, 403, "session_key_only", ""},
	{redisstore.ErrSuccessorUsed, 403, "forbidden", "the API key was replaced and its successor is in use: only that one manages API keys"},
	{access.ErrNoNewOrgs, 403, "organizations_closed", ""},
	{redisstore.ErrOrganizationSuspended, 403, "organization_suspended", "the organization is suspended by the operator of this service"},
	{redisstore.ErrLastAdminKey, 409, "last_admin_key", "this is the only admin key that never expires: create another first"},
	{redisstore.ErrIssuerExists, 409, "issuer_exists", ""},
	{redisstore.ErrLeaseSettled, 409, "lease_settled", ""},
	{redisstore.ErrRequestDecided, 409, "request_decided", ""},
	{redisstore.ErrManySessionKeys, 409, "too_many_session_keys", "a session has at most 8 keys: delete one"},
	{redisstore.ErrUnboundSessionKey, 409, "session_key_unbound", "the agent's tokens must be bound to a key, and a session key is bound to none"},
	{redisstore.ErrAgentRevoked, 409, "agent_revoked", ""},
	{web.ErrRateLimited, 429, "rate_limited", ""},
	{conn.ErrOwnWaiting, 429, "rate_limited", ""},
	{conn.ErrAddressWaiting, 429, "rate_limited", ""},
	{records.ErrManyReports, 429, "rate_limited", ""},
	{redisstore.ErrManyAssertions, 429, "rate_limited", ""},
	{records.ErrReportTooLong, 503, "unavailable", "the report takes longer than a minute; ask again, or for one agent"},
	{redisstore.ErrOutcomeUnknown, 503, "outcome_unknown", "the store did not answer in time; the change may have happened"},
	{redisstore.ErrOverloaded, 503, "unavailable", web.OverloadedDetail},
	{redisstore.ErrUnavailable, 503, "unavailable", "the store cannot be used now; nothing was changed"},
	{redisstore.ErrChangedMeanwhile, 503, "unavailable", "another request changed it meanwhile; nothing was changed"},
	{access.ErrNoClientKeys, 503, "unavailable", ""},
	{access.ErrNoIssuerKeys, 503, "unavailable", ""},
	{conn.ErrManyBodies, 503, "unavailable", ""},
	{conn.ErrOwnBodies, 503, "unavailable", ""},
	{conn.ErrManyUnwritten, 503, "unavailable", ""},
	{conn.ErrOwnUnwritten, 503, "unavailable", ""},
	{web.ErrUnansweredWrite, 503, "outcome_unknown", ""},
	{conn.ErrManyWaiting, 503, "unavailable", ""},
	{access.ErrStaleKeys, 503, "unavailable", ""},
	{access.ErrNoKeyring, 503, "unavailable", "the service is starting; nothing was changed"},
	{access.ErrNoBootstrapHash, 503, "unavailable", ""},
}

var internalError = rule{web.ErrPanic, 500, web.InternalError, "an internal error; it is logged under the request id"}

// problemOf returns the problem that answers an error. The text of an unknown error is logged and not sent. The body of a
// rate_limited problem has the time to wait too, because an item of a batch has no headers.
func problemOf(err error) web.Problem {
	p := bareProblemOf(err)
	if p.Code == "rate_limited" {
		p.RetryAfter = web.RetryAfter(err, p)
	}
	return p
}

func bareProblemOf(err error) web.Problem {
	var typed interface{ Problem() web.Problem } // an error type of this package
	if errors.As(err, &typed) {
		return typed.Problem()
	}
	if p, known := storeProblem(err); known {
		return p
	}
	for _, r := range rules {
		if errors.Is(err, r.err) {
			return r.Problem()
		}
	}
	return internalError.Problem()
}

func (r rule) Problem() web.Problem {
	return web.NewProblem(r.status, r.code, cmp.Or(r.detail, r.err.Error()))
}
