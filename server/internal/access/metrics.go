package access

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"remit/internal/metrics"
)

// Metrics count what callers present and what they get for it.
type Metrics struct {
	tokensBySecret, tokensByRefresh       prometheus.Counter
	tokensByAssertion, tokensByDelegation prometheus.Counter
	tokensReused, FamiliesRevoked         prometheus.Counter
	tokensReplayed, tokensByIssuer        prometheus.Counter
	assertionsRefused                     map[string]prometheus.Counter // by cause
	limitedTokens                         prometheus.Counter
	TokenHits, tokenMisses                atomic.Uint64 // of the token cache, which is replaced with its keyring
}

// NewMetrics registers the metrics of credentials and tokens.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	c := &Metrics{assertionsRefused: newAssertionsRefused(registry)}
	metrics.Counters(registry, "remit_tokens_issued_total", "Access tokens issued, by grant.", "grant", map[string]*prometheus.Counter{
		"client_secret": &c.tokensBySecret, "private_key_jwt": &c.tokensByAssertion, "refresh_token": &c.tokensByRefresh,
		"trusted_issuer": &c.tokensByIssuer, "token_exchange": &c.tokensByDelegation,
	})
	c.tokensReused = metrics.Counter(registry, "remit_refresh_tokens_reused_total",
		"Refresh tokens used again after their grace time, by a thief or by a client that keeps old ones.", nil)
	c.tokensReplayed = metrics.Counter(registry, "remit_refresh_tokens_replayed_total",
		"Refresh tokens used again within their grace time: a lost response, a shared token, or a theft.", nil)
	c.FamiliesRevoked = metrics.Counter(registry, "remit_token_families_revoked_total",
		"Requests that revoked a token family, repeated ones included, those with revoke_families excluded.", nil)
	c.limitedTokens = metrics.Counter(registry, "remit_rate_limited_total", "Requests refused with 429 by a limit per client address: organizations, failed-auth.", prometheus.Labels{"limit": "failed-auth"})
	for cache, count := range map[string]*atomic.Uint64{"hit": &c.TokenHits, "miss": &c.tokenMisses} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name:        "remit_access_tokens_verified_total",
			Help:        "Valid access tokens that were in the token cache (hit), or whose signature was checked (miss).",
			ConstLabels: prometheus.Labels{"cache": cache},
		}, func() float64 { return float64(count.Load()) }))
	}
	return c
}
