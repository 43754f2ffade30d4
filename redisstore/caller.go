package redisstore

import (
	"errors"
	"sync/atomic"

	"github.com/google/uuid"
)

// APIKey is an API key as presented: the organization it names and its SHA-256. Each operation checks in
// Redis whether it is that organization's.
type APIKey struct {
	Organization uuid.UUID
	Hash         [32]byte
}

// AccessToken is a verified access token: its agent and family. Each operation's own script checks that neither is revoked.
type AccessToken struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Family       uuid.UUID

	written *writtenToken // for a token that is used often; see Remembered
}

// writtenToken holds the arguments that scripts take for every use of an access token, formatted once.
type writtenToken struct {
	family, agent, events string

	refused atomic.Bool // by Redis, for good: its agent or family is revoked
}

// Remembered returns the token with the arguments of its scripts formatted, for a cache.
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

// flow is its organization's flow, until Redis has refused the token: a revoked agent must not fill that flow.
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

// urgently returns the caller for an operation that takes authority away.
func (c Caller) urgently() Caller {
	c.urgent = c.Key != nil
	return c
}

// actor is a caller as the scripts on an agent's cell take it.
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

// refusedTo returns the error that the actor may learn. For an access token, its own missing agent means that the token is not
// live; for an API key, another organization's agent means that there is no such session. It marks a cached token that is not
// live as refused.
func (a actor) refusedTo(err error) error {
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
