package redisstore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisclient"
)

// Status is where an agent, a session or a transaction stands.
type Status string

// An agent is Active or Revoked; a session can be any of these.
const (
	Active    Status = "active"
	Completed Status = "completed" // ended by a caller
	Expired   Status = "expired"   // its time ran out
	Revoked   Status = "revoked"   // its agent was
)

// Usage is how far a session's limits are used. Used and held together never exceed a limit.
type Usage struct {
	MaxActions  int64
	ActionCount int64
	MaxValue    money.MicroUSD
	ValueUsed   money.MicroUSD
	ValueHeld   money.MicroUSD
	Withheld    money.MicroUSD // what of MaxValue MaxCommitted does not leave; 0 without
	Expires     time.Time
}

// RemainingValue is what may still be charged or held.
func (u Usage) RemainingValue() money.MicroUSD {
	return u.MaxValue - u.Withheld - u.ValueUsed - u.ValueHeld
}

// Session is a bounded context of one agent.
type Session struct {
	ID    uuid.UUID
	Agent uuid.UUID
	Usage
	ValueCommitted money.MicroUSD  // all that was ever charged or committed: what was rolled back, too
	MaxCommitted   *money.MicroUSD // what ValueCommitted may become, together with what is held; nil for no such limit
	ValueOverage   money.MicroUSD  // what its transactions cost beyond its limit; not in ValueCommitted
	Status         Status          // as it was when read
	Scopes         []string
	Metadata       string // JSON object, "" for none
	Created        time.Time
	Ended          time.Time // zero unless completed
}

// NewSession is what a session is created from.
type NewSession struct {
	Agent        uuid.UUID
	MaxActions   int64
	MaxValue     money.MicroUSD
	MaxCommitted *money.MicroUSD // nil for none
	Lifetime     time.Duration
	Scopes       []string     // nil for all that the agent has; empty for none
	Metadata     string       // JSON object, "" for none
	Idempotency  *Idempotency // nil for without an idempotency key
}

var (
	createSession = newKeyedScript("create_session")
	getSession    = newScript("get_session", reads) // what it writes by the way is in nobody's doubt
	endSession    = newScript("end_session", writes)
)

// CreateSession creates a session of an agent of the key's organization. Errors: ErrInvalidAPIKey, ErrUnknownAgent,
// ErrAgentRevoked, *ScopeError, ErrKeyReused, *QuotaError, *RateError.
func (s *Store) CreateSession(ctx context.Context, key APIKey, n NewSession) (Session, error) {
	if n.Idempotency != nil {
		n.Idempotency.at, n.Idempotency.bounded = n.Agent, true
		if err := s.admit(ctx, Caller{Key: &key}, n.Idempotency); err != nil {
			return Session{}, err
		}
	}
	id := NewID(n.Agent)
	held, err := s.reserveSession(ctx, key, id, n)
	if err != nil {
		return Session{}, s.released(ctx, Caller{Key: &key}, n.Idempotency, err)
	}
	session, err := s.writeSession(ctx, key.Organization, id, n)
	replayed := n.Idempotency != nil && n.Idempotency.Replayed
	held.settle(err, replayed)
	s.tidyAfterCreation(ctx, key.Organization, n.Agent, id, creation{err, replayed})
	return session, s.released(ctx, Caller{Key: &key}, n.Idempotency, err)
}

func (s *Store) writeSession(ctx context.Context, organization, id uuid.UUID, n NewSession) (Session, error) {
	act := actor{organization: organization, agent: n.Agent, flow: flow{Owner: organization}}
	keys := []string{s.keys.agent(n.Agent), s.keys.session(n.Agent, id), s.keys.agentSessions(n.Agent), s.keys.events(n.Agent)}
	r, err := s.perform(ctx, createSession, act, n.Idempotency, keys, organization, n.Agent, id, n.MaxActions,
		int64(n.MaxValue), n.Lifetime.Milliseconds(), s.config.Retention.Milliseconds(), n.scopesText(), n.Metadata,
		orEmpty((*int64)(n.MaxCommitted)), s.audit(ctx, act))
	if err != nil {
		return Session{}, err
	}
	session := Session{
		ID: r.ID(0), Agent: n.Agent, Status: Active, Created: r.Time(1), Metadata: n.Metadata,
		Usage:  Usage{MaxActions: r.Number(4), MaxValue: moneyAt(r, 5), Expires: r.Time(2)},
		Scopes: strings.Fields(r.Text(3)), MaxCommitted: n.MaxCommitted,
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

// scopesText returns the scopes as create_session.lua takes them.
func (n NewSession) scopesText() string {
	if n.Scopes != nil && len(n.Scopes) == 0 {
		return " "
	}
	return strings.Join(n.Scopes, " ")
}

// Session returns a session that the caller may see. Errors: ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession.
func (s *Store) Session(ctx context.Context, c Caller, id uuid.UUID) (Session, error) {
	act, err := s.actOnSession(ctx, c, id, nil)
	if err != nil {
		return Session{}, err
	}
	keys := s.sessionKeys(act, id)
	r, err := s.look(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, getSession, keys[:],
			act.organization, act.agent, act.family, s.audit(ctx, act))
	})
	if redisclient.RefusedWrite(err) {
		return s.peekSession(ctx, act, id)
	}
	if err != nil {
		return Session{}, act.refusedTo(err)
	}
	return sessionFrom(r, id)
}

// session reads what get_session.lua answers.
func sessionFrom(r *reply, id uuid.UUID) (Session, error) {
	h := holder{now: r.Time(0), revoked: r.TimeOrZero(1), scopes: r.Text(2)}
	if r.Err != nil {
		return Session{}, r.Err
	}
	return readSession(id, r.List(3), h)
}

// EndSession ends a session and returns when it ended. Ending a completed one again returns the first answer. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, ErrUnknownSession, *NotActiveError.
func (s *Store) EndSession(ctx context.Context, c Caller, id uuid.UUID) (time.Time, error) {
	act, err := s.actOnSession(ctx, c.urgently(), id, nil)
	if err != nil {
		return time.Time{}, err
	}
	keys := []string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.holds(act.agent, id), s.keys.events(act.agent)}
	r, err := s.look(ctx, act, id, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, endSession, keys,
			act.organization, act.agent, act.family, s.config.Retention.Milliseconds(), s.audit(ctx, act))
	})
	if err != nil {
		return time.Time{}, act.refusedTo(err)
	}
	s.closeSessions(ctx, act.organization, []uuid.UUID{id}, time.Time{})
	s.usage.noteEvent(act.organization)
	return r.Time(0), r.Err
}

// sessionKeys are the keys of what looks at a session: what it sees goes into the audit trail.
func (s *Store) sessionKeys(act actor, id uuid.UUID) [3]string {
	if act.written != nil {
		return [3]string{act.written.agent, s.keys.session(act.agent, id), act.written.events}
	}
	return [3]string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.events(act.agent)}
}

// agentOf returns whose session it is, or ErrUnknownSession. A session's agent never changes.
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

// sessionFields is the order in which a session's fields are read, here and in get_session.lua.
var sessionFields = []string{"a", "n", "ma", "v", "mv", "h", "x", "e", "c", "sc", "ov", "gb", "md"}

// listedFields are those that lists need: all but the metadata, which may be large.
var listedFields = sessionFields[:len(sessionFields)-1]

// holder is what a session's reading takes from elsewhere: its agent, and the time.
type holder struct {
	now     time.Time
	revoked time.Time // of the agent, zero while it is active
	scopes  string    // of the agent, separated by spaces
}

// readSession reads a session from its fields, in the order of sessionFields or listedFields.
func readSession(id uuid.UUID, r *reply, h holder) (Session, error) {
	session := Session{
		ID: id, Agent: r.ID(0), Created: r.TimeSince(madeAt(id), 8), Ended: r.TimeOrZero(7), ValueOverage: money.MicroUSD(r.NumberOr0(10)),
		Usage: Usage{
			ActionCount: r.Number(1), MaxActions: r.Number(2), Expires: r.Time(6), ValueUsed: moneyAt(r, 3),
			MaxValue: moneyAt(r, 4), ValueHeld: money.MicroUSD(r.NumberOr0(5)),
		},
	}
	b := budgetAt(r, 11)
	session.split(b)
	session.ValueCommitted, session.MaxCommitted = min(session.ValueUsed+b.givenBack, mostCounted), b.maxCommitted
	session.Status = statusAt(h.now, lifeEvents{ended: session.Ended, revoked: h.revoked, expires: session.Expires})
	if len(r.Values) == len(sessionFields) {
		session.Metadata = r.Optional(len(listedFields))
	}
	scopes := r.Optional(9)
	if scopes == "" {
		scopes = h.scopes
	}
	session.Scopes = strings.Fields(scopes)
	return session, r.Err
}
