package server

import (
	"errors"
	"math"
	"strings"

	"remit/redisstore"
)

// retryLater is after how many seconds to come again when nobody can say.
const retryLater = 1

// retryAfter returns the seconds after which the same request may succeed; 0 when waiting alone does not help.
func retryAfter(err error, p problem) int {
	var limited *rateLimited
	var tooFast *redisstore.RateError
	switch {
	case errors.As(err, &limited):
		return limited.retryAfter
	case errors.As(err, &tooFast):
		return max(int(math.Ceil(tooFast.RetryAfter.Seconds())), 1)
	case p.Status == 503 || p.Status == 429:
		return retryLater
	}
	return 0
}

const (
	bearerChallenge = `Bearer realm="remit"`
	keyChallenge    = `APIKey realm="remit", header="X-API-Key"`
)

// challengeFor returns WWW-Authenticate: RFC 6750 §3 for access tokens, and a scheme of our own, which RFC 9110 §11.1
// leaves open, for API keys.
func challengeFor(err error, p problem) string {
	switch {
	case errors.Is(err, errMissingEither):
		return bearerChallenge + ", " + keyChallenge
	case errors.Is(err, errMissingKey), p.Code == "invalid_api_key":
		return keyChallenge
	case p.Code == "invalid_token":
		return bearerChallenge + `, error="invalid_token", error_description="` + p.Detail + `"`
	case p.Code == "insufficient_scope":
		return bearerChallenge + `, error="insufficient_scope", scope="` + quoted(p.RequiredScope) + `"`
	case p.Status == 401:
		return bearerChallenge
	}
	return ""
}

// quoted keeps a scope inside its quotes; a scope that needed it was refused before (RFC 6749 §3.3).
func quoted(scope string) string { return strings.NewReplacer(`\`, "", `"`, "").Replace(scope) }
