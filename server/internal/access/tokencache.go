package access

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"remit/internal/token"
	"remit/redisstore"
)

// TokenCache verifies access tokens with a keyring and remembers the valid ones, because a signature does not change. A new
// keyring comes with a new cache, so that tokens of a retired key are forgotten. The script of each operation checks at
// every use that the agent and its family are still active.
type TokenCache struct {
	Keys    *token.Keyring
	store   *redisstore.Store
	metrics *Metrics
	base    string // of URLs below the issuer, "" when that is no URL; see baseOf
	Seed    maphash.Seed
	Shards  [CacheShards]CacheShard
}

const (
	CacheShards    = 64
	CachedPerShard = 1024 // tokens; a larger fleet of agents verifies more often
)

type CacheShard struct {
	mu     sync.RWMutex
	Tokens map[uint64]*CachedToken // by a hash of the whole token
}

// CachedToken is a valid access token, or a session key, with everything derived from it. It is shared and never changed, except the key in proofs.
type CachedToken struct {
	token.Access
	text     string
	Caller   Caller
	identity identity
	Proofs   *proofsOf // nil for a token that is bound to no key

	issuer    string // this service
	forIssuer bool   // its audience has this service
}

// proofsOf is what the proofs of one access token have in common.
type proofsOf struct {
	tokenHash string                         // their ath
	Key       atomic.Pointer[token.ProofKey] // of the last one, nil for none yet
}

// IsFor reports whether the token is for the audience; "" is this service.
func (c *CachedToken) IsFor(audience string) bool {
	if audience == "" || isIssuer(audience, c.issuer) {
		return c.forIssuer
	}
	return slices.Contains(c.Audience, audience)
}

// NewTokenCache returns an empty cache for the keys.
func NewTokenCache(keys *token.Keyring, store *redisstore.Store, metrics *Metrics) *TokenCache {
	v := &TokenCache{Keys: keys, store: store, metrics: metrics, base: baseOf(keys.Issuer()), Seed: maphash.MakeSeed()}
	for i := range v.Shards {
		v.Shards[i].Tokens = map[uint64]*CachedToken{}
	}
	return v
}

// Verify is token.Keyring.VerifyAccess with a cache, and takes session keys too. The hash only finds a token: the whole text decides. The seed is
// secret, so a stranger's text cannot be compared with a token, and its time says nothing.
func (v *TokenCache) Verify(text []byte, now time.Time) (*CachedToken, error) {
	hash := maphash.Bytes(v.Seed, text)
	shard := &v.Shards[hash%CacheShards]
	shard.mu.RLock()
	known, found := shard.Tokens[hash]
	shard.mu.RUnlock()
	if found && known.text == string(text) && now.Before(known.Caller.Expires) {
		v.metrics.TokenHits.Add(1)
		return known, nil
	}
	good, err := v.verify(string(text), now)
	if err != nil {
		return nil, err
	}
	v.metrics.tokenMisses.Add(1)
	shard.Put(hash, good, now)
	return good, nil
}

func (v *TokenCache) verify(text string, now time.Time) (*CachedToken, error) {
	if strings.HasPrefix(text, token.SessionKeyPrefix) {
		key, err := v.Keys.ParseSessionKey(text)
		if err != nil {
			return nil, err
		}
		return newSessionKey(text, v.store.Remembered(heldByKey(key)), v.Keys.Issuer()), nil
	}
	access, err := v.Keys.VerifyAccess(text, now)
	if err != nil {
		return nil, err
	}
	return v.newCached(text, access), nil
}

func (v *TokenCache) newCached(text string, access token.Access) *CachedToken {
	held := v.store.Remembered(heldBy(access))
	var proofs *proofsOf
	if access.Thumbprint != "" {
		proofs = &proofsOf{tokenHash: token.TokenHash(text)}
	}
	return &CachedToken{
		Access:   access,
		text:     text,
		Caller:   Caller{redisstore.Caller{Token: held}, access.Scopes, access.Expires(), delegatedOf(access)},
		identity: newIdentity(access),
		Proofs:   proofs,

		issuer:    v.Keys.Issuer(),
		forIssuer: slices.Contains(access.Audience, v.Keys.Issuer()),
	}
}

// Put stores a token, and evicts another when the shard is full.
func (s *CacheShard) Put(hash uint64, good *CachedToken, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.Tokens) >= CachedPerShard {
		s.evictOne(now)
	}
	s.Tokens[hash] = good
}

// evictOne evicts an expired token if one of a few is expired, or else any.
func (s *CacheShard) evictOne(now time.Time) {
	const few = 8
	var last uint64
	examined := 0
	for hash, known := range s.Tokens { // in random order
		last, examined = hash, examined+1
		if examined == few || !now.Before(known.Caller.Expires) {
			break
		}
	}
	delete(s.Tokens, last)
}
