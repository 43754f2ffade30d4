package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

var (
	claimSession  = newScript("budgets/claim_and_index_session", writes).Watched(wroteThreshold(3))
	createSession = newMergedKeyedScript("budgets/create_session")
	replaySession = newKeyedScript("kernel/replay")
	getSession    = newMergedScript("budgets/get_session", reads).Watched(readMayRecord) // a read, although it may also write an audit event
	endSession    = newScript("budgets/end_session", writes)
)

// CreateSession creates a session of an agent of the key's organization. Errors: ErrInvalidAPIKey, ErrUnknownAgent,
// ErrAgentRevoked, *ScopeError, ErrIdempotencyKeyReused, *QuotaError, *RateError, *BudgetError.
func (s *Store) CreateSession(ctx context.Context, key APIKey, n NewSession) (Session, error) {
	if n.Idempotency != nil {
		n.Idempotency.at, n.Idempotency.bounded = n.Agent, true
	}
	c := s.sessionCreation(ctx, key, n)
	c.root.value = orEmpty((*int64)(&n.MaxValue))
	held, err := s.reserveCreation(ctx, c, s.sessionDemand(n, key.Organization))
	if err != nil {
		return Session{}, s.released(ctx, Caller{Key: &key}, n.Idempotency, err)
	}
	session, err := s.writeSession(ctx, c, n)
	replayed := n.Idempotency != nil && n.Idempotency.Replayed
	held.finish(err, replayed)
	if c.root.reserved != "" && (creationResult{err, replayed}).createdNothing() {
		s.giveBackReservation(ctx, key.Organization, place{c.id, n.Agent})
	}
	if c.entered {
		s.pruneAfterSession(ctx, key.Organization, n.Agent, c.id, creationResult{err, replayed})
	}
	return session, s.released(ctx, Caller{Key: &key}, n.Idempotency, asUnavailable(err))
}

// CreateRootSession is CreateSession for a caller with an API key.
func (s *Store) CreateRootSession(ctx context.Context, c Caller, n NewSession) (Session, error) {
	return s.CreateSession(ctx, *c.Key, n)
}

func (s *Store) sessionCreation(ctx context.Context, key APIKey, n NewSession) *creation {
	act := actor{organization: key.Organization, agent: n.Agent}
	outcome := n.Agent
	if n.Parent != uuid.Nil {
		outcome = n.Parent
	}
	return &creation{
		key: key, id: NewID(n.Agent), index: s.keys.organizationOpen(key.Organization), enter: indexSession, claim: claimSession,
		counted:     openSessionsHeld,
		makeRoom:    func() bool { return s.closeSome(ctx, key.Organization) },
		idempotency: n.Idempotency, outcome: s.keys.outcome(outcome, act.keyDigest(n.Idempotency, "")),
		root: &rootSession{agent: n.Agent, outcome: outcome},
	}
}

func (s *Store) writeSession(ctx context.Context, c *creation, n NewSession) (Session, error) {
	organization, id := c.key.Organization, c.id
	act := actor{organization: organization, agent: n.Agent, flow: flow{Owner: organization}}
	keys := []string{s.keys.agent(n.Agent), s.keys.session(n.Agent, id), s.keys.agentSessions(n.Agent), s.keys.events(n.Agent),
		s.keys.agentOpen(n.Agent)}
	r, err := s.create(ctx, c, createSession, replaySession, func(sc keyedScript) (*reply, error) {
		return s.perform(ctx, sc, act, n.Idempotency, keys, organization, n.Agent, id, n.MaxActions,
			int64(n.MaxValue), n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), n.scopesText(), n.Metadata,
			orEmpty((*int64)(n.MaxCommitted)), s.audit(ctx, act), n.maxLeaseText(), n.enforcementText(),
			orEmpty((*int64)(n.MaxPerAction)), c.root.deadline(), n.Thresholds.text())
	})
	if err != nil {
		return Session{}, err
	}
	session := Session{
		ID: r.ID(0), Agent: n.Agent, Status: Active, Created: r.Time(1), Metadata: n.Metadata,
		Usage:  Usage{MaxActions: r.Number(4), MaxValue: moneyAt(r, 5), Expires: r.Time(2)},
		Scopes: strings.Fields(r.Text(3)), MaxCommitted: n.MaxCommitted, MaxLease: n.MaxLease,
		MaxPerAction: n.MaxPerAction, Thresholds: n.Thresholds,
	}
	if n.Observes {
		session.Observes, session.ObservedRefusals = true, new(int64)
	}
	if n.MaxCommitted != nil {
		session.Withheld = max(session.MaxValue-*n.MaxCommitted, 0)
	}
	if r.Err != nil {
		return Session{}, r.Err
	}
	if n.Idempotency != nil && n.Idempotency.Replayed {
		session.Metadata, err = s.firstMetadata(ctx, act.flow, s.keys.session(n.Agent, session.ID), "md", session.Metadata)
	}
	return session, err
}

// Session returns a session of the caller's organization or agent. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownSession.
func (s *Store) Session(ctx context.Context, c Caller, id uuid.UUID) (Session, error) {
	act, err := s.actOnSession(ctx, c, id, nil)
	if err != nil {
		return Session{}, err
	}
	return s.readSession(ctx, act, id)
}

func (s *Store) readSession(ctx context.Context, act actor, id uuid.UUID) (Session, error) {
	keys := s.sessionKeys(act, id)
	r, err := s.releasingDueHolds(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, getSession, keys[:],
			act.organization, act.agent, act.family, s.audit(ctx, act))
	})
	if redisclient.RefusedWrite(err) {
		return s.peekSession(ctx, act, id)
	}
	if err != nil {
		return Session{}, act.errorFor(err)
	}
	state, err := agentStateFrom(r)
	if err != nil {
		return Session{}, err
	}
	state.agent, state.leases, state.suspended = act.agent, leaseStateAt(r, 3, 4), suspendedStateAt(r, 5, 6)
	state.observed, state.perAction, state.tree = observedStateAt(r, 7, 8), perActionAt(r, 9), treeStateAt(r, 10)
	state.thresholds = thresholdsAt(r, 13)
	return readSession(id, r.From(14), state)
}

// EndSession ends a session and returns when it ended. For a completed session it returns the time of the first end. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession, *NotActiveError. Its descendants end with it.
func (s *Store) EndSession(ctx context.Context, c Caller, id uuid.UUID) (time.Time, error) {
	act, err := s.actOnSession(ctx, c.urgently(), id, nil)
	if err != nil {
		return time.Time{}, err
	}
	keys := []string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.holds(act.agent, id), s.keys.events(act.agent),
		s.keys.looks(act.agent, id), s.keys.agentOpen(act.agent)}
	r, err := s.releasingDueHolds(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, endSession, keys,
			act.organization, act.agent, act.family, s.config.Retention.Milliseconds(), s.audit(ctx, act))
	})
	if err != nil {
		return time.Time{}, act.errorFor(err)
	}
	s.usage.noteEvent(act.organization)
	ended, flags := r.Time(0), r.Text(1)
	if r.Err != nil {
		return time.Time{}, r.Err
	}
	return ended, s.endTree(ctx, act, id, flags)
}

// sessionKeys are the keys of a script that reads a session. They include the audit trail, for what the script observes.
func (s *Store) sessionKeys(act actor, id uuid.UUID) [3]string {
	if act.written != nil {
		return [3]string{act.written.agent, s.keys.session(act.agent, id), act.written.events}
	}
	return [3]string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.events(act.agent)}
}
