package redisstore

import (
	"cmp"
	"context"

	"github.com/google/uuid"
)

// actOnAgent returns the actor for an operation on that agent. An access token costs nothing here, because the operation's
// script checks it. An API key is checked here, because its organization is in another cell. idem is nil for operations
// without an idempotency key.
func (s *Store) actOnAgent(ctx context.Context, c Caller, agent uuid.UUID, idem *Idempotency) (actor, error) {
	if c.Token != nil {
		if agent != c.Token.Agent {
			return actor{}, cmp.Or(s.CheckLive(ctx, *c.Token), ErrUnknownAgent)
		}
		return c.Token.actor(), nil
	}
	if err := s.authorize(ctx, c, idem); err != nil {
		return actor{}, err
	}
	return actor{organization: c.Key.Organization, agent: agent, flow: s.proven.of(c)}, nil
}

// actOnSession is actOnAgent for the agent of the session.
func (s *Store) actOnSession(ctx context.Context, c Caller, session uuid.UUID, idem *Idempotency) (actor, error) {
	if c.Token != nil {
		return s.actOnAgent(ctx, c, c.Token.Agent, idem)
	}
	if idem != nil {
		idem.at = session
	}
	act, err := s.actOnAgent(ctx, c, uuid.Nil, idem)
	if err != nil {
		return actor{}, err
	}
	act.agent, err = s.agentOf(ctx, act.flow, session)
	return act, err
}

// agentOf returns the session's agent, or ErrUnknownSession. A session's agent never changes.
func (s *Store) agentOf(ctx context.Context, f flow, session uuid.UUID) (uuid.UUID, error) {
	member, err := s.client.Call(ctx, f, reads, "hget", s.keys.session(session, session), "a")
	if err != nil {
		return uuid.Nil, err
	}
	if member == nil {
		return uuid.Nil, ErrUnknownSession
	}
	r := &reply{Values: []any{member}}
	return r.ID(0), r.Err
}
