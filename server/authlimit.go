package server

import (
	"errors"
	"net/netip"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/token"
)

// authLimit bounds failed authentications. Who fails must not shut out its neighbours, so a bucket belongs to an agent at an
// address; a larger one bounds what all wrong secrets of an address may cost Redis, whatever agents they name.
//
// What is known to be right is never refused: a refresh token whose HMAC is right, unless it has failed here lately, and a
// secret that has succeeded here lately. An agent that has succeeded here lately does not depend on the bucket of its address either.
type authLimit struct {
	attempts  *keyedLimit[attempt]
	addresses *keyedLimit[netip.Addr]
	succeeded *lru.Cache[uuid.UUID, secretHash]        // with what each agent succeeded last
	failed    *lru.Cache[token.RefreshToken, struct{}] // with a right HMAC: they are spent, or came with a wrong secret
}

type secretHash = [32]byte

// attempt is what a bucket belongs to. The agent is uuid.Nil when nothing says which it is, and bootstrapAgent for those of
// the bootstrap token.
type attempt struct {
	address netip.Addr
	agent   uuid.UUID
}

var bootstrapAgent = uuid.Max

const (
	// addressFactor is how many times as many secrets an address may try as one agent there.
	addressFactor = 10
	// maxSucceeded bounds the agents that are remembered, about 10 MB, and the refresh tokens that have failed.
	maxSucceeded = 1 << 16
)

func newAuthLimit(quota int, now func() time.Time) *authLimit {
	succeeded, err := lru.New[uuid.UUID, secretHash](maxSucceeded)
	if err != nil {
		panic(err) // maxSucceeded is not positive
	}
	failed, err := lru.New[token.RefreshToken, struct{}](maxSucceeded)
	if err != nil {
		panic(err)
	}
	return &authLimit{
		attempts:  newKeyedLimit[attempt]("failed-auth", quota, maxAddresses, now),
		addresses: newKeyedLimit[netip.Addr]("failed-auth-address", addressFactor*quota, maxAddresses, now),
		succeeded: succeeded, failed: failed,
	}
}

// credential is what a request presents, before it is checked.
type credential struct {
	agent   uuid.UUID
	secret  secretHash         // of a secret whose checksum is right, which costs Redis a read; none otherwise
	refresh token.RefreshToken // if its HMAC is right; none otherwise
}

func (c credential) isSecret() bool  { return c.secret != secretHash{} }
func (c credential) isRefresh() bool { return c.refresh != token.RefreshToken{} }

// left says what remains for a credential from an address, and tells it in the headers.
func (l *authLimit) left(ctx *fasthttp.RequestCtx, address netip.Addr, c credential) standing {
	own := l.attempts.look(attempt{address, c.agent})
	if c.isSecret() && !l.succeeded.Contains(c.agent) {
		if all := l.addresses.look(address); all.remaining < own.remaining {
			l.addresses.tell(ctx, all)
			return all
		}
	}
	l.attempts.tell(ctx, own)
	return own
}

func (l *authLimit) knows(c credential) bool {
	if c.isRefresh() && !l.failed.Contains(c.refresh) {
		return true
	}
	last, found := l.succeeded.Peek(c.agent)
	return found && c.isSecret() && last == c.secret
}

// note notes how a check has ended. Only a wrong credential costs; success, malformed input and trouble with the store do
// not.
func (l *authLimit) note(address netip.Addr, c credential, err error) {
	switch {
	case err == nil && c.isSecret():
		l.failed.Remove(c.refresh)
		if last, found := l.succeeded.Get(c.agent); !found || last != c.secret {
			l.succeeded.Add(c.agent, c.secret)
		}
	case isWrongCredential(err):
		l.attempts.owe(attempt{address, c.agent})
		if c.isRefresh() {
			l.failed.Add(c.refresh, struct{}{})
		}
		if c.isSecret() && errors.Is(err, redisstore.ErrInvalidCredentials) {
			l.addresses.owe(address)
			if l.knows(c) { // it was rotated, or the agent revoked
				l.succeeded.Remove(c.agent)
			}
		}
	}
}

func isWrongCredential(err error) bool {
	return errors.Is(err, redisstore.ErrInvalidCredentials) || errors.Is(err, redisstore.ErrInvalidRefreshToken) ||
		errors.Is(err, redisstore.ErrTokenReused) || errors.Is(err, errWrongBootstrap)
}
