package server

import (
	"crypto/sha256"
	"sync"
	"time"

	"remit/token"
)

// verifier verifies access tokens and remembers those that were good: their signatures do not change. It is made with its
// keyring and goes with it, so that a retired key's tokens are forgotten. Whether an agent and its family still stand is
// asked on every use, in the operation's script.
type verifier struct {
	keys   *token.Keyring
	shards [verifiedShards]verifiedShard
}

const (
	verifiedShards   = 64
	verifiedPerShard = 1024 // tokens; a fleet larger than all shards hold is verified more often
)

type verifiedShard struct {
	mu     sync.RWMutex
	tokens map[[sha256.Size]byte]token.Access // by the hash of the whole token
}

func newVerifier(keys *token.Keyring) *verifier {
	v := &verifier{keys: keys}
	for i := range v.shards {
		v.shards[i].tokens = map[[sha256.Size]byte]token.Access{}
	}
	return v
}

// access is token.Keyring.VerifyAccess.
func (v *verifier) access(text []byte, now time.Time) (token.Access, error) {
	hash := sha256.Sum256(text)
	shard := &v.shards[hash[0]%verifiedShards]
	shard.mu.RLock()
	known, found := shard.tokens[hash]
	shard.mu.RUnlock()
	if found && now.Before(known.Expires()) {
		return known, nil
	}
	verified, err := v.keys.VerifyAccess(string(text), now)
	if err == nil {
		shard.keep(hash, verified, now)
	}
	return verified, err
}

// keep remembers a token, and forgets another when there is no room.
func (s *verifiedShard) keep(hash [sha256.Size]byte, verified token.Access, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.tokens) >= verifiedPerShard {
		s.forgetOne(now)
	}
	s.tokens[hash] = verified
}

// forgetOne forgets one that has expired, if one of a few is, or else any.
func (s *verifiedShard) forgetOne(now time.Time) {
	const few = 8
	var last [sha256.Size]byte
	looked := 0
	for hash, access := range s.tokens { // in an order of Go's choice
		last, looked = hash, looked+1
		if looked == few || !now.Before(access.Expires()) {
			break
		}
	}
	delete(s.tokens, last)
}
