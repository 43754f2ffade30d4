package kernel

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/redisclient"
)

// Flows: each organization has an equal share of Redis. The zero flow is for callers that have yet to authenticate:
// exchanges, refreshes, new organizations.
const (
	_ byte = iota // all other calls of an organization
	// urgent: an API key takes authority away. That must not wait behind the calls of those that lose it.
	Urgent
	// unproven: an API key that Redis has not verified, or an access token that Redis has refused. Anyone can make them
	// for free, so exchanges and refreshes must not wait behind them.
	unproven
)

var (
	OwnFlow      = redisclient.Flow{Kind: Urgent} // of the service itself
	UnprovenFlow = redisclient.Flow{Kind: unproven}
)

// provenKeys are API keys that Redis has verified. A key that merely names an organization proves nothing: with forged keys
// anyone could use up that organization's share. Each operation still checks the key in Redis. The cache is by organization,
// so one that rotates its keys often does not evict the keys of others.
type provenKeys struct {
	verified *lru.Cache[uuid.UUID, goodHashes]
	used     *lru.Cache[usedKey, *atomic.Int64] // when the use of a key was last noted in Redis, in ns since 1970; see noteUse
}

// goodHashes are credentials of one organization, latest first. Their arrays are never changed, because callers share them.
type goodHashes [][32]byte

type usedKey struct {
	organization uuid.UUID
	hash         [32]byte
}

const (
	MaxProven   = 1 << 12 // organizations
	MaxProvenOf = 64      // credentials of one organization; one that is forgotten is verified again
	maxUsed     = 1 << 15 // keys; an evicted key costs one more round trip
	noteEvery   = time.Minute
)

func NewProvenKeys() provenKeys {
	return provenKeys{newCache[uuid.UUID, goodHashes](MaxProven), newCache[usedKey, *atomic.Int64](maxUsed)}
}

// newCache returns a cache of so many entries.
func newCache[K comparable, V any](size int) *lru.Cache[K, V] {
	cache, err := lru.New[K, V](size)
	if err != nil {
		panic(err) // the size is not positive
	}
	return cache
}

// Note remembers the result of a check of the key.
func (p provenKeys) Note(key APIKey, err error) {
	known, _ := p.verified.Get(key.Organization)
	switch {
	case (err == nil || IsRoleError(err)) && !known.has(key):
		p.verified.Add(key.Organization, known.with(key.Hash))
	case err == ErrInvalidAPIKey && known.has(key):
		p.verified.Add(key.Organization, known.without(key))
	}
}

// Rotated remembers the credential that has replaced another, at once or after a grace time.
func (p provenKeys) Rotated(old APIKey, newHash [32]byte, atOnce bool) {
	known, _ := p.verified.Get(old.Organization)
	if atOnce {
		known = known.without(old)
	}
	p.verified.Add(old.Organization, known.with(newHash))
}

// MayNoteUse says whether the caller is to note the use of the key: the first use, or the first one in a minute.
func (p provenKeys) MayNoteUse(key APIKey, now time.Time) bool {
	use, known := p.used.Get(usedKey{key.Organization, key.Hash})
	if !known {
		return true
	}
	last := use.Load()
	return now.UnixNano()-last >= int64(noteEvery) && use.CompareAndSwap(last, now.UnixNano()) // one caller does
}

// Noted remembers that the use of the key is noted.
func (p provenKeys) Noted(key APIKey, now time.Time) {
	use := new(atomic.Int64)
	use.Store(now.UnixNano())
	p.used.Add(usedKey{key.Organization, key.Hash}, use)
}

func (g goodHashes) has(key APIKey) bool {
	return key.Hash != [32]byte{} && slices.Contains(g, key.Hash)
}

func (g goodHashes) with(hash [32]byte) goodHashes {
	return append(goodHashes{hash}, g[:min(len(g), MaxProvenOf-1)]...)
}

func (g goodHashes) without(key APIKey) goodHashes {
	return slices.DeleteFunc(slices.Clone(g), func(hash [32]byte) bool { return hash == key.Hash })
}

// Flow returns the flow of the key's calls.
func (p provenKeys) Flow(key APIKey) redisclient.Flow {
	if known, _ := p.verified.Get(key.Organization); !known.has(key) {
		return UnprovenFlow
	}
	return redisclient.Flow{Owner: key.Organization}
}

// Urgent is flow for an operation that takes authority away.
func (p provenKeys) Urgent(key APIKey) redisclient.Flow { return p.Of(Caller{Key: &key, Urgent: true}) }

// Of is flow for a caller with an API key.
func (p provenKeys) Of(c Caller) redisclient.Flow {
	f := p.Flow(*c.Key)
	if c.Urgent && f != UnprovenFlow {
		f.Kind = Urgent
	}
	return f
}
