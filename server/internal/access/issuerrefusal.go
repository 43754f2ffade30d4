package access

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/jwksfetch"
	"remit/internal/metrics"
	"remit/internal/token"
	"remit/redisstore"
)

// The causes for which an assertion is not trusted that no other package has an error for.
var (
	errOtherAudience = errors.New("the assertion is for another audience")
	errNoRule        = errors.New("no rule gives the assertion to the agent")
)

// refusalCauses are why assertions are refused, as they are counted; the first that an error is counts. A client learns none of
// them.
var refusalCauses = []struct {
	err   error
	cause string
}{
	{token.ErrMalformed, "malformed"},
	{errOtherAudience, "audience"},
	{token.ErrExpired, "expired"},
	{token.ErrClaims, "claims"},
	{redisstore.ErrUnknownIssuer, "issuer"},
	{errNoRule, "rule"},
	{token.ErrUnknownKey, "key"},
	{token.ErrSignature, "signature"},
	{redisstore.ErrInvalidCredentials, "agent"},
}

// untrusted counts the cause for which an assertion is refused, and returns the refusal. It returns other errors as they are:
// a caller who gets them presented a good assertion, or the store failed.
func (g *Guard) untrusted(err error) error {
	for _, known := range refusalCauses {
		if errors.Is(err, known.err) {
			g.Metrics.assertionsRefused[known.cause].Inc()
			return ErrUntrusted
		}
	}
	if errors.Is(err, jwksfetch.ErrNoKeys) || errors.Is(err, context.DeadlineExceeded) {
		g.Metrics.assertionsRefused[causeNoKeys].Inc()
		return ErrNoIssuerKeys
	}
	return err
}

const causeNoKeys = "no_keys"

func newAssertionsRefused(registry prometheus.Registerer) map[string]prometheus.Counter {
	causes := []string{causeNoKeys}
	for _, known := range refusalCauses {
		causes = append(causes, known.cause)
	}
	refused := map[string]prometheus.Counter{}
	for _, cause := range causes {
		refused[cause] = metrics.Counter(registry, "remit_issuer_tokens_refused_total",
			"Tokens of foreign issuers that were exchanged for nothing, by cause.", prometheus.Labels{"cause": cause})
	}
	return refused
}
