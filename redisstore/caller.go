package redisstore

import (
	"errors"
	"sync/atomic"

	"github.com/google/uuid"
)

// APIKey is an API key as presented: the organization it names and its SHA-256. Whether it is that organization's is
// checked by each operation, in Redis.
type APIKey struct {
	Organization uuid.UUID
	Hash         [32]byte
}

// AccessToken is a verified access token: whose it is. Whether that agent and family still stand is checked by each
// operation, in the operation's own script.
type AccessToken struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Family       uuid.UUID

	written *writtenToken // for a token that is used often; see Remembered
}

// writtenToken is what scripts are told of every use of an access token, written out once.
type writtenToken struct {
	family, agent, events string

	refused atomic.Bool // by Redis, for good: its agent or family is revoked
}

// Remembered returns the token with what its every use needs written out, for who keeps it.
func (s *Store) Remembered(t AccessToken) *AccessToken {
	t.written = &writtenToken{family: familyField(t.Family), agent: s.keys.agent(t.Agent), events: s.keys.events(t.Agent)}
	return &t
}

// actor is the token's part in an operation on its own agent.
func (t *AccessToken) actor() actor {
	if t.written != nil {
		return actor{t.Organization, t.Agent, t.written.family, t.flow(), t.written}
	}
	return actor{t.Organization, t.Agent, familyField(t.Family), t.flow(), nil}
}

// flow is its organization's share, until the token is seen to be refused: a revoked agent must not fill it.
func (t *AccessToken) flow() flow {
	if t.written != nil && t.written.refused.Load() {
		return unprovenFlow
	}
	return flow{Owner: t.Organization}
}

// Caller asks for something that an organization may ask for any of its agents and an agent for itself: exactly one of
// the two is set.
type Caller struct {
	Key   *APIKey
	Token *AccessToken

	urgent bool // it takes authority away, by an API key; see flow
}

// urgently is the caller for what takes authority away.
func (c Caller) urgently() Caller {
	c.urgent = c.Key != nil
	return c
}

// actor is a caller whose part in the operation is settled: what the scripts on an agent's cell are told.
type actor struct {
	organization uuid.UUID
	agent        uuid.UUID
	family       string // '' when an API key calls
	flow         flow
	written      *writtenToken // nil if it must be written out
}

func (s *Store) agentKey(act actor) string {
	if act.written != nil {
		return act.written.agent
	}
	return s.keys.agent(act.agent)
}

// errorFor says an error as the actor may hear it: to an access token its own missing agent means that it is not
// live, to an API key another organization's agent means that there is no such session. A remembered token that is not live
// is remembered as refused.
func (a actor) errorFor(err error) error {
	if errors.Is(err, ErrUnknownAgent) {
		if a.family == "" {
			return ErrUnknownSession
		}
		err = ErrInvalidToken
	}
	if a.written != nil && errors.Is(err, ErrInvalidToken) {
		a.written.refused.Store(true)
	}
	return err
}
