package server

import (
	"hash/maphash"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
	"remit/redisstore"
)

func sign(t *testing.T, keys *token.Keyring, issued time.Time) (string, token.Access) {
	t.Helper()
	agent := uuid.New()
	access := token.Access{
		Agent: agent, Client: agent, Audience: []string{keys.Issuer()}, Organization: uuid.New(), Family: uuid.New(), Scopes: []string{"read"}, Issued: issued.Truncate(time.Second),
	}
	text, err := keys.SignAccess(access)
	if err != nil {
		t.Fatal(err)
	}
	return text, access
}

func remembered(v *tokenCache) int {
	count := 0
	for i := range v.shards {
		count += len(v.shards[i].tokens)
	}
	return count
}

func TestAVerifiedTokenIsRememberedUntilItExpires(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := someKeyring(t)
	v := newTokenCache(keys, &redisstore.Store{}, &accessMetrics{})
	text, want := sign(t, keys, now)
	for range 3 {
		got, err := v.verify([]byte(text), now)
		if err != nil || got.Agent != want.Agent || got.Organization != want.Organization || got.Family != want.Family ||
			!slices.Equal(got.Scopes, want.Scopes) || !got.Issued.Equal(want.Issued) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	if remembered(v) != 1 {
		t.Errorf("%d tokens are remembered", remembered(v))
	}
	if _, err := v.verify([]byte(text), want.Expires()); err != token.ErrExpired {
		t.Errorf("at its expiry: %v", err)
	}
	if _, err := v.verify([]byte(text), want.Expires().Add(-time.Second)); err != nil {
		t.Errorf("a second before: %v", err)
	}
}

func TestOnlyTheVeryTokenIsRemembered(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := someKeyring(t)
	v := newTokenCache(keys, &redisstore.Store{}, &accessMetrics{})
	text, _ := sign(t, keys, now)
	if _, err := v.verify([]byte(text), now); err != nil {
		t.Fatal(err)
	}
	for i := range text {
		altered := []byte(text)
		altered[i] ^= 1
		if _, err := v.verify(altered, now); err == nil {
			t.Errorf("good with byte %d altered", i)
		}
	}
	if remembered(v) != 1 {
		t.Errorf("%d tokens are remembered: bad ones too", remembered(v))
	}
	if _, err := newTokenCache(someKeyring(t), &redisstore.Store{}, &accessMetrics{}).verify([]byte(text), now); err == nil {
		t.Error("good under other keys")
	}
}

// Two tokens may have one hash. The one that came last is remembered, and both are themselves.
func TestATokenWithTheHashOfAnotherIsItself(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := someKeyring(t)
	v := newTokenCache(keys, &redisstore.Store{}, &accessMetrics{})
	other, _ := sign(t, keys, now)
	cached, err := v.verify([]byte(other), now)
	if err != nil {
		t.Fatal(err)
	}
	text, want := sign(t, keys, now)
	hash := maphash.String(v.seed, text)
	v.shards[hash%cacheShards].put(hash, cached, now)
	for range 2 {
		if got, err := v.verify([]byte(text), now); err != nil || got.Agent != want.Agent {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

func TestTheTokenCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var shard cacheShard
	shard.tokens = map[uint64]*cachedToken{}
	fill := func(from, to int, issued time.Time) {
		for i := from; i < to; i++ {
			shard.put(uint64(i), &cachedToken{caller: caller{expires: token.Access{Issued: issued}.Expires()}}, now)
		}
	}
	fill(0, cachedPerShard, now)
	fill(cachedPerShard, 3*cachedPerShard, now)
	if len(shard.tokens) != cachedPerShard {
		t.Errorf("%d tokens are remembered, want %d", len(shard.tokens), cachedPerShard)
	}
	if _, found := shard.tokens[3*cachedPerShard-1]; !found {
		t.Error("the newest is not among them")
	}
}

func TestTokensAreVerifiedByManyAtOnce(t *testing.T) {
	t.Parallel()
	now := time.Now()
	keys := someKeyring(t)
	v := newTokenCache(keys, &redisstore.Store{}, &accessMetrics{})
	texts := make([]string, 8)
	for i := range texts {
		texts[i], _ = sign(t, keys, now)
	}
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			for range 50 {
				if _, err := v.verify([]byte(texts[i%len(texts)]), now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if remembered(v) != len(texts) {
		t.Errorf("%d tokens are remembered, want %d", remembered(v), len(texts))
	}
}

func TestTokensAreForgottenWithTheirKeysOnly(t *testing.T) {
	t.Parallel()
	s := New(Config{Store: &redisstore.Store{}})
	keys := someKeyring(t)
	s.SetKeyring(keys)
	before := s.guard.tokens.Load()
	s.SetKeyring(keys) // as it is read again every few seconds, when Redis keeps it
	if s.guard.tokens.Load() != before {
		t.Error("they are forgotten with the same keys")
	}
	s.SetKeyring(someKeyring(t))
	if s.guard.tokens.Load() == before {
		t.Error("they are remembered with other keys")
	}
}
