package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/redisstore/internal/kernel"
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
	checkDelegator  = kernel.NewScript("identity/check_delegator", reads)
	delegateSession = kernel.NewScript("identity/delegate_session", writes)
)

// Delegate grants the parent's agent a token for a child session. The caller must have checked that Subject is genuine and, if
// it is delegated itself, CheckDelegated. Each call grants another token. Errors: ErrInvalidToken, ErrUnknownSession for what is
// no child of a session of Subject's, *NotActiveError, *AgentSuspendedError and *SessionSuspendedError of parent or child,
// *ScopeError, *AudienceError, *RateError, ErrProofRequired.
func (s *Store) Delegate(ctx context.Context, n NewDelegation) (Delegation, error) {
	act := n.Subject.Actor()
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
	held, err := s.core.ReserveIn(act.Flow, kernel.Demand{Organization: act.Organization, Agent: act.Agent, Resource: kernel.NoResource, Events: kernel.EventSize})
	if err != nil {
		return Delegation{}, s.core.Refusals.Count(err)
	}
	granted, err := s.delegate(ctx, act, n)
	held.Finish(err, false)
	return granted, err
}

func (s *Store) delegate(ctx context.Context, act kernel.Actor, n NewDelegation) (Delegation, error) {
	child, parent, err := s.childOf(ctx, act, n.Session)
	if err != nil {
		return Delegation{}, err
	}
	if n.Subject.Session != uuid.Nil && parent != n.Subject.Session {
		return Delegation{}, ErrUnknownSession
	}
	_, err = s.client.Run(ctx, act.Flow, checkDelegator, []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, parent)},
		act.Organization, act.Agent, act.Family)
	if err != nil {
		return Delegation{}, act.ErrorFor(err)
	}
	if err := s.checkAudience(ctx, act.Flow, n.Audience, append([]uuid.UUID{child, act.Agent}, n.Actors...)); err != nil {
		return Delegation{}, err
	}
	keys := []string{s.keys.Agent(child), s.keys.Session(child, n.Session), s.keys.Events(child)}
	r, err := s.client.Run(ctx, act.Flow, delegateSession, keys, act.Organization, child, kernel.NewTokenID(child).String(),
		strings.Join(n.Scopes, " "), strings.Join(n.Held, " "), s.core.AuditAs(WithActor(ctx, kernel.RequestID(ctx), act.Agent), kernel.ActorAgent), n.Proof.key())
	if err == ErrUnknownAgent {
		err = ErrUnknownSession // the child's, which has been deleted since
	}
	if err != nil {
		return Delegation{}, err
	}
	family := kernel.IDOrNilAt(r, 2)
	return Delegation{
		AccessToken: AccessToken{Organization: act.Organization, Agent: child, Family: family, Session: n.Session, Bound: n.Proof != nil},
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
	replies, err := s.client.ReadAll(ctx, f, kernel.Map(agents, s.keys.Agent), "audiences")
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
func (s *Store) childOf(ctx context.Context, act kernel.Actor, session uuid.UUID) (agent, parent uuid.UUID, err error) {
	replies, err := s.client.ReadAll(ctx, act.Flow, []string{s.keys.Session(session, session)}, "a", "pg", "pa")
	if err != nil {
		return uuid.Nil, uuid.Nil, err
	}
	r := replies[0]
	if r.Optional(1) != string(act.Agent[:]) {
		return uuid.Nil, uuid.Nil, ErrUnknownSession
	}
	agent, parent = r.ID(0), kernel.IDOrNilAt(r, 2)
	return agent, parent, r.Err
}
