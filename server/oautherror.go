package server

import (
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// oauthError is an error of RFC 6749 §5.2.
type oauthError struct{ code, description string }

func (e *oauthError) Error() string { return e.code + ": " + e.description }

// because returns the error with its cause, whose own code is answered too.
func (e *oauthError) because(cause error) error { return fmt.Errorf("%w: %w", e, cause) }

type oauthErrorAnswer struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	oauthCause
}

// oauthCause is what a problem says beyond RFC 6749 §5.2, which allows further members: its code, and the members of that code.
type oauthCause struct {
	Code          string            `json:"code,omitzero"`
	RequiredScope string            `json:"required_scope,omitzero"`
	SessionStatus redisstore.Status `json:"session_status,omitzero"`
	Suspended     web.Timestamp     `json:"suspended_at,omitzero"`
	*web.QuotaUsage
}

// oauthCauseOf returns the cause to tell beside the code of the RFC. A refused credential has none, because it must not say why.
func oauthCauseOf(p web.Problem, code string) oauthCause {
	if code == p.Code || code == "invalid_client" || code == "invalid_grant" {
		return oauthCause{}
	}
	return oauthCause{p.Code, p.RequiredScope, p.SessionStatus, p.Suspended, p.QuotaUsage}
}

// answerOAuthError answers any error in the form of RFC 6749 §5.2.
func (g *guard) answerOAuthError(ctx *fasthttp.RequestCtx, err error) error {
	var audience *redisstore.AudienceError
	if errors.As(err, &audience) {
		err = foreignTarget(audience)
	}
	p, body := g.oauthAnswerOf(err)
	body.oauthCause = oauthCauseOf(p, body.Error)
	if body.Error == "invalid_client" {
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Basic realm="remit"`)
	}
	info := web.InfoOf(ctx)
	info.Code, info.Shed = p.Code, web.IsOverloaded(err)
	g.front.ReportFailure(ctx, err, p)
	return web.AnswerStatus(ctx, p.Status, body)
}

// oauthAnswerOf returns the problem of an error, with the status for OAuth, and the words of RFC 6749 §5.2. An error that the RFC does
// not know (of the store, of a limit) keeps its status and gets the nearest code.
func (g *guard) oauthAnswerOf(err error) (web.Problem, oauthErrorAnswer) {
	var refusal *oauthError
	var scope *redisstore.ScopeError
	var target *targetError
	p := g.front.Hooks.ProblemOf(err)
	body := oauthErrorAnswer{Description: p.Detail}
	switch {
	case errors.As(err, &refusal):
		p.Status, body.Error, body.Description = 400, refusal.code, refusal.description
		if p.Status == fasthttp.StatusInternalServerError { // there is no cause
			p.Code = refusal.code
		}
	case errors.Is(err, errUntrusted):
		p.Status, p.Code = 400, "invalid_grant"
		body.Error, body.Description = "invalid_grant", "the assertion is not trusted for this client"
	case errors.Is(err, redisstore.ErrInvalidCredentials), errors.Is(err, redisstore.ErrInvalidToken):
		body.Error, body.Description = "invalid_client", "the client's credentials are not those of a live agent"
	case errors.Is(err, redisstore.ErrOrganizationSuspended), p.Code == "agent_suspended":
		p.Status, body.Error = 400, "unauthorized_client"
	case errors.Is(err, token.ErrAccessSize): // a long chain of actors, or a very long signing key
		p.Status, p.Code = 400, "invalid_scope"
		body.Error, body.Description = "invalid_scope", "the access token would be too long; ask for fewer scopes"
	case errors.As(err, &scope):
		p.Status, body.Error, body.Description = 400, "invalid_scope", "the client does not hold the scope"
	case p.Code == "invalid_dpop_proof", p.Code == "use_dpop_nonce":
		p.Status, body.Error = 400, p.Code
	case errors.Is(err, redisstore.ErrProofRequired):
		p.Status, body.Error = 400, "invalid_dpop_proof"
	case errors.As(err, &target):
		p.Status, body.Error, body.Description = 400, "invalid_target", target.Error()
	case errors.Is(err, redisstore.ErrInvalidRefreshToken), errors.Is(err, redisstore.ErrTokenReused):
		p.Status, body.Error = 400, "invalid_grant"
	case p.Status == 503, p.Status == 429, p.Code == "quota_exceeded":
		body.Error = "temporarily_unavailable"
	case p.Status < 500:
		body.Error = "invalid_request"
	default:
		body.Error = "server_error"
	}
	return p, body
}
