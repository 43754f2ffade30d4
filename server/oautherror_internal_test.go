package server

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func TestAnOAuthErrorHasTheServicesOwnCodeWhereThatSaysMore(t *testing.T) {
	t.Parallel()
	g := New(Config{}).guard
	refused := func(err error) error { return g.RefusedDelegation(new(access.Delegation), err) }
	since := time.Date(2026, 2, 28, 23, 59, 59, 7e6, time.UTC)
	const at = `,"suspended_at":"2026-02-28T23:59:59.007Z"`
	inactive := &redisstore.NotActiveError{Status: redisstore.Expired}
	for _, test := range []struct {
		err    error
		status int
		error  string
		cause  string // in JSON
	}{
		{&access.OAuthError{Code: "invalid_request", Description: "d"}, 400, "invalid_request", ""},
		{&redisstore.AgentSuspendedError{Since: since}, 400, "unauthorized_client", `,"code":"agent_suspended"` + at},
		{redisstore.ErrOrganizationSuspended, 400, "unauthorized_client", `,"code":"organization_suspended"`},
		{&redisstore.ScopeError{Scope: "pay"}, 400, "invalid_scope", `,"code":"insufficient_scope","required_scope":"pay"`},
		{redisstore.ErrProofRequired, 400, "invalid_dpop_proof", `,"code":"dpop_required"`},
		{token.ErrAccessSize, 400, "invalid_scope", ""},
		{&access.ProofError{Status: 400, Cause: token.ErrNonce}, 400, "use_dpop_nonce", ""},
		{&access.TargetError{Message: "d"}, 400, "invalid_target", ""},
		{&redisstore.QuotaError{Quota: "bytes", Used: 7, Max: 8}, 403, "temporarily_unavailable", `,"code":"quota_exceeded","quota":"bytes","used":7,"max":8`},
		{&redisstore.RateError{}, 429, "temporarily_unavailable", `,"code":"rate_limited"`},
		{redisstore.ErrManyAssertions, 429, "temporarily_unavailable", `,"code":"rate_limited"`},
		{redisstore.ErrOutcomeUnknown, 503, "temporarily_unavailable", `,"code":"outcome_unknown"`},
		{access.ErrNoIssuerKeys, 503, "temporarily_unavailable", `,"code":"unavailable"`},
		{errors.New("hunter2"), 500, "server_error", `,"code":"internal_error"`},

		// a refused credential says nothing more
		{redisstore.ErrInvalidCredentials, 401, "invalid_client", ""},
		{redisstore.ErrInvalidToken, 401, "invalid_client", ""},
		{access.ErrUntrusted, 400, "invalid_grant", ""},
		{redisstore.ErrInvalidRefreshToken, 400, "invalid_grant", ""},
		{redisstore.ErrTokenReused, 400, "invalid_grant", ""},

		// of token exchange
		{refused(redisstore.ErrInvalidToken), 400, "invalid_request", ""},
		{refused(redisstore.ErrUnknownSession), 400, "invalid_request", `,"code":"not_found"`},
		{refused(inactive), 400, "invalid_request", `,"code":"session_not_active","session_status":"expired"`},
		{refused(&redisstore.ScopeError{Scope: access.ScopeDelegate}), 400, "invalid_request", `,"code":"insufficient_scope","required_scope":"sessions:delegate"`},
		{refused(&redisstore.SessionSuspendedError{Since: since}), 400, "invalid_request", `,"code":"session_suspended"` + at},
		{refused(&redisstore.AgentSuspendedError{Since: since}), 400, "invalid_request", `,"code":"agent_suspended"` + at},
		{refused(redisstore.ErrOrganizationSuspended), 400, "invalid_request", `,"code":"organization_suspended"`},
		{refused(redisstore.ErrUnavailable), 503, "temporarily_unavailable", `,"code":"unavailable"`},
	} {
		p, body := g.OAuthAnswerOf(test.err)
		body.Description, body.OAuthCause = "d", access.OAuthCauseOf(p, body.Error)
		want := fmt.Sprintf(`{"error":%q,"error_description":"d"%s}`, test.error, test.cause)
		if got, err := web.Encode(body); err != nil || string(got) != want || p.Status != test.status {
			t.Errorf("%v: %d %s, %v, want %d %s", test.err, p.Status, got, err, test.status, want)
		}
	}
}
