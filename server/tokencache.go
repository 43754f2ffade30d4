package server

import (
	"crypto/sha256"
	"strings"
	"sync"
	"time"

	"remit/redisstore"
	"remit/token"
)

// verifier verifies access tokens and remembers those that were good: their signatures do not change. It is made with its
// keyring and goes with it, so that a retired key's tokens are forgotten. Whether an agent and its family still stand is
// asked on every use, in the operation's script.
type tokenCache struct {
	keys    *token.Keyring
	store   *redisstore.Store
	metrics *serviceMetrics
	shards  [cacheShards]cacheShard
}

const (
	cacheShards    = 64
	cachedPerShard = 1024 // tokens; a fleet larger than all shards hold is verified more often
)

type cacheShard struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]*cachedToken // by the hash of the whole token
}

// verified is an access token that was good, and what follows from it, worked out once. It is shared and never changed.
type cachedToken struct {
	token.Access
	caller   caller
	identity identity
}

func newTokenCache(keys *token.Keyring, store *redisstore.Store, metrics *serviceMetrics) *tokenCache {
	v := &tokenCache{keys: keys, store: store, metrics: metrics}
	for i := range v.shards {
		v.shards[i].tokens = map[[sha256.Size]byte]*cachedToken{}
	}
	return v
}

// access is token.Keyring.VerifyAccess.
func (v *tokenCache) verify(text []byte, now time.Time) (*cachedToken, error) {
	hash := sha256.Sum256(text)
	shard := &v.shards[hash[0]%cacheShards]
	shard.mu.RLock()
	known, found := shard.tokens[hash]
	shard.mu.RUnlock()
	if found && now.Before(known.caller.expires) {
		v.metrics.tokenHits.Add(1)
		return known, nil
	}
	access, err := v.keys.VerifyAccess(string(text), now)
	if err != nil {
		return nil, err
	}
	v.metrics.tokenMisses.Add(1)
	good := v.newCached(access)
	shard.put(hash, good, now)
	return good, nil
}

func (v *tokenCache) newCached(access token.Access) *cachedToken {
	held := v.store.Remembered(heldBy(access))
	return &cachedToken{
		Access:   access,
		caller:   caller{redisstore.Caller{Token: held}, access.Scopes, access.Expires()},
		identity: identity{access.Agent.String(), access.Organization.String(), strings.Join(access.Scopes, " ")},
	}
}

// keep remembers a token, and forgets another when there is no room.
func (s *cacheShard) put(hash [sha256.Size]byte, good *cachedToken, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= cachedPerShard {
		s.evictOne(now)
	}
	s.tokens[hash] = good
}

// evictOne forgets one that has expired, if one of a few is, or else any.
func (s *cacheShard) evictOne(now time.Time) {
	const few = 8
	var last [sha256.Size]byte
	examined := 0
	for hash, known := range s.tokens { // in an order of Go's choice
		last, examined = hash, examined+1
		if examined == few || !now.Before(known.caller.expires) {
			break
		}
	}
	delete(s.tokens, last)
}
