package server

import (
	"errors"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// oauthError is an error of RFC 6749 §5.2.
type oauthError struct{ code, description string }

func (e *oauthError) Error() string { return e.code + ": " + e.description }

type oauthErrorAnswer struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// answerOAuthError answers any error in the form of RFC 6749 §5.2. An error that the RFC does not know (of the store, of a
// limit) keeps its status and gets the nearest code.
func (s *Server) answerOAuthError(ctx *fasthttp.RequestCtx, err error) error {
	var refusal *oauthError
	var scope *redisstore.ScopeError
	var audience *redisstore.AudienceError
	var target *targetError
	if errors.As(err, &audience) {
		err = foreignTarget(audience)
	}
	p := problemOf(err)
	body := oauthErrorAnswer{Description: p.Detail}
	switch {
	case errors.As(err, &refusal):
		p.Status, body = 400, oauthErrorAnswer{refusal.code, refusal.description}
	case errors.Is(err, errUntrusted):
		p.Status, p.Code, body = 400, "invalid_grant", oauthErrorAnswer{"invalid_grant", "the assertion is not trusted for this client"}
	case errors.Is(err, redisstore.ErrInvalidCredentials), errors.Is(err, redisstore.ErrInvalidToken):
		body = oauthErrorAnswer{"invalid_client", "the client's credentials are not those of a live agent"}
		ctx.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, `Basic realm="remit"`)
	case errors.Is(err, redisstore.ErrOrganizationSuspended), p.Code == "agent_suspended":
		p.Status, body.Error = 400, "unauthorized_client"
	case errors.Is(err, token.ErrAccessSize): // a long chain of actors, or a very long signing key
		p.Status, body = 400, oauthErrorAnswer{"invalid_scope", "the access token would be too long; ask for fewer scopes"}
	case errors.As(err, &scope):
		p.Status, body = 400, oauthErrorAnswer{"invalid_scope", "the client does not hold the scope"}
	case p.Code == "invalid_dpop_proof", p.Code == "use_dpop_nonce":
		p.Status, body.Error = 400, p.Code
	case errors.Is(err, redisstore.ErrProofRequired):
		p.Status, body.Error = 400, "invalid_dpop_proof"
	case errors.As(err, &target):
		p.Status, body = 400, oauthErrorAnswer{"invalid_target", target.Error()}
	case errors.Is(err, redisstore.ErrInvalidRefreshToken), errors.Is(err, redisstore.ErrTokenReused):
		p.Status, body.Error = 400, "invalid_grant"
	case p.Status == 503, p.Status == 429, p.Code == "quota_exceeded":
		body.Error = "temporarily_unavailable"
	case p.Status < 500:
		body.Error = "invalid_request"
	default:
		body.Error = "server_error"
	}
	info := infoOf(ctx)
	info.code, info.shed = p.Code, isOverloaded(err)
	if refusal != nil {
		info.code = refusal.code
	}
	s.reportFailure(ctx, err, p)
	return answerStatus(ctx, p.Status, body)
}
