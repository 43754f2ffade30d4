package redisstore

import (
	"errors"

	"github.com/google/uuid"
)

// APIKey is an API key as presented: the organization that it names and its SHA-256. Each operation checks in Redis that it
// is that organization's key, and that its role may do what it is presented for.
type APIKey struct {
	Organization uuid.UUID
	Hash         [32]byte
	Hint         string // its last 4 characters, of a new key, to store with it
	Needs        Role   // the least role that may do this; "" is Admin
}

// credential is the key as scripts check it (lua/block/api_key.lua).
func (k APIKey) credential() string { return string(k.Hash[:]) + k.Needs.rank() }

// stored is the key as scripts store it.
func (k APIKey) stored() string { return string(k.Hash[:]) + k.Hint }

// AccessToken names the owner of a verified access token. Each operation's own script checks that the agent and the family
// are still live.
type AccessToken struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Family       uuid.UUID
	Session      uuid.UUID // of a delegated token, whose idempotency keys are the session's own; uuid.Nil for others
	Bound        bool      // to a key (RFC 9449); the caller must have verified a proof of it

	written *writtenToken // for a token that is used often; see Remembered
}

// actor is the token's part in an operation on its own agent.
func (t *AccessToken) actor() actor {
	if t.written != nil {
		return actor{t.Organization, t.Agent, t.written.family, t.flow(), t.Session, t.written}
	}
	return actor{t.Organization, t.Agent, t.family(), t.flow(), t.Session, nil}
}

// family is the token's family as scripts take it.
func (t *AccessToken) family() string {
	if t.Bound {
		return boundField(t.Family)
	}
	return familyField(t.Family)
}

// flow is the organization's flow until Redis has refused the token: a revoked agent must not use up that share.
func (t *AccessToken) flow() flow {
	if t.written != nil && t.written.refused.Load() {
		return unprovenFlow
	}
	return flow{Owner: t.Organization}
}

// Caller is who calls an operation that an organization may call for any of its agents and an agent for itself. Exactly one
// of Key and Token is set.
type Caller struct {
	Key   *APIKey
	Token *AccessToken

	urgent bool // an API key takes authority away; see flow
}

// urgently returns the caller for an operation that takes authority away.
func (c Caller) urgently() Caller {
	c.urgent = c.Key != nil
	return c
}

// actor is a caller together with the agent it acts on, as the scripts in an agent's cell take it.
type actor struct {
	organization uuid.UUID
	agent        uuid.UUID
	family       string // '' when an API key calls
	flow         flow
	session      uuid.UUID     // see AccessToken
	written      *writtenToken // nil for a token that is not Remembered
}

func (s *Store) agentKey(act actor) string {
	if act.written != nil {
		return act.written.agent
	}
	return s.keys.agent(act.agent)
}

// errorFor returns the error as the actor may see it. To an access token an unknown agent means that the token is not live;
// to an API key it means that the session is unknown. errorFor also notes the refusal of a Remembered token.
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
