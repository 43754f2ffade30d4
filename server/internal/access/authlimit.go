package access

import (
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/server/internal/web"
)

// AuthLimiter bounds failed authentications. A client that fails must not shut out its neighbours, so each agent at each
// address has a bucket of its own. A larger bucket for each address bounds the reads that wrong secrets cost Redis,
// whatever agents they name.
//
// Credentials known to be right always pass: a refresh token with a valid HMAC, unless it failed here recently, a
// secret that succeeded here recently, and an assertion by a key with which another succeeded here recently. An agent that
// succeeded here recently does not depend on the bucket of its address either.
type AuthLimiter struct {
	Attempts  *RateLimiter[attempt]
	Addresses *RateLimiter[netip.Addr]
	Succeeded *lru.Cache[uuid.UUID, SecretHash]        // the last secret with which each agent succeeded
	signers   *lru.Cache[uuid.UUID, token.PublicKey]   // the last key by which each agent succeeded
	failed    *lru.Cache[token.RefreshToken, struct{}] // validly signed, but spent or sent with a wrong secret
}

// SecretHash is the SHA-256 of a secret.
type SecretHash = [32]byte

// attempt identifies a bucket. The agent is uuid.Nil when the request names none, and BootstrapAgent for the bootstrap
// token.
type attempt struct {
	address netip.Addr
	agent   uuid.UUID
}

// BootstrapAgent stands for the bootstrap token, which no agent has.
var BootstrapAgent = uuid.Max

const (
	// addressFactor is how many times as many secrets one address may try as one agent there.
	addressFactor = 10
	// maxSucceeded bounds the agents in succeeded, about 10 MB, and the refresh tokens in failed.
	maxSucceeded = 1 << 16
	// maxSigners bounds the agents in signers: 30 MB of the longest keys.
	maxSigners = 1 << 13
)

// NewAuthLimiter returns a limiter of so many failures a minute of one agent at one address.
func NewAuthLimiter(quota int, now func() time.Time) *AuthLimiter {
	succeeded, _ := lru.New[uuid.UUID, SecretHash](maxSucceeded) // it fails only for a size that is not positive, like the next two
	signers, _ := lru.New[uuid.UUID, token.PublicKey](maxSigners)
	failed, _ := lru.New[token.RefreshToken, struct{}](maxSucceeded)
	return &AuthLimiter{
		Attempts:  NewRateLimiter[attempt]("failed-auth", quota, MaxAddresses, now),
		Addresses: NewRateLimiter[netip.Addr]("failed-auth-address", addressFactor*quota, MaxAddresses, now),
		Succeeded: succeeded, signers: signers, failed: failed,
	}
}

// Credential is what a request presents, before it is checked.
type Credential struct {
	Agent     uuid.UUID
	Secret    SecretHash         // of a well-formed secret, which costs Redis a read to check; zero without one
	assertion *token.Assertion   // that a key of the agent may have signed, which costs Redis a read too; nil for none
	refresh   token.RefreshToken // with a valid HMAC; zero without one
}

func (c Credential) isSecret() bool    { return c.Secret != SecretHash{} }
func (c Credential) isAssertion() bool { return c.assertion != nil }
func (c Credential) isRefresh() bool   { return c.refresh != token.RefreshToken{} }

// check returns what remains for a credential from an address, and writes it into the headers.
func (l *AuthLimiter) check(ctx *fasthttp.RequestCtx, address netip.Addr, c Credential) BucketState {
	own := l.Attempts.Peek(attempt{address, c.Agent})
	if (c.isSecret() || c.isAssertion()) && !l.Succeeded.Contains(c.Agent) && !l.signers.Contains(c.Agent) {
		if all := l.Addresses.Peek(address); all.Remaining < own.Remaining {
			l.Addresses.WriteHeaders(ctx, all)
			return all
		}
	}
	l.Attempts.WriteHeaders(ctx, own)
	return own
}

// IsKnownGood says whether a credential was right here recently, or has a valid HMAC and did not fail here recently.
func (l *AuthLimiter) IsKnownGood(c Credential) bool {
	if c.isRefresh() && !l.failed.Contains(c.refresh) {
		return true
	}
	if signer, found := l.signers.Peek(c.Agent); found && c.isAssertion() && c.assertion.Verify(token.JWKS{signer}) == nil {
		return true
	}
	last, found := l.Succeeded.Peek(c.Agent)
	return found && c.isSecret() && last == c.Secret
}

// Record debits a wrong credential and remembers a right one. Malformed input and store errors cost nothing.
func (l *AuthLimiter) Record(address netip.Addr, c Credential, err error) {
	switch {
	case err == nil && c.isSecret():
		l.failed.Remove(c.refresh)
		if last, found := l.Succeeded.Get(c.Agent); !found || last != c.Secret {
			l.Succeeded.Add(c.Agent, c.Secret)
		}
	case err == nil && c.isAssertion():
		l.failed.Remove(c.refresh)
		if signer, verified := c.assertion.Signer(); verified {
			l.signers.Add(c.Agent, signer)
		}
	case isWrongCredential(err):
		l.Attempts.Debit(attempt{address, c.Agent})
		if c.isRefresh() {
			l.failed.Add(c.refresh, struct{}{})
		}
		if (c.isSecret() || c.isAssertion()) && errors.Is(err, redisstore.ErrInvalidCredentials) {
			l.Addresses.Debit(address)
			l.forget(c)
		}
	}
}

// forget forgets that a credential was right: the secret was rotated, the assertion used before, or the agent revoked.
func (l *AuthLimiter) forget(c Credential) {
	switch {
	case !l.IsKnownGood(c):
	case c.isAssertion():
		l.signers.Remove(c.Agent)
	default:
		l.Succeeded.Remove(c.Agent)
	}
}

// Authenticate checks a credential, unless too many like it have failed.
func (g *Guard) Authenticate(ctx *fasthttp.RequestCtx, c Credential, check func() error) error {
	limit := g.FailedAuth
	if limit == nil {
		return check()
	}
	address := g.Front.ClientAddress(ctx)
	if left := limit.check(ctx, address, c); left.Remaining == 0 && !limit.IsKnownGood(c) {
		g.Metrics.limitedTokens.Inc()
		return &web.RateLimited{RetryAfter: left.Reset}
	}
	err := check()
	limit.Record(address, c, err)
	if isWrongCredential(err) {
		limit.check(ctx, address, c)
	}
	return err
}

// RejectCredential counts a credential that was found wrong or malformed without asking the store, and returns err, or a
// RateLimited error.
func (g *Guard) RejectCredential(ctx *fasthttp.RequestCtx, agent uuid.UUID, err error) error {
	return g.Authenticate(ctx, Credential{Agent: agent}, func() error { return err })
}

// isWrongCredential also counts a wrong signature of a proof, which costs as much to check as a right one.
func isWrongCredential(err error) bool {
	return errors.Is(err, redisstore.ErrInvalidCredentials) || errors.Is(err, redisstore.ErrInvalidRefreshToken) ||
		errors.Is(err, redisstore.ErrTokenReused) || errors.Is(err, ErrWrongBootstrap) || errors.Is(err, token.ErrSignature)
}
