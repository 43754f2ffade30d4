package redisstore

import (
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Flows: each organization has an equal share of Redis. The zero flow is for callers that have yet to authenticate:
// exchanges, refreshes, new organizations.
const (
	_ byte = iota // all other calls of an organization
	// urgent: an API key takes authority away. That must not wait behind the calls of those that lose it.
	urgent
	// unproven: an API key that Redis has not verified, or an access token that Redis has refused. Anyone can make them
	// for free, so exchanges and refreshes must not wait behind them.
	unproven
)

var (
	ownFlow      = flow{Kind: urgent} // of the service itself
	unprovenFlow = flow{Kind: unproven}
)

// provenKeys are API keys that Redis has verified. A key that merely names an organization proves nothing: with forged keys
// anyone could use up that organization's share. Each operation still checks the key in Redis. The cache is by organization,
// so one that rotates its keys often does not evict the keys of others.
type provenKeys struct {
	verified *lru.Cache[uuid.UUID, goodHashes]
	used     *lru.Cache[APIKey, struct{}] // keys whose use is noted in Redis; see noteUse
}

// goodHashes are an organization's last two keys, because the previous one is valid in its grace time. Zeros mean none.
type goodHashes struct{ last, before [32]byte }

const (
	maxProven = 1 << 12 // organizations
	maxUsed   = 1 << 15 // keys; an evicted key costs one more round trip
)

func newProvenKeys() provenKeys {
	verified, err := lru.New[uuid.UUID, goodHashes](maxProven)
	if err != nil {
		panic(err) // the size is not positive
	}
	used, err := lru.New[APIKey, struct{}](maxUsed)
	if err != nil {
		panic(err)
	}
	return provenKeys{verified, used}
}

// note remembers the result of a check of the key.
func (p provenKeys) note(key APIKey, err error) {
	known, _ := p.verified.Get(key.Organization)
	switch {
	case err == nil && !known.has(key):
		p.verified.Add(key.Organization, goodHashes{key.Hash, known.last})
	case err == ErrInvalidAPIKey && known.has(key):
		p.verified.Add(key.Organization, known.without(key))
	}
}

// rotated remembers the key that has replaced another, at once or after a grace time.
func (p provenKeys) rotated(old APIKey, newHash [32]byte, atOnce bool) {
	known, _ := p.verified.Get(old.Organization)
	if atOnce {
		known = known.without(old)
	}
	p.verified.Add(old.Organization, goodHashes{newHash, known.last})
}

func (g goodHashes) has(key APIKey) bool {
	return key.Hash != [32]byte{} && (g.last == key.Hash || g.before == key.Hash)
}

func (g goodHashes) without(key APIKey) goodHashes {
	switch key.Hash {
	case g.last:
		return goodHashes{last: g.before}
	case g.before:
		return goodHashes{last: g.last}
	}
	return g
}

// flow returns the flow of the key's calls.
func (p provenKeys) flow(key APIKey) flow {
	if known, _ := p.verified.Get(key.Organization); !known.has(key) {
		return unprovenFlow
	}
	return flow{Owner: key.Organization}
}

// urgent is flow for an operation that takes authority away.
func (p provenKeys) urgent(key APIKey) flow { return p.of(Caller{Key: &key, urgent: true}) }

// of is flow for a caller with an API key.
func (p provenKeys) of(c Caller) flow {
	f := p.flow(*c.Key)
	if c.urgent && f != unprovenFlow {
		f.Kind = urgent
	}
	return f
}
