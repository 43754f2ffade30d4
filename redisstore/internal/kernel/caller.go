package kernel

import (
	"errors"
	"sync/atomic"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// APIKey is an API key as presented: the organization that it names and its SHA-256. Each operation checks in Redis that it
// is that organization's key, and that its role may do what it is presented for.
type APIKey struct {
	Organization uuid.UUID
	Hash         [32]byte
	Hint         string // its last 4 characters, of a new key, to store with it
	Needs        Role   // the least role that may do this; "" is Admin
}

// Credential is the key as scripts check it (lua/block/api_key.lua).
func (k APIKey) Credential() string { return string(k.Hash[:]) + k.Needs.Rank() }

// Stored is the key as scripts store it.
func (k APIKey) Stored() string { return string(k.Hash[:]) + k.Hint }

// AccessToken names the owner of a verified access token. Each operation's own script checks that the agent and the family
// are still live.
type AccessToken struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Family       uuid.UUID // of a session key: its id, which scripts take for a family
	Session      uuid.UUID // of a session key or a delegated token, whose idempotency keys are the session's own; uuid.Nil for others
	Bound        bool      // to a key (RFC 9449); the caller must have verified a proof of it

	written *writtenToken // for a token that is used often; see Remembered
}

// Actor is the token's part in an operation on its own agent.
func (t *AccessToken) Actor() Actor {
	if t.written != nil {
		return Actor{t.Organization, t.Agent, t.written.family, t.Flow(), t.Session, t.written}
	}
	return Actor{t.Organization, t.Agent, t.FamilyField(), t.Flow(), t.Session, nil}
}

// IsSessionKey says whether it stands for a session key.
func (t *AccessToken) IsSessionKey() bool { return t != nil && IsSessionKeyID(t.Family) }

// FamilyField is the token's family as scripts take it.
func (t *AccessToken) FamilyField() string {
	switch {
	case t.Bound:
		return BoundField(t.Family)
	case t.IsSessionKey():
		return SessionKeyField(t.Family)
	}
	return FamilyField(t.Family)
}

// Flow is the organization's flow until Redis has refused the token: a revoked agent must not use up that share.
func (t *AccessToken) Flow() redisclient.Flow {
	if t.WasRefused() {
		return UnprovenFlow
	}
	return redisclient.Flow{Owner: t.Organization}
}

// WasRefused says whether Redis has refused the token. Only of a Remembered one that is known.
func (t *AccessToken) WasRefused() bool { return t.written != nil && t.written.refused.Load() }

// Caller is who calls an operation that an organization may call for any of its agents and an agent for itself. Exactly one
// of Key and Token is set.
type Caller struct {
	Key   *APIKey
	Token *AccessToken

	Urgent bool // an API key takes authority away; see flow
}

// Owner returns the caller's organization.
func (c Caller) Owner() uuid.UUID {
	if c.Token != nil {
		return c.Token.Organization
	}
	return c.Key.Organization
}

// Urgently returns the caller for an operation that takes authority away.
func (c Caller) Urgently() Caller {
	c.Urgent = c.Key != nil
	return c
}

// Actor is a caller together with the agent it acts on, as the scripts in an agent's cell take it.
type Actor struct {
	Organization uuid.UUID
	Agent        uuid.UUID
	Family       string // '' when an API key calls, gatewayFamily when the gateway does
	Flow         redisclient.Flow
	session      uuid.UUID     // see AccessToken
	Written      *writtenToken // nil for a token that is not Remembered
}

// gatewayFamily stands for the metering gateway where scripts take the family of an access token.
const gatewayFamily = "gateway"

// Gateway returns the metering gateway as it acts on what it holds of an agent.
func Gateway(organization, agent uuid.UUID) Actor {
	return Actor{Organization: organization, Agent: agent, Family: gatewayFamily, Flow: redisclient.Flow{Owner: organization}}
}

// family is the id in Family, uuid.Nil for an API key.
func (a Actor) family() (id uuid.UUID) {
	copy(id[:], a.Family[max(len(a.Family)-len(id), 0):])
	return id
}

// AgentKey returns the Redis key of the agent that the actor acts on.
func (s *Core) AgentKey(act Actor) string {
	if act.Written != nil {
		return act.Written.Agent
	}
	return s.Keys.Agent(act.Agent)
}

// ErrorFor returns the error as the actor may see it. To an access token an unknown agent means that the token is not live;
// to an API key and the gateway it means that the session is unknown. ErrorFor also notes the refusal of a Remembered token.
func (a Actor) ErrorFor(err error) error {
	if errors.Is(err, ErrUnknownAgent) {
		if a.Family == "" || a.Family == gatewayFamily {
			return ErrUnknownSession
		}
		err = ErrInvalidToken
	}
	if a.Written != nil && errors.Is(err, ErrInvalidToken) {
		a.Written.refused.Store(true)
	}
	return err
}

// writtenToken has what every use of an access token passes to scripts, formatted once.
type writtenToken struct {
	family, Agent, Events string

	refused atomic.Bool // set for good when Redis refuses it: its agent or family is revoked
}

// Remembered returns a copy of the token that is cheaper to use many times: it has its keys and arguments formatted.
func (t AccessToken) Remembered(keys Keys) *AccessToken {
	t.written = &writtenToken{family: t.FamilyField(), Agent: keys.Agent(t.Agent), Events: keys.Events(t.Agent)}
	return &t
}
