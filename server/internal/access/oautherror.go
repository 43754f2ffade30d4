package access

import (
	"errors"
	"fmt"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// OAuthError is an error of RFC 6749 §5.2.
type OAuthError struct{ Code, Description string }

func (e *OAuthError) Error() string { return e.Code + ": " + e.Description }

// because returns the error with its cause, whose own code is answered too.
func (e *OAuthError) because(cause error) error { return fmt.Errorf("%w: %w", e, cause) }

// OAuthErrorAnswer is the body of a refusal (RFC 6749 §5.2).
type OAuthErrorAnswer struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
	OAuthCause
}

// OAuthCause is what a problem says beyond RFC 6749 §5.2, which allows further members: its code, and the members of that code.
type OAuthCause struct {
	Code          string            `json:"code,omitzero"`
	RequiredScope string            `json:"required_scope,omitzero"`
	SessionStatus redisstore.Status `json:"session_status,omitzero"`
	Suspended     web.Timestamp     `json:"suspended_at,omitzero"`
	*web.QuotaUsage
}

// OAuthCauseOf returns the cause to tell beside the code of the RFC. A refused credential has none, because it must not say why.
func OAuthCauseOf(p web.Problem, code string) OAuthCause {
	if code == p.Code || code == "invalid_client" || code == "invalid_grant" {
		return OAuthCause{}
	}
	return OAuthCause{p.Code, p.RequiredScope, p.SessionStatus, p.Suspended, p.QuotaUsage}
}

// answerOAuthError answers any error in the form of RFC 6749 §5.2.
func (g *Guard) answerOAuthError(ctx *fasthttp.RequestCtx, err error) error {
	var audience *redisstore.AudienceError
	if errors.As(err, &audience) {
		err = ForeignTarget(audience)
	}
	p, body := g.OAuthAnswerOf(err)
	body.OAuthCause = OAuthCauseOf(p, body.Error)
	if body.Error == "invalid_client" {
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Basic realm="remit"`)
	}
	info := web.InfoOf(ctx)
	info.Code, info.Shed = p.Code, web.IsOverloaded(err)
	g.Front.ReportFailure(ctx, err, p)
	return web.AnswerStatus(ctx, p.Status, body)
}

// OAuthAnswerOf returns the problem of an error, with the status for OAuth, and the words of RFC 6749 §5.2. An error that the RFC does
// not know (of the store, of a limit) keeps its status and gets the nearest code.
func (g *Guard) OAuthAnswerOf(err error) (web.Problem, OAuthErrorAnswer) {
	var refusal *OAuthError
	var scope *redisstore.ScopeError
	var target *TargetError
	p := g.Front.Hooks.ProblemOf(err)
	body := OAuthErrorAnswer{Description: p.Detail}
	switch {
	case errors.As(err, &refusal):
		p.Status, body.Error, body.Description = 400, refusal.Code, refusal.Description
		if p.Code == web.InternalError { // there is no cause
			p.Code = refusal.Code
		}
	case errors.Is(err, ErrUntrusted):
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
