package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

var (
	setAsidePart = kernel.NewKeyedScript("budgets/set_aside_part")
	createChild  = kernel.NewScript("budgets/create_child", writes)
	indexChild   = kernel.NewScript("budgets/index_child", writes)
)

// CreateChildSession creates a session whose limits are a part of those of n.Parent, which is the calling agent's or any of
// the organization's. It has at most the parent's MaxPerAction. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession (the parent), ErrUnknownAgent,
// ErrAgentRevoked, *NotActiveError, *ScopeError, *ParentError, *LimitError, ErrParentEnforces, ErrIdempotencyKeyReused, *QuotaError,
// *RateError.
func (s *Store) CreateChildSession(ctx context.Context, c Caller, n NewSession) (_ Session, err error) {
	if c.Token != nil {
		return s.createChildByAgent(ctx, *c.Token, n)
	}
	defer func() { s.core.FreeClaim(ctx, c, n.Idempotency, err) }()
	key := *c.Key
	n.Idempotency.SetObject(n.Parent)
	n.Idempotency.SetBounded()
	cr := s.sessionCreation(ctx, key, n)
	held, err := s.reserveCreation(ctx, cr, s.sessionDemand(n, key.Organization))
	if err != nil {
		return Session{}, err
	}
	act := kernel.Actor{Organization: key.Organization, Flow: flow{Owner: key.Organization}}
	var part setAside
	if act.Agent, err = s.core.AgentOf(ctx, act.Flow, n.Parent); err == nil {
		part, err = s.createPart(ctx, cr, act, n)
	}
	if createdNothing(err, false) && cr.entered {
		s.core.Drop(ctx, cr.index, kernel.Members{}, cr.id)
	}
	return s.createWithin(ctx, act, n, held, part, err)
}

// createWithin creates the session of a part, for which held is reserved, unless setting the part aside has failed.
func (s *Store) createWithin(ctx context.Context, act kernel.Actor, n NewSession, held kernel.Reservation, part setAside, failed error) (Session, error) {
	if failed != nil {
		held.Finish(failed, false)
		return Session{}, failed
	}
	session, err := s.createOfPart(ctx, act, n, part)
	held.Finish(err, part.again)
	return session, err
}

// createPart sets the part aside for a creation by API key, or returns what an earlier request with the key set aside.
func (s *Store) createPart(ctx context.Context, cr *creation, act kernel.Actor, n NewSession) (setAside, error) {
	r, err := s.create(ctx, cr, setAsidePart, replaySession, func(sc kernel.KeyedScript) (*reply, error) {
		return s.setAside(ctx, sc, act, cr.id, n)
	})
	if err != nil {
		return setAside{}, asOfParent(act, n.Parent, err)
	}
	return readSetAside(r, n.Idempotency)
}

// createChildByAgent is CreateChildSession for the agent of the parent.
func (s *Store) createChildByAgent(ctx context.Context, t AccessToken, n NewSession) (Session, error) {
	d, act := s.sessionDemand(n, t.Organization), t.Actor()
	d.Agent = t.Agent
	held, err := s.core.ReserveFor(ctx, act, d, n.Idempotency)
	if err != nil {
		return Session{}, err
	}
	part, err := s.createPartByAgent(ctx, t, act, n)
	return s.createWithin(ctx, act, n, held, part, err)
}

// createPartByAgent is createPart for the agent of the parent.
func (s *Store) createPartByAgent(ctx context.Context, t AccessToken, act kernel.Actor, n NewSession) (setAside, error) {
	// The index is in another cell than the agent, so check the token first: a revoked agent must not write to the index.
	if err := s.CheckToken(ctx, t); err != nil {
		return setAside{}, err
	}
	id, index := NewID(n.Agent), s.keys.OrganizationOpen(t.Organization)
	if err := s.enterChild(ctx, t, id, index); err != nil {
		return setAside{}, err
	}
	r, err := s.setAside(ctx, setAsidePart, act, id, n)
	if err != nil {
		if createdNothing(err, false) {
			s.core.Drop(ctx, index, kernel.Members{}, id)
		}
		return setAside{}, asOfParent(act, n.Parent, err)
	}
	part, err := readSetAside(r, n.Idempotency)
	if err == nil && part.child != id {
		s.core.Drop(ctx, index, kernel.Members{}, id)
	}
	return part, err
}

// enterChild enters a coming child in its organization's index, as creation.enter does for an API key.
func (s *Store) enterChild(ctx context.Context, t AccessToken, id uuid.UUID, index string) error {
	enter := func() error {
		_, err := s.client.Run(ctx, t.Flow(), indexChild, []string{index}, id, s.core.Usage.Quota(t.Organization, kernel.OpenSessionsHeld))
		return kernel.NothingVisible(err)
	}
	err := enter()
	if kernel.IsRefusedCreation(err) && s.closeSome(ctx, t.Organization) {
		err = enter()
	}
	return s.core.Refusals.Count(err)
}

// setAside runs set_aside_part.lua, or the replay of its outcome. act is on the parent's agent.
func (s *Store) setAside(ctx context.Context, sc kernel.KeyedScript, act kernel.Actor, child uuid.UUID, n NewSession) (*reply, error) {
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, n.Parent), s.keys.Parts(act.Agent, n.Parent), s.keys.Looks(act.Agent, n.Parent),
		s.keys.ClosedChildren(act.Agent, n.Parent), s.keys.Events(act.Agent)}
	return s.repeatForRoom(ctx, act, n.Parent, n.Idempotency, func() (*reply, error) {
		return s.core.Perform(ctx, sc, act, n.Idempotency, keys, act.Organization, act.Agent, act.Family, child, n.Agent,
			atMost(n.MaxActions, n.FitActions), atMost(int64(n.MaxValue), n.FitValue), n.Lifetime.Milliseconds(),
			strings.Join(n.Scopes, " "), s.core.Audit(ctx, act), n.enforcementText(), n.maxLeaseText())
	})
}

// atMost returns a limit as set_aside_part.lua takes it.
func atMost(limit int64, fits bool) string {
	text := strconv.FormatInt(limit, 10)
	if fits {
		return "~" + text
	}
	return text
}

// setAside is a part that was set aside.
type setAside struct {
	actions int64          // limits of the child
	value   money.MicroUSD // likewise
	child   uuid.UUID
	expires time.Time
	depth   int64
	scopes  string // of the parent
	at      time.Time
	bounded bool  // the parent has max_committed
	again   bool  // by an earlier request
	version int64 // of the parent's suspension

	perAction *money.MicroUSD // max_value_usd_per_action of the parent, nil for none
}

func readSetAside(r *reply, idem *Idempotency) (setAside, error) {
	p := setAside{child: r.ID(0), expires: r.Time(1), depth: r.Number(2), scopes: r.Text(3), at: r.Time(4), bounded: r.Text(5) != "",
		version: r.Number(7), actions: r.Number(8), value: kernel.MoneyAt(r, 9)}
	p.again, p.perAction = idem.IsReplay(), perActionAt(r, 6)
	return p, r.Err
}

// createOfPart creates the session of a part; act is on the parent's agent. If it certainly created nothing, it gives the part
// back.
func (s *Store) createOfPart(ctx context.Context, act kernel.Actor, n NewSession, part setAside) (Session, error) {
	n.MaxActions, n.MaxValue = part.actions, part.value
	follows := ""
	if part.bounded { // what it commits, and rolls back, counts in the parent's value_committed_usd
		if n.MaxCommitted == nil {
			follows = "="
		}
		n.MaxCommitted = lowest(n.MaxCommitted, n.MaxValue)
	}
	if part.perAction != nil {
		n.MaxPerAction = lowest(n.MaxPerAction, *part.perAction)
	}
	if part.again { // the entry may have been dropped since
		s.reopenSession(ctx, act.Organization, part.child)
	}
	keys := []string{s.keys.Agent(n.Agent), s.keys.Session(n.Agent, part.child), s.keys.AgentSessions(n.Agent), s.keys.Events(n.Agent),
		s.keys.AgentOpen(n.Agent)}
	parent := n.Parent.String() + string(act.Agent[:])
	r, err := s.client.Run(ctx, act.Flow, createChild, keys, act.Organization, n.Agent, part.child, n.MaxActions, int64(n.MaxValue),
		part.expires.UnixMilli(), n.scopesText(), n.Metadata, follows+orEmpty((*int64)(n.MaxCommitted)), n.maxLeaseText(), parent,
		part.depth, n.heldOf(part.scopes), part.at.Add(createdWithin).UnixMilli(), s.core.Audit(ctx, act), orEmpty((*int64)(n.MaxPerAction)),
		n.enforcementText(), part.version, n.Thresholds.text())
	if err != nil {
		return Session{}, s.withoutChild(ctx, act, n, part, err)
	}
	session := n.createdAs(r)
	if r.Err == nil && part.again {
		session.Metadata, r.Err = s.core.FirstMetadata(ctx, act.Flow, s.keys.Session(n.Agent, session.ID), "md", session.Metadata)
	}
	if !part.again {
		s.pruneAfterSession(ctx, act.Organization, n.Agent, part.child, nil, false)
	}
	return session, r.Err
}

// withoutChild gives back the part of a session that was not created, and returns the refusal. A repetition of the request leaves that
// to the first, or to the next request that needs the part: the first may still create the session.
func (s *Store) withoutChild(ctx context.Context, act kernel.Actor, n NewSession, part setAside, refusal error) error {
	if !createdNothing(refusal, false) {
		return refusal
	}
	if part.again {
		if refusal == kernel.ErrGivenUp { // the first request was broken off, and its part has come back since
			return &NotActiveError{Expired}
		}
		return refusal
	}
	settleContext, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	if s.giveUpChild(settleContext, act, n, place{part.child, n.Agent}) {
		s.core.Drop(settleContext, s.keys.OrganizationOpen(act.Organization), kernel.Members{}, part.child)
		if n.Idempotency != nil { // so that the corrected request may use the key
			_ = s.client.Redis().Unlink(settleContext, s.keys.Outcome(act.Agent, act.KeyDigest(n.Idempotency, ""))).Err()
		}
	}
	return asUnavailable(refusal)
}

// giveUpChild gives back the part of a session whose creation was refused, and says whether the session will never exist: a repetition
// may have created the session since, which keeps its part; or it comes later, and must find the id refused.
func (s *Store) giveUpChild(ctx context.Context, act kernel.Actor, n NewSession, p place) bool {
	state, _ := s.settlePart(ctx, act.Organization, place{n.Parent, act.Agent}, p, false, refusesMissing) // its part comes back later if this fails
	return state == usageRefused
}

// asUnavailable turns the refusal of a creation whose part has been given back into ErrUnavailable: nothing was created.
func asUnavailable(err error) error {
	if err == kernel.ErrGivenUp {
		return errors.Join(ErrUnavailable, err)
	}
	return err
}

func lowest(limit *money.MicroUSD, most money.MicroUSD) *money.MicroUSD {
	if limit != nil {
		most = min(*limit, most)
	}
	return &most
}

// asOfParent says which session refuses.
func asOfParent(act kernel.Actor, parent uuid.UUID, err error) error {
	err = act.ErrorFor(err)
	var limit *LimitError
	if errors.As(err, &limit) {
		return &ParentError{Parent: parent, LimitError: limit}
	}
	return err
}
