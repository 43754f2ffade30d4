package server

import (
	"crypto/sha256"
	"sync"
	"time"

	"remit/redisstore"
	"remit/token"
)

// tokenCache verifies access tokens with a keyring and remembers the valid ones, because a signature does not change. A new
// keyring comes with a new cache, so that tokens of a retired key are forgotten. The script of each operation checks at
// every use that the agent and its family are still active.
type tokenCache struct {
	keys    *token.Keyring
	store   *redisstore.Store
	metrics *serviceMetrics
	shards  [cacheShards]cacheShard
}

const (
	cacheShards    = 64
	cachedPerShard = 1024 // tokens; a larger fleet of agents verifies more often
)

type cacheShard struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]*cachedToken // by the SHA-256 of the whole token
}

// cachedToken is a valid access token with everything derived from it. It is shared and never changed.
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

// verify is token.Keyring.VerifyAccess with a cache.
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
		identity: newIdentity(access),
	}
}

// put stores a token, and evicts another when the shard is full.
func (s *cacheShard) put(hash [sha256.Size]byte, good *cachedToken, now time.Time) {
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
	var last [sha256.Size]byte
	examined := 0
	for hash, known := range s.tokens { // in random order
		last, examined = hash, examined+1
		if examined == few || !now.Before(known.caller.expires) {
			break
		}
	}
	delete(s.tokens, last)
}
