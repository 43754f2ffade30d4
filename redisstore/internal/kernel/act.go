package kernel

import (
	"cmp"
	"context"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// ActOnAgent returns the actor for an operation on that agent. An access token costs nothing here, because the operation's
// script checks it. An API key is checked here, because its organization is in another cell. idem is nil for operations
// without an idempotency key.
func (s *Core) ActOnAgent(ctx context.Context, c Caller, agent uuid.UUID, idem *Idempotency) (Actor, error) {
	if c.Token != nil {
		if agent != c.Token.Agent {
			return Actor{}, cmp.Or(s.CheckLive(ctx, *c.Token), ErrUnknownAgent)
		}
		return c.Token.Actor(), nil
	}
	if err := s.Authorize(ctx, c, idem); err != nil {
		return Actor{}, err
	}
	return Actor{Organization: c.Key.Organization, Agent: agent, Flow: s.Proven.Of(c)}, nil
}

// ActOnSession is ActOnAgent for the agent of the session.
func (s *Core) ActOnSession(ctx context.Context, c Caller, session uuid.UUID, idem *Idempotency) (Actor, error) {
	if c.Token != nil {
		return s.ActOnAgent(ctx, c, c.Token.Agent, idem)
	}
	idem.SetObject(session)
	act, err := s.ActOnAgent(ctx, c, uuid.Nil, idem)
	if err != nil {
		return Actor{}, err
	}
	act.Agent, err = s.AgentOf(ctx, act.Flow, session)
	return act, err
}

// AgentOf returns the session's agent, or ErrUnknownSession. A session's agent never changes.
func (s *Core) AgentOf(ctx context.Context, f redisclient.Flow, session uuid.UUID) (uuid.UUID, error) {
	member, err := s.Client.Call(ctx, f, redisclient.Reads, "hget", s.Keys.Session(session, session), "a")
	if err != nil {
		return uuid.Nil, err
	}
	if member == nil {
		return uuid.Nil, ErrUnknownSession
	}
	r := &redisclient.Reply{Values: []any{member}}
	return r.ID(0), r.Err
}

var (
	CheckToken      = NewMergedScript("kernel/check_token", redisclient.Reads)
	checkSessionKey = NewScript("kernel/check_session_key", redisclient.Reads)
)

// CheckToken runs the script that checks whether the token's agent and family are live. Errors: ErrInvalidToken, *AgentSuspendedError.
func (s *Core) CheckToken(ctx context.Context, t AccessToken) (*redisclient.Reply, error) {
	act := t.Actor()
	script, keys := CheckToken, []string{s.AgentKey(act)}
	if t.IsSessionKey() {
		script, keys = checkSessionKey, append(keys, s.Keys.Session(t.Agent, t.Session))
	}
	r, err := s.Client.Run(ctx, act.Flow, script, keys, t.Organization, act.Family)
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	return r, nil
}

// CheckLive is CheckToken for what a suspended agent may do.
func (s *Core) CheckLive(ctx context.Context, t AccessToken) error {
	_, err := s.CheckToken(ctx, t)
	if IsSuspended(err) {
		return nil
	}
	return err
}
