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
	"remit/server/internal/access"
	"remit/test/suite"
)

func sign(t *testing.T, keys *token.Keyring, issued time.Time) (string, token.Access) {
	t.Helper()
	agent := uuid.New()
	access := token.Access{
		Agent: agent, Client: agent, Audience: []string{keys.Issuer()}, Organization: uuid.New(), Family: uuid.New(), Scopes: []string{"read"}, Issued: issued.Truncate(time.Second),
	}
	return suite.Must(keys.SignAccess(access))(t), access
}

func remembered(v *access.TokenCache) int {
	count := 0
	for i := range v.Shards {
		count += len(v.Shards[i].Tokens)
	}
	return count
}

func TestAVerifiedTokenIsRememberedUntilItExpires(t *testing.T) {
	t.Parallel()
	now, keys := time.Now(), someKeyring(t)
	v := access.NewTokenCache(keys, &redisstore.Store{}, &access.Metrics{})
	text, want := sign(t, keys, now)
	for range 3 {
		got, err := v.Verify([]byte(text), now)
		if err != nil || got.Agent != want.Agent || got.Organization != want.Organization || got.Family != want.Family ||
			!slices.Equal(got.Scopes, want.Scopes) || !got.Issued.Equal(want.Issued) {
			t.Fatalf("%+v, %v, want %+v", got, err, want)
		}
	}
	wantEqual(t, "tokens that are remembered", remembered(v), 1)
	if _, err := v.Verify([]byte(text), want.Expires()); err != token.ErrExpired {
		t.Errorf("at its expiry: %v", err)
	}
	if _, err := v.Verify([]byte(text), want.Expires().Add(-time.Second)); err != nil {
		t.Errorf("a second before: %v", err)
	}
}

func TestOnlyTheVeryTokenIsRemembered(t *testing.T) {
	t.Parallel()
	now, keys := time.Now(), someKeyring(t)
	v := access.NewTokenCache(keys, &redisstore.Store{}, &access.Metrics{})
	text, _ := sign(t, keys, now)
	suite.Must(v.Verify([]byte(text), now))(t)
	for i := range text {
		altered := []byte(text)
		altered[i] ^= 1
		if _, err := v.Verify(altered, now); err == nil {
			t.Errorf("good with byte %d altered", i)
		}
	}
	wantEqual(t, "tokens that are remembered", remembered(v), 1)
	if _, err := access.NewTokenCache(someKeyring(t), &redisstore.Store{}, &access.Metrics{}).Verify([]byte(text), now); err == nil {
		t.Error("good under other keys")
	}
}

// Two tokens may have one hash. The one that came last is remembered, and both are themselves.
func TestATokenWithTheHashOfAnotherIsItself(t *testing.T) {
	t.Parallel()
	now, keys := time.Now(), someKeyring(t)
	v := access.NewTokenCache(keys, &redisstore.Store{}, &access.Metrics{})
	other, _ := sign(t, keys, now)
	cached := suite.Must(v.Verify([]byte(other), now))(t)
	text, want := sign(t, keys, now)
	hash := maphash.String(v.Seed, text)
	v.Shards[hash%access.CacheShards].Put(hash, cached, now)
	for range 2 {
		if got, err := v.Verify([]byte(text), now); err != nil || got.Agent != want.Agent {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
}

func TestTheTokenCacheIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Now()
	var shard access.CacheShard
	shard.Tokens = map[uint64]*access.CachedToken{}
	for i := range 3 * access.CachedPerShard {
		shard.Put(uint64(i), &access.CachedToken{Caller: access.Caller{Expires: token.Access{Issued: now}.Expires()}}, now)
	}
	wantEqual(t, "tokens that are remembered", len(shard.Tokens), access.CachedPerShard)
	if _, found := shard.Tokens[3*access.CachedPerShard-1]; !found {
		t.Error("the newest is not among them")
	}
}

func TestTokensAreVerifiedByManyAtOnce(t *testing.T) {
	t.Parallel()
	now, keys := time.Now(), someKeyring(t)
	v := access.NewTokenCache(keys, &redisstore.Store{}, &access.Metrics{})
	texts := make([]string, 8)
	for i := range texts {
		texts[i], _ = sign(t, keys, now)
	}
	var group sync.WaitGroup
	for i := range 32 {
		group.Go(func() {
			for range 50 {
				if _, err := v.Verify([]byte(texts[i%len(texts)]), now); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	wantEqual(t, "tokens that are remembered", remembered(v), len(texts))
}

func TestTokensAreForgottenWithTheirKeysOnly(t *testing.T) {
	t.Parallel()
	s := New(Config{Store: &redisstore.Store{}})
	keys := someKeyring(t)
	s.SetKeyring(keys)
	before := s.guard.Tokens.Load()
	s.SetKeyring(keys) // as it is read again every few seconds, when Redis keeps it
	if s.guard.Tokens.Load() != before {
		t.Error("they are forgotten with the same keys")
	}
	s.SetKeyring(someKeyring(t))
	if s.guard.Tokens.Load() == before {
		t.Error("they are remembered with other keys")
	}
}
