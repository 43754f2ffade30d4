package redisstore

import (
	"context"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// flow is for whom a call is made, as far as that says who waits when there are too many: calls of one flow wait for one
// another, and each flow has an equal share of Redis. The zero flow is that of everybody who has not proven yet who they
// are: exchanges, refreshes, API keys that were not seen to be good, new organizations.
type flow struct {
	organization uuid.UUID
	// urgent: an API key takes authority away. That must not wait for those whose authority it is.
	urgent bool
}

// ownFlow is that of the service itself.
var ownFlow = flow{urgent: true}

// provenKeys are API keys that were seen to be good. That a key names an organization proves nothing: by a forged one
// anybody could fill that organization's share. Whether a key is good now is asked in Redis all the same, each time.
type provenKeys struct {
	seen *lru.Cache[APIKey, struct{}]
}

const maxProvenKeys = 1 << 12

func newProvenKeys() provenKeys {
	seen, err := lru.New[APIKey, struct{}](maxProvenKeys)
	if err != nil {
		panic(err) // the size is not positive
	}
	return provenKeys{seen}
}

// runByKey is run for a script that checks an API key.
func (s *Store) runByKey(ctx context.Context, key APIKey, f flow, sc *script, keys []string, args ...any) (*reply, error) {
	r, err := s.run(ctx, f, sc, keys, args...)
	s.proven.note(key, err)
	return r, err
}

// note remembers how a check of the key has come out.
func (p provenKeys) note(key APIKey, err error) {
	switch err {
	case nil:
		p.seen.Add(key, struct{}{})
	case ErrInvalidAPIKey:
		p.seen.Remove(key)
	}
}

// flow returns whose share the key's calls have.
func (p provenKeys) flow(key APIKey) flow {
	if _, known := p.seen.Get(key); !known {
		return flow{}
	}
	return flow{organization: key.Organization}
}

// urgent is flow for what takes authority away.
func (p provenKeys) urgent(key APIKey) flow { return p.of(Caller{Key: &key, urgent: true}) }

// of is flow for a caller with an API key.
func (p provenKeys) of(c Caller) flow {
	f := p.flow(*c.Key)
	f.urgent = c.urgent && f != flow{}
	return f
}
