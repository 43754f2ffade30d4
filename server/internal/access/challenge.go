package access

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	bearerRealm  = `Bearer realm="remit"`
	keyChallenge = `APIKey realm="remit", header="X-API-Key"`
)

// ChallengeFor returns WWW-Authenticate, "" for none: RFC 6750 §3 and RFC 9728 §5.1 for access tokens, with where the metadata of
// the resource is, "" for unknown; for API keys Remit's own scheme, which RFC 9110 §11.1 permits.
func ChallengeFor(err error, p web.Problem, metadata string) string {
	if metadata != "" {
		metadata = `, resource_metadata="` + metadata + `"`
	}
	switch {
	case errors.Is(err, ErrMissingEither):
		return bearerRealm + metadata + ", " + keyChallenge
	case errors.Is(err, ErrMissingKey), p.Code == "invalid_api_key":
		return keyChallenge
	case errors.Is(err, ErrNoBootstrap):
		return bearerRealm
	case errors.Is(err, ErrWrongBootstrap):
		return bearerRealm + invalidTokenChallenge(p)
	case p.Code == "invalid_token":
		return bearerRealm + invalidTokenChallenge(p) + metadata
	case p.Code == "invalid_dpop_proof", p.Code == "use_dpop_nonce":
		return bearerRealm + `, error="` + p.Code + `", error_description="` + p.Detail + `"` + metadata
	case p.Code == "insufficient_scope":
		return bearerRealm + `, error="insufficient_scope", scope="` + quoted(p.RequiredScope) + `"` + metadata
	case p.Status == 401:
		return bearerRealm + metadata
	}
	return ""
}

func invalidTokenChallenge(p web.Problem) string {
	return `, error="invalid_token", error_description="` + p.Detail + `"`
}

// Challenge returns the WWW-Authenticate of a refusal, "" for none.
func (g *Guard) Challenge(ctx *fasthttp.RequestCtx, err error, p web.Problem) string {
	return proofChallenge(ChallengeFor(err, p, g.metadataFor(ctx)), err, web.InfoOf(ctx).Proven)
}

// quoted drops the two characters that would end a quoted string. Scopes with them are refused earlier (RFC 6749 §3.3).
func quoted(scope string) string { return strings.NewReplacer(`\`, "", `"`, "").Replace(scope) }

// proofChallenge turns the challenge of an access token into one of the scheme DPoP for a request under that scheme, and offers that
// scheme too to who did not use it and must (RFC 9449 §7.1 and §7.2).
func proofChallenge(challenge string, err error, proven bool) string {
	algorithms := `algs="` + strings.Join(token.ProofAlgorithms(), " ") + `"`
	rest, ofToken := strings.CutPrefix(challenge, "Bearer ")
	switch {
	case ofToken && (proven || errors.Is(err, redisstore.ErrProofRequired)):
		return "DPoP " + rest + ", " + algorithms
	case errors.Is(err, ErrBoundToken):
		return challenge + ", DPoP " + algorithms
	}
	return challenge
}
