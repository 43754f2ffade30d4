package redisstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// Usage is a session's limits and what is used of them. Used and held together never exceed a limit, except in a session that
// observes or has observed.
type Usage struct {
	MaxActions  int64
	ActionCount int64
	MaxValue    money.MicroUSD
	ValueUsed   money.MicroUSD
	ValueHeld   money.MicroUSD // by transactions, and leased
	Delegated   *Delegated     // nil for a session that never had children
	Withheld    money.MicroUSD // the part of MaxValue that MaxCommitted makes unavailable; 0 without MaxCommitted
	Expires     time.Time
	WouldRefuse string // in a session that observes, the limit that would have refused what led to this usage; else ""
}

// RemainingActions is how many actions the limits leave, 0 when more are used.
func (u Usage) RemainingActions() int64 {
	return max(u.MaxActions-u.ActionCount-u.delegated().Actions, 0)
}

// RemainingValue is the value that the limits leave to charge or hold, 0 when more is used and held.
func (u Usage) RemainingValue() money.MicroUSD {
	return max(u.MaxValue-u.Withheld-u.ValueUsed-u.ValueHeld-u.delegated().Value, 0)
}

// Delegated is what a session has set aside for its open children.
type Delegated struct {
	Actions int64
	Value   money.MicroUSD
}

func (u Usage) delegated() Delegated {
	if u.Delegated == nil {
		return Delegated{}
	}
	return *u.Delegated
}

// Session is a bounded context of one agent.
type Session struct {
	ID    uuid.UUID
	Agent uuid.UUID
	Usage
	ValueCommitted money.MicroUSD  // everything ever charged or committed, including what was rolled back since
	MaxCommitted   *money.MicroUSD // limit of ValueCommitted plus ValueHeld; nil for none
	ValueOverage   money.MicroUSD  // cost of its transactions beyond its limit; not in ValueCommitted
	MaxLease       time.Duration   // the longest lease; 0 for no leases
	MaxPerAction   *money.MicroUSD // limit of the value of one charge or hold; nil for none
	Status         Status          // at the time of the read
	Scopes         []string
	Metadata       string // JSON object, "" for none
	Created        time.Time
	Ended          time.Time // zero unless completed
	Parent         uuid.UUID // uuid.Nil for a root
	Thresholds     Thresholds

	Suspended        time.Time // since when; zero while it is not
	SuspensionReason string    // "" for none

	Observes         bool   // it goes beyond its limits, and counts what they would have refused
	ObservedRefusals *int64 // how much that is; nil if it never observed
}

// SessionSummary is a session in a list.
type SessionSummary struct {
	ID          uuid.UUID
	Agent       uuid.UUID
	Status      Status // at the time of the read
	ActionCount int64
	MaxActions  int64
	ValueUsed   money.MicroUSD
	MaxValue    money.MicroUSD
	Expires     time.Time

	// See lua/budgets/README.md.
	keptAbove   bool // its usage counts in a parent or a budget, which has not taken it
	hasChildren bool // or had some
	unsettled   bool // keptAbove, or a child has not given its part back
}

func (v *SessionSummary) inTree() bool { return v.keptAbove || v.hasChildren }

// NewSession describes a session to create.
type NewSession struct {
	Agent        uuid.UUID
	Parent       uuid.UUID // uuid.Nil for a root
	MaxActions   int64
	MaxValue     money.MicroUSD
	MaxCommitted *money.MicroUSD // nil for none
	MaxLease     time.Duration   // in whole seconds; 0 for no leases
	MaxPerAction *money.MicroUSD // of one charge or hold; nil for none
	FitActions   bool            // a child gets as many of MaxActions as its parent has left; else more is refused
	FitValue     bool            // likewise of MaxValue
	Lifetime     time.Duration   // of a child at most; it expires with its parent
	Scopes       []string        // nil for all of the agent's; empty for none
	Held         []string        // of which Scopes of a child that are nil may be, by the creator's token; nil for all
	Metadata     string          // JSON object, "" for none
	Idempotency  *Idempotency    // nil for no idempotency key
	Observes     bool            // see Session
	Thresholds   Thresholds
}

// enforcementText returns whether the session enforces its limits as create_session.lua takes it.
func (n NewSession) enforcementText() string {
	if n.Observes {
		return enforcementText(&n.Observes)
	}
	return ""
}

// enforcementText returns whether a session observes as scripts take it, "" for nil.
func enforcementText(observes *bool) string {
	switch {
	case observes == nil:
		return ""
	case *observes:
		return "observe"
	default:
		return "enforce"
	}
}

// scopesText returns the scopes as create_session.lua takes them.
func (n NewSession) scopesText() string {
	if n.Scopes != nil && len(n.Scopes) == 0 {
		return " "
	}
	return strings.Join(n.Scopes, " ")
}

// heldOf returns which of a parent's scopes, separated by spaces, the creator may give: a narrow token gives no more than it holds.
func (n NewSession) heldOf(scopes string) string {
	if n.Held == nil {
		return scopes
	}
	return strings.Join(slices.DeleteFunc(strings.Fields(scopes), func(one string) bool { return !slices.Contains(n.Held, one) }), " ")
}

// maxLeaseText returns the longest lease as create_session.lua takes it.
func (n NewSession) maxLeaseText() string {
	if n.MaxLease == 0 {
		return ""
	}
	return orEmpty(seconds(&n.MaxLease))
}

// lifeEvents determine a session's status. A zero time means that the event has not happened.
type lifeEvents struct{ ended, revoked, expires time.Time }

// statusAt is the only rule for a session's status: its end, its agent's revocation or its expiry, whichever was first. An end
// that is not before the expiry stands for the expiry (close_usage.lua).
func statusAt(now time.Time, e lifeEvents) Status {
	switch {
	case !e.ended.IsZero() && e.ended.Before(e.expires):
		return Completed
	case !e.revoked.IsZero() && (e.revoked.Before(e.expires) || now.Before(e.expires)):
		return Revoked
	case !now.Before(e.expires), !e.ended.IsZero():
		return Expired
	default:
		return Active
	}
}

var (
	claimSession  = kernel.NewScript("budgets/claim_and_index_session", writes).Watched(wroteThreshold(3))
	createSession = kernel.NewMergedKeyedScript("budgets/create_session")
	replaySession = kernel.NewKeyedScript("kernel/replay")
	getSession    = kernel.NewMergedScript("budgets/get_session", reads).Watched(readMayRecord) // a read, although it may also write an audit event
	endSession    = kernel.NewScript("budgets/end_session", writes)
)

// CreateSession creates a session of an agent of the key's organization. Errors: ErrInvalidAPIKey, ErrUnknownAgent,
// ErrAgentRevoked, *ScopeError, ErrIdempotencyKeyReused, *QuotaError, *RateError, *BudgetError.
func (s *Store) CreateSession(ctx context.Context, key APIKey, n NewSession) (_ Session, err error) {
	defer func() { s.core.FreeClaim(ctx, Caller{Key: &key}, n.Idempotency, err) }()
	n.Idempotency.SetObject(n.Agent)
	n.Idempotency.SetBounded()
	c := s.sessionCreation(ctx, key, n)
	c.root.value = orEmpty((*int64)(&n.MaxValue))
	held, err := s.reserveCreation(ctx, c, s.sessionDemand(n, key.Organization))
	if err != nil {
		return Session{}, err
	}
	session, err := s.writeSession(ctx, c, n)
	replayed := n.Idempotency.IsReplay()
	held.Finish(err, replayed)
	if c.root.reserved != "" && createdNothing(err, replayed) {
		s.giveBackReservation(ctx, key.Organization, place{c.id, n.Agent})
	}
	if c.entered {
		s.pruneAfterSession(ctx, key.Organization, n.Agent, c.id, err, replayed)
	}
	return session, asUnavailable(err)
}

// CreateRootSession is CreateSession for a caller with an API key.
func (s *Store) CreateRootSession(ctx context.Context, c Caller, n NewSession) (Session, error) {
	return s.CreateSession(ctx, *c.Key, n)
}

func (s *Store) sessionCreation(ctx context.Context, key APIKey, n NewSession) *creation {
	act := kernel.Actor{Organization: key.Organization, Agent: n.Agent}
	outcome := n.Agent
	if n.Parent != uuid.Nil {
		outcome = n.Parent
	}
	return &creation{
		key: key, id: NewID(n.Agent), index: s.keys.OrganizationOpen(key.Organization), enter: indexSession, claim: claimSession,
		counted:     kernel.OpenSessionsHeld,
		makeRoom:    func() bool { return s.closeSome(ctx, key.Organization) },
		idempotency: n.Idempotency, outcome: s.keys.Outcome(outcome, act.KeyDigest(n.Idempotency, "")),
		root: &rootSession{agent: n.Agent, outcome: outcome},
	}
}

func (s *Store) writeSession(ctx context.Context, c *creation, n NewSession) (Session, error) {
	organization, id := c.key.Organization, c.id
	act := kernel.Actor{Organization: organization, Agent: n.Agent, Flow: flow{Owner: organization}}
	keys := []string{s.keys.Agent(n.Agent), s.keys.Session(n.Agent, id), s.keys.AgentSessions(n.Agent), s.keys.Events(n.Agent),
		s.keys.AgentOpen(n.Agent)}
	r, err := s.create(ctx, c, createSession, replaySession, func(sc kernel.KeyedScript) (*reply, error) {
		return s.core.Perform(ctx, sc, act, n.Idempotency, keys, organization, n.Agent, id, n.MaxActions,
			int64(n.MaxValue), n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), n.scopesText(), n.Metadata,
			orEmpty((*int64)(n.MaxCommitted)), s.core.Audit(ctx, act), n.maxLeaseText(), n.enforcementText(),
			orEmpty((*int64)(n.MaxPerAction)), c.root.deadline(), n.Thresholds.text())
	})
	if err != nil {
		return Session{}, err
	}
	session := n.createdAs(r)
	if r.Err != nil {
		return Session{}, r.Err
	}
	if n.Idempotency.IsReplay() {
		session.Metadata, err = s.core.FirstMetadata(ctx, act.Flow, s.keys.Session(n.Agent, session.ID), "md", session.Metadata)
	}
	return session, err
}

// createdAs returns the session with what the script that created it replied.
func (n NewSession) createdAs(r *reply) Session {
	session := Session{
		ID: r.ID(0), Agent: n.Agent, Parent: n.Parent, Status: Active, Created: r.Time(1), Metadata: n.Metadata,
		Usage:  Usage{MaxActions: r.Number(4), MaxValue: kernel.MoneyAt(r, 5), Expires: r.Time(2)},
		Scopes: strings.Fields(r.Text(3)), MaxCommitted: n.MaxCommitted, MaxLease: n.MaxLease,
		MaxPerAction: n.MaxPerAction, Thresholds: n.Thresholds,
	}
	if n.Observes {
		session.Observes, session.ObservedRefusals = true, new(int64)
	}
	if n.MaxCommitted != nil {
		session.Withheld = max(session.MaxValue-*n.MaxCommitted, 0)
	}
	return session
}

// Session returns a session of the caller's organization or agent. Errors: ErrInvalidAPIKey or ErrInvalidToken,
// ErrUnknownSession.
func (s *Store) Session(ctx context.Context, c Caller, id uuid.UUID) (Session, error) {
	act, err := s.core.ActOnSession(ctx, c, id, nil)
	if err != nil {
		return Session{}, err
	}
	return s.readSession(ctx, act, id)
}

func (s *Store) readSession(ctx context.Context, act kernel.Actor, id uuid.UUID) (Session, error) {
	keys := s.sessionKeys(act, id)
	r, err := s.repeatWhileDue(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, getSession, keys[:],
			act.Organization, act.Agent, act.Family, s.core.Audit(ctx, act))
	})
	if redisclient.RefusedWrite(err) {
		return s.peekSession(ctx, act, id)
	}
	if err != nil {
		return Session{}, act.ErrorFor(err)
	}
	session, state := Session{ID: id, Agent: act.Agent}, agentStateFrom(r)
	const optional = 3
	session.readOptionalFields(r, optional)
	fields := r.From(14)
	session.readBaseFields(fields, state)
	if fields.Err != nil {
		return Session{}, fields.Err
	}
	restrictions, flags := r.Optional(optional+sessionRestrictions-sessionLeased), r.Optional(optional+sessionFlags-sessionLeased)
	notesExpiry := session.Status == Expired && state.revoked.IsZero() && !strings.Contains(flags, expiryNoted)
	if notesExpiry && !strings.ContainsAny(restrictions, keptAbove+hasChildren) {
		s.closeSessions(ctx, act.Organization, []uuid.UUID{id}, session.Expires) // the event may lead a client to read the count of open sessions
	}
	return session, nil
}

// EndSession ends a session and returns when it ended. For a completed session it returns the time of the first end. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession, *NotActiveError. Its descendants end with it.
func (s *Store) EndSession(ctx context.Context, c Caller, id uuid.UUID) (time.Time, error) {
	act, err := s.core.ActOnSession(ctx, c.Urgently(), id, nil)
	if err != nil {
		return time.Time{}, err
	}
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, id), s.keys.Holds(act.Agent, id), s.keys.Events(act.Agent),
		s.keys.Looks(act.Agent, id), s.keys.AgentOpen(act.Agent)}
	r, err := s.repeatWhileDue(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, endSession, keys,
			act.Organization, act.Agent, act.Family, s.config.Retention.Milliseconds(), s.core.Audit(ctx, act))
	})
	if err != nil {
		return time.Time{}, act.ErrorFor(err)
	}
	s.core.Usage.NoteEvent(act.Organization)
	ended, flags := r.Time(0), r.Text(1)
	if r.Err != nil {
		return time.Time{}, r.Err
	}
	return ended, s.endTree(ctx, act, id, flags)
}

// sessionKeys are the keys of a script that reads a session. They include the audit trail, for what the script observes.
func (s *Store) sessionKeys(act kernel.Actor, id uuid.UUID) [3]string {
	if act.Written != nil {
		return [3]string{act.Written.Agent, s.keys.Session(act.Agent, id), act.Written.Events}
	}
	return [3]string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, id), s.keys.Events(act.Agent)}
}
