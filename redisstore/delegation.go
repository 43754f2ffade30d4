package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// NewDelegation is a request for a delegated token.
type NewDelegation struct {
	Subject AccessToken // of the agent that asks; with a Session, for the children of that one only
	Session uuid.UUID
	Scopes  []string // wanted; none for as many as possible
	Held    []string // by Subject

	Audience []string    // that the token is for, with Self for this service
	Actors   []uuid.UUID // the agents that act with Subject, if it is delegated itself
	Proof    *Proof      // of the key that the token is bound to, used up already; nil for none
}

// Delegation is the content of a delegated token. Redis keeps nothing of it.
type Delegation struct {
	AccessToken // of the session's agent, with a new family and its Session
	Scopes      []string
	Rest        time.Duration // until the session expires
}

// scopeDelegate is what a token, its agent and its session must hold to give, as to create a child.
const scopeDelegate = "sessions:delegate"

var (
	checkDelegator  = newScript("identity/check_delegator", reads)
	delegateSession = newScript("identity/delegate_session", writes)
)

// Delegate grants the parent's agent a token for a child session. The caller must have checked that Subject is genuine and, if
// it is delegated itself, CheckDelegated. Each call grants another token. Errors: ErrInvalidToken, ErrUnknownSession for what is
// no child of a session of Subject's, *NotActiveError, *AgentSuspendedError and *SessionSuspendedError of parent or child,
// *ScopeError, *AudienceError, *RateError, ErrProofRequired.
func (s *Store) Delegate(ctx context.Context, n NewDelegation) (Delegation, error) {
	act := n.Subject.actor()
	left, err := s.VerifyToken(ctx, n.Subject) // a revoked agent must not learn which sessions there are
	if err != nil {
		return Delegation{}, err
	}
	n.Held = left.Of(n.Held)
	for _, needed := range append([]string{scopeDelegate}, n.Scopes...) {
		if !slices.Contains(n.Held, needed) {
			return Delegation{}, &ScopeError{Scope: needed}
		}
	}
	held, err := s.reserveIn(act.flow, demand{organization: act.organization, agent: act.agent, resource: noResource, events: eventSize})
	if err != nil {
		return Delegation{}, s.refusals.count(err)
	}
	granted, err := s.delegate(ctx, act, n)
	held.finish(err, false)
	return granted, err
}

func (s *Store) delegate(ctx context.Context, act actor, n NewDelegation) (Delegation, error) {
	child, parent, err := s.childOf(ctx, act, n.Session)
	if err != nil {
		return Delegation{}, err
	}
	if n.Subject.Session != uuid.Nil && parent != n.Subject.Session {
		return Delegation{}, ErrUnknownSession
	}
	_, err = s.client.Run(ctx, act.flow, checkDelegator, []string{s.keys.agent(act.agent), s.keys.session(act.agent, parent)},
		act.organization, act.agent, act.family)
	if err != nil {
		return Delegation{}, act.errorFor(err)
	}
	if err := s.checkAudience(ctx, act.flow, n.Audience, append([]uuid.UUID{child, act.agent}, n.Actors...)); err != nil {
		return Delegation{}, err
	}
	keys := []string{s.keys.agent(child), s.keys.session(child, n.Session), s.keys.events(child)}
	r, err := s.client.Run(ctx, act.flow, delegateSession, keys, act.organization, child, newTokenID(child).String(),
		strings.Join(n.Scopes, " "), strings.Join(n.Held, " "), s.auditAs(WithActor(ctx, requestID(ctx), act.agent), actorAgent), n.Proof.key())
	if err == ErrUnknownAgent {
		err = ErrUnknownSession // the child's, which has been deleted since
	}
	if err != nil {
		return Delegation{}, err
	}
	family := idOrNilAt(r, 2)
	return Delegation{
		AccessToken: AccessToken{Organization: act.organization, Agent: child, Family: family, Session: n.Session, Bound: n.Proof != nil},
		Scopes:      strings.Fields(r.Text(0)),
		Rest:        time.Duration(r.Number(1)) * time.Millisecond,
	}, r.Err
}

// checkAudience refuses an audience that the tokens of one of the agents may not be for: else an agent could reach through another
// what it must not.
func (s *Store) checkAudience(ctx context.Context, f flow, audience []string, agents []uuid.UUID) error {
	if len(audience) == 0 {
		return nil
	}
	replies, err := s.client.ReadAll(ctx, f, keysOf(agents, s.keys.agent), "audiences")
	if err != nil {
		return err
	}
	for _, r := range replies {
		allowed := r.Optional(0)
		for _, one := range audience {
			if !mayBeFor(one, allowed) {
				return &AudienceError{Audience: one}
			}
		}
	}
	return nil
}

// mayBeFor is identity/include/may_be_for.lua.
func mayBeFor(audience, allowed string) bool {
	switch {
	case audience == Self:
		return true
	case allowed == "":
		return strings.HasPrefix(audience, "https://") || strings.HasPrefix(audience, "http://")
	}
	return slices.Contains(strings.Fields(allowed), audience)
}

// childOf returns the agent and the parent of a session whose parent is the actor's. None of these ever changes.
func (s *Store) childOf(ctx context.Context, act actor, session uuid.UUID) (agent, parent uuid.UUID, err error) {
	replies, err := s.client.ReadAll(ctx, act.flow, []string{s.keys.session(session, session)}, "a", "pg", "pa")
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	r := replies[0]
	if r.Optional(1) != string(act.agent[:]) {
		return uuid.Nil, uuid.Nil, ErrUnknownSession
	}
	agent, parent = r.ID(0), idOrNilAt(r, 2)
	return agent, parent, r.Err
}
