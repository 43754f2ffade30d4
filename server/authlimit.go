package server

import (
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
)

// authLimiter bounds failed authentications. A client that fails must not shut out its neighbours, so each agent at each
// address has a bucket of its own. A larger bucket for each address bounds the reads that wrong secrets cost Redis,
// whatever agents they name.
//
// Credentials known to be right always pass: a refresh token with a valid HMAC, unless it failed here recently, a
// secret that succeeded here recently, and an assertion by a key with which another succeeded here recently. An agent that
// succeeded here recently does not depend on the bucket of its address either.
type authLimiter struct {
	attempts  *rateLimiter[attempt]
	addresses *rateLimiter[netip.Addr]
	succeeded *lru.Cache[uuid.UUID, secretHash]        // the last secret with which each agent succeeded
	signers   *lru.Cache[uuid.UUID, token.PublicKey]   // the last key by which each agent succeeded
	failed    *lru.Cache[token.RefreshToken, struct{}] // validly signed, but spent or sent with a wrong secret
}

type secretHash = [32]byte

// attempt identifies a bucket. The agent is uuid.Nil when the request names none, and bootstrapAgent for the bootstrap
// token.
type attempt struct {
	address netip.Addr
	agent   uuid.UUID
}

var bootstrapAgent = uuid.Max

const (
	// addressFactor is how many times as many secrets one address may try as one agent there.
	addressFactor = 10
	// maxSucceeded bounds the agents in succeeded, about 10 MB, and the refresh tokens in failed.
	maxSucceeded = 1 << 16
	// maxSigners bounds the agents in signers: 30 MB of the longest keys.
	maxSigners = 1 << 13
)

func newAuthLimiter(quota int, now func() time.Time) *authLimiter {
	succeeded, err := lru.New[uuid.UUID, secretHash](maxSucceeded)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	signers, err := lru.New[uuid.UUID, token.PublicKey](maxSigners)
	if err != nil {
		panic(err)
	}
	failed, err := lru.New[token.RefreshToken, struct{}](maxSucceeded)
	if err != nil {
		panic(err)
	}
	return &authLimiter{
		attempts:  newRateLimiter[attempt]("failed-auth", quota, maxAddresses, now),
		addresses: newRateLimiter[netip.Addr]("failed-auth-address", addressFactor*quota, maxAddresses, now),
		succeeded: succeeded, signers: signers, failed: failed,
	}
}

// credential is what a request presents, before it is checked.
type credential struct {
	agent     uuid.UUID
	secret    secretHash         // of a well-formed secret, which costs Redis a read to check; zero without one
	assertion *token.Assertion   // that a key of the agent may have signed, which costs Redis a read too; nil for none
	refresh   token.RefreshToken // with a valid HMAC; zero without one
}

func (c credential) isSecret() bool    { return c.secret != secretHash{} }
func (c credential) isAssertion() bool { return c.assertion != nil }
func (c credential) isRefresh() bool   { return c.refresh != token.RefreshToken{} }

// check returns what remains for a credential from an address, and writes it into the headers.
func (l *authLimiter) check(ctx *fasthttp.RequestCtx, address netip.Addr, c credential) bucketState {
	own := l.attempts.peek(attempt{address, c.agent})
	if (c.isSecret() || c.isAssertion()) && !l.succeeded.Contains(c.agent) && !l.signers.Contains(c.agent) {
		if all := l.addresses.peek(address); all.remaining < own.remaining {
			l.addresses.writeHeaders(ctx, all)
			return all
		}
	}
	l.attempts.writeHeaders(ctx, own)
	return own
}

func (l *authLimiter) isKnownGood(c credential) bool {
	if c.isRefresh() && !l.failed.Contains(c.refresh) {
		return true
	}
	if signer, found := l.signers.Peek(c.agent); found && c.isAssertion() && c.assertion.Verify(token.JWKS{signer}) == nil {
		return true
	}
	last, found := l.succeeded.Peek(c.agent)
	return found && c.isSecret() && last == c.secret
}

// record debits a wrong credential and remembers a right one. Malformed input and store errors cost nothing.
func (l *authLimiter) record(address netip.Addr, c credential, err error) {
	switch {
	case err == nil && c.isSecret():
		l.failed.Remove(c.refresh)
		if last, found := l.succeeded.Get(c.agent); !found || last != c.secret {
			l.succeeded.Add(c.agent, c.secret)
		}
	case err == nil && c.isAssertion():
		l.failed.Remove(c.refresh)
		if signer, verified := c.assertion.Signer(); verified {
			l.signers.Add(c.agent, signer)
		}
	case isWrongCredential(err):
		l.attempts.debit(attempt{address, c.agent})
		if c.isRefresh() {
			l.failed.Add(c.refresh, struct{}{})
		}
		if (c.isSecret() || c.isAssertion()) && errors.Is(err, redisstore.ErrInvalidCredentials) {
			l.addresses.debit(address)
			l.forget(c)
		}
	}
}

// forget forgets that a credential was right: the secret was rotated, the assertion used before, or the agent revoked.
func (l *authLimiter) forget(c credential) {
	switch {
	case !l.isKnownGood(c):
	case c.isAssertion():
		l.signers.Remove(c.agent)
	default:
		l.succeeded.Remove(c.agent)
	}
}

// isWrongCredential also counts a wrong signature of a proof, which costs as much to check as a right one.
func isWrongCredential(err error) bool {
	return errors.Is(err, redisstore.ErrInvalidCredentials) || errors.Is(err, redisstore.ErrInvalidRefreshToken) ||
		errors.Is(err, redisstore.ErrTokenReused) || errors.Is(err, errWrongBootstrap) || errors.Is(err, token.ErrSignature)
}
