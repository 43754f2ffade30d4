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
type verifier struct {
	keys   *token.Keyring
	store  *redisstore.Store
	counts *counts
	shards [verifiedShards]verifiedShard
}

const (
	verifiedShards   = 64
	verifiedPerShard = 1024 // tokens; a fleet larger than all shards hold is verified more often
)

type verifiedShard struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]*verified // by the hash of the whole token
}

// verified is an access token that was good, and what follows from it, worked out once. It is shared and never changed.
type verified struct {
	token.Access
	caller   caller
	identity identity
}

func newVerifier(keys *token.Keyring, store *redisstore.Store, counts *counts) *verifier {
	v := &verifier{keys: keys, store: store, counts: counts}
	for i := range v.shards {
		v.shards[i].tokens = map[[sha256.Size]byte]*verified{}
	}
	return v
}

// access is token.Keyring.VerifyAccess.
func (v *verifier) access(text []byte, now time.Time) (*verified, error) {
	hash := sha256.Sum256(text)
	shard := &v.shards[hash[0]%verifiedShards]
	shard.mu.RLock()
	known, found := shard.tokens[hash]
	shard.mu.RUnlock()
	if found && now.Before(known.caller.expires) {
		v.counts.tokenHits.Add(1)
		return known, nil
	}
	access, err := v.keys.VerifyAccess(string(text), now)
	if err != nil {
		return nil, err
	}
	v.counts.tokenMisses.Add(1)
	good := v.follow(access)
	shard.keep(hash, good, now)
	return good, nil
}

func (v *verifier) follow(access token.Access) *verified {
	held := v.store.Remembered(heldBy(access))
	return &verified{
		Access:   access,
		caller:   caller{redisstore.Caller{Token: held}, access.Scopes, access.Expires()},
		identity: identity{access.Agent.String(), access.Organization.String(), strings.Join(access.Scopes, " ")},
	}
}

// keep remembers a token, and forgets another when there is no room.
func (s *verifiedShard) keep(hash [sha256.Size]byte, good *verified, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= verifiedPerShard {
		s.forgetOne(now)
	}
	s.tokens[hash] = good
}

// forgetOne forgets one that has expired, if one of a few is, or else any.
func (s *verifiedShard) forgetOne(now time.Time) {
	const few = 8
	var last [sha256.Size]byte
	looked := 0
	for hash, known := range s.tokens { // in an order of Go's choice
		last, looked = hash, looked+1
		if looked == few || !now.Before(known.caller.expires) {
			break
		}
	}
	delete(s.tokens, last)
}
