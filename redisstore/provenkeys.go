package redisstore

import (
	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// Flows: each organization has an equal share of Redis. The zero flow is that of callers that are about to prove who they are:
// exchanges, refreshes, new organizations.
const (
	_ byte = iota // all other calls of an organization
	// urgent: an API key takes authority away. That must not wait for those whose authority it is.
	urgent
	// unproven: an API key that was not seen to be good, or an access token that was refused. They cost nothing to
	// make, so exchanges and refreshes must not wait for them.
	unproven
)

var (
	ownFlow      = flow{Kind: urgent} // of the service itself
	unprovenFlow = flow{Kind: unproven}
)

// provenKeys are API keys that were seen to be good. That a key names an organization proves nothing: by a forged one
// anybody could fill that organization's share. Whether a key is good now is asked in Redis all the same, each time.
// Keys are kept by organization: whoever rotates theirs over and over makes nobody else's forgotten.
type provenKeys struct {
	verified *lru.Cache[uuid.UUID, goodHashes]
	used     *lru.Cache[APIKey, struct{}] // keys whose use is noted in Redis; see noteUse
}

// goodHashes are the last two of an organization's keys, for a rotation may leave the one before good for a while.
// Zeros stand for none.
type goodHashes struct{ last, before [32]byte }

const (
	maxProven = 1 << 12 // organizations
	maxUsed   = 1 << 15 // keys: one more or less is a round trip more
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

// note remembers how a check of the key has come out.
func (p provenKeys) note(key APIKey, err error) {
	known, _ := p.verified.Get(key.Organization)
	switch {
	case err == nil && !known.has(key):
		p.verified.Add(key.Organization, goodHashes{key.Hash, known.last})
	case err == ErrInvalidAPIKey && known.has(key):
		p.verified.Add(key.Organization, known.without(key))
	}
}

// rotated remembers the key that has taken the place of another, at once or after a while.
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

// flow returns whose share the key's calls have.
func (p provenKeys) flow(key APIKey) flow {
	if known, _ := p.verified.Get(key.Organization); !known.has(key) {
		return unprovenFlow
	}
	return flow{Owner: key.Organization}
}

// urgent is flow for what takes authority away.
func (p provenKeys) urgent(key APIKey) flow { return p.of(Caller{Key: &key, urgent: true}) }

// of is flow for a caller with an API key.
func (p provenKeys) of(c Caller) flow {
	f := p.flow(*c.Key)
	if c.urgent && f != unprovenFlow {
		f.Kind = urgent
	}
	return f
}
