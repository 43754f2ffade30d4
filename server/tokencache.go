package server

import (
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"remit/internal/token"
	"remit/redisstore"
)

// tokenCache verifies access tokens with a keyring and remembers the valid ones, because a signature does not change. A new
// keyring comes with a new cache, so that tokens of a retired key are forgotten. The script of each operation checks at
// every use that the agent and its family are still active.
type tokenCache struct {
	keys    *token.Keyring
	store   *redisstore.Store
	metrics *accessMetrics
	base    string // of URLs below the issuer, "" when that is no URL; see baseOf
	seed    maphash.Seed
	shards  [cacheShards]cacheShard
}

const (
	cacheShards    = 64
	cachedPerShard = 1024 // tokens; a larger fleet of agents verifies more often
)

type cacheShard struct {
	mu     sync.RWMutex
	tokens map[uint64]*cachedToken // by a hash of the whole token
}

// cachedToken is a valid access token with everything derived from it. It is shared and never changed, except the key in proofs.
type cachedToken struct {
	token.Access
	text     string
	caller   caller
	identity identity
	proofs   *proofsOf // nil for a token that is bound to no key

	issuer    string // this service
	forIssuer bool   // its audience has this service
}

// proofsOf is what the proofs of one access token have in common.
type proofsOf struct {
	tokenHash string                         // their ath
	key       atomic.Pointer[token.ProofKey] // of the last one, nil for none yet
}

// isFor reports whether the token is for the audience; "" is this service.
func (c *cachedToken) isFor(audience string) bool {
	if audience == "" || isIssuer(audience, c.issuer) {
		return c.forIssuer
	}
	return slices.Contains(c.Audience, audience)
}

func newTokenCache(keys *token.Keyring, store *redisstore.Store, metrics *accessMetrics) *tokenCache {
	v := &tokenCache{keys: keys, store: store, metrics: metrics, base: baseOf(keys.Issuer()), seed: maphash.MakeSeed()}
	for i := range v.shards {
		v.shards[i].tokens = map[uint64]*cachedToken{}
	}
	return v
}

// verify is token.Keyring.VerifyAccess with a cache. The hash only finds a token: the whole text decides. Nobody knows the
// seed, so a stranger's text cannot be compared with a token, and its time says nothing.
func (v *tokenCache) verify(text []byte, now time.Time) (*cachedToken, error) {
	hash := maphash.Bytes(v.seed, text)
	shard := &v.shards[hash%cacheShards]
	shard.mu.RLock()
	known, found := shard.tokens[hash]
	shard.mu.RUnlock()
	if found && known.text == string(text) && now.Before(known.caller.expires) {
		v.metrics.tokenHits.Add(1)
		return known, nil
	}
	own := string(text)
	access, err := v.keys.VerifyAccess(own, now)
	if err != nil {
		return nil, err
	}
	v.metrics.tokenMisses.Add(1)
	good := v.newCached(own, access)
	shard.put(hash, good, now)
	return good, nil
}

func (v *tokenCache) newCached(text string, access token.Access) *cachedToken {
	held := v.store.Remembered(heldBy(access))
	var proofs *proofsOf
	if access.Thumbprint != "" {
		proofs = &proofsOf{tokenHash: token.TokenHash(text)}
	}
	return &cachedToken{
		Access:   access,
		text:     text,
		caller:   caller{redisstore.Caller{Token: held}, access.Scopes, access.Expires(), delegatedOf(access)},
		identity: newIdentity(access),
		proofs:   proofs,

		issuer:    v.keys.Issuer(),
		forIssuer: slices.Contains(access.Audience, v.keys.Issuer()),
	}
}

// put stores a token, and evicts another when the shard is full.
func (s *cacheShard) put(hash uint64, good *cachedToken, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= cachedPerShard {
		s.evictOne(now)
	}
	s.tokens[hash] = good
}

// evictOne evicts an expired token if one of a few is expired, or else any.
func (s *cacheShard) evictOne(now time.Time) {
	const few = 8
	var last uint64
	examined := 0
	for hash, known := range s.tokens { // in random order
		last, examined = hash, examined+1
		if examined == few || !now.Before(known.caller.expires) {
			break
		}
	}
	delete(s.tokens, last)
}
