package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// The fields of a session by their index in the replies of budgets/block/session_state.lua and get_session.lua.
const (
	sessionAgent = iota
	sessionActions
	sessionMaxActions
	sessionValue
	sessionMaxValue
	sessionHeld
	sessionExpires
	sessionEnded
	sessionCreated
	sessionScopes
	sessionOverage
	sessionBudget
	sessionMetadata
	sessionLeased
	sessionMaxLease
	sessionSuspended
	sessionSuspensionReason
	sessionRestrictions
	sessionObservedRefusals
	sessionPerAction
	sessionDelegatedActions
	sessionDelegatedValue
	sessionParent
	sessionFlags
)

// sessionFields are the fields of a session's hash in this order.
var sessionFields = []string{
	sessionAgent: "a", sessionActions: "n", sessionMaxActions: "ma", sessionValue: "v", sessionMaxValue: "mv", sessionHeld: "h",
	sessionExpires: "x", sessionEnded: "e", sessionCreated: "c", sessionScopes: "sc", sessionOverage: "ov", sessionBudget: "gb",
	sessionMetadata: "md", sessionLeased: "lv", sessionMaxLease: "ml",
	sessionSuspended: "su", sessionSuspensionReason: "sr",
	sessionRestrictions: "r", sessionObservedRefusals: "oc", sessionPerAction: "mp",
	sessionDelegatedActions: "dn", sessionDelegatedValue: "dv", sessionParent: "pa",
	sessionFlags: "w",
}

// agentState is what a session's own fields do not say: the time of the read and the state of its agent, which determine its status.
type agentState struct {
	now     time.Time
	revoked time.Time // zero while the agent is active
	scopes  string    // separated by spaces
}

// agentStateFrom reads the agent's state at the beginning of a reply with a session.
func agentStateFrom(r *reply) agentState {
	return agentState{now: r.Time(0), revoked: r.TimeOrZero(1), scopes: r.Text(2)}
}

// sessionFrom reads a session from a reply of now, revoked, scopes, session.
func sessionFrom(r *reply, id uuid.UUID) (Session, error) {
	state, fields := agentStateFrom(r), r.List(3)
	session := Session{ID: id, Agent: fields.ID(sessionAgent)}
	session.readOptionalFields(fields, sessionLeased)
	session.readBaseFields(fields, state)
	return session, cmp.Or(r.Err, fields.Err)
}

// readOptionalFields reads the sessionFields from sessionLeased on, which begin at i: what only some sessions have. Leased value is shown as
// held.
func (s *Session) readOptionalFields(r *reply, i int) {
	at := func(field int) int { return i + field - sessionLeased }
	s.ValueHeld, s.MaxLease = money.MicroUSD(r.NumberOr0(at(sessionLeased))), time.Duration(r.NumberOr0(at(sessionMaxLease)))*time.Second
	s.Suspended, s.SuspensionReason = r.TimeOrZero(at(sessionSuspended)), kernel.ManyLines.Replace(r.Optional(at(sessionSuspensionReason)))
	observes := strings.Contains(r.Optional(at(sessionRestrictions)), "o")
	if r.Optional(at(sessionObservedRefusals)) != "" {
		s.Observes, s.ObservedRefusals = observes, new(r.Number(at(sessionObservedRefusals)))
	}
	s.MaxPerAction = perActionAt(r, at(sessionPerAction))
	if r.Optional(at(sessionDelegatedActions)) != "" {
		s.Delegated = &Delegated{r.Number(at(sessionDelegatedActions)), money.MicroUSD(r.NumberOr0(at(sessionDelegatedValue)))}
	}
	if r.Optional(at(sessionParent)) != "" {
		s.Parent = kernel.IDOrNilAt(r, at(sessionParent))
	}
	s.Thresholds = thresholdsAt(r, at(sessionFlags))
}

// readBaseFields reads the sessionFields before sessionLeased, but for the agent, after readOptionalFields. What is leased or delegated is
// not used.
func (s *Session) readBaseFields(r *reply, a agentState) {
	s.Created, s.Ended = r.TimeSince(kernel.MadeAt(s.ID), sessionCreated), r.TimeOrZero(sessionEnded)
	s.ValueOverage = money.MicroUSD(r.NumberOr0(sessionOverage))
	s.ActionCount, s.MaxActions, s.Expires = r.Number(sessionActions)-s.delegated().Actions, r.Number(sessionMaxActions), r.Time(sessionExpires)
	s.ValueUsed, s.MaxValue = kernel.MoneyAt(r, sessionValue)-s.ValueHeld-s.delegated().Value, kernel.MoneyAt(r, sessionMaxValue)
	s.ValueHeld += money.MicroUSD(r.NumberOr0(sessionHeld))
	b := budgetAt(r, sessionBudget)
	s.split(b)
	s.ValueCommitted, s.MaxCommitted = min(s.ValueUsed+b.givenBack, mostCounted), b.maxCommitted
	s.Status = statusAt(a.now, lifeEvents{ended: s.Ended, revoked: a.revoked, expires: s.Expires})
	if s.Status != Completed {
		s.Ended = time.Time{} // see close_usage.lua
	}
	if r.Has(sessionMetadata) {
		s.Metadata = r.Rest(sessionMetadata)
	}
	s.Scopes = strings.Fields(cmp.Or(r.Optional(sessionScopes), a.scopes))
}

// perActionAt reads max_value_usd_per_action, nil for none.
func perActionAt(r *reply, i int) *money.MicroUSD {
	if r.Optional(i) == "" {
		return nil
	}
	return new(kernel.MoneyAt(r, i))
}

// The usage of a session by its index in the replies of scripts that charge it or refuse to.
const (
	usageActions = iota
	usageMaxActions
	usageValue
	usageMaxValue
	usageHeld
	usageExpires
	usageBudget     // nil or missing for none
	usageScopesLeft // see scopesLeftAt
	usageWouldRefuse
	usageTypeGrown // see noteTypes

	usagePerAction = usageScopesLeft // in the refusal of a begin
)

// usageAt reads the usage that begins at i.
func usageAt(r *reply, i int) Usage {
	u := Usage{
		ActionCount: r.Number(i + usageActions), MaxActions: r.Number(i + usageMaxActions),
		ValueUsed: kernel.MoneyAt(r, i+usageValue), MaxValue: kernel.MoneyAt(r, i+usageMaxValue), ValueHeld: kernel.MoneyAt(r, i+usageHeld),
		Expires: r.Time(i + usageExpires),
	}
	if r.Has(i + usageBudget) {
		u.split(budgetAt(r, i+usageBudget))
	}
	if r.Has(i + usageWouldRefuse) {
		u.WouldRefuse = r.Optional(i + usageWouldRefuse)
	}
	return u
}

var peekSession = kernel.NewScript("budgets/peek_session", reads)

// peekHolds is how many due holds one call counts.
const peekHolds = 500

// peekSession reads a session while Redis refuses every write. It writes no audit event. It subtracts due holds, which it
// cannot release, from the held value, and counts expired leases as used.
func (s *Store) peekSession(ctx context.Context, act kernel.Actor, id uuid.UUID) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, id), s.keys.Holds(act.Agent, id),
		s.keys.Leases(act.Agent, id)}
	var over money.MicroUSD
	for skip := 0; ; skip += peekHolds {
		r, err := s.client.Run(ctx, act.Flow, peekSession, keys, act.Organization, act.Agent, act.Family, skip, peekHolds)
		if err != nil {
			return Session{}, act.ErrorFor(err)
		}
		counted, due := r.Number(4), kernel.MoneyAt(r, 5)
		if over += due; counted == peekHolds {
			continue
		}
		session, err := sessionFrom(r, id)
		lapsed := kernel.MoneyAt(r, 6)
		session.ValueUsed += lapsed
		session.ValueCommitted += lapsed
		session.ValueHeld = max(session.ValueHeld-over-lapsed, 0) // holds may be released between two pages
		return session, err
	}
}

// mostCounted is the largest committed value that scripts count, because Lua numbers are exact up to it.
const mostCounted money.MicroUSD = 1<<53 - 1

// noMaxCommitted stands for no max_committed in a budget that has one; see budgets/include/restrict.lua.
const noMaxCommitted = mostCounted

// budget is a session's field gb; see budgets/include/budget.lua.
type budget struct {
	givenBack    money.MicroUSD  // by rollbacks of committed transactions
	maxCommitted *money.MicroUSD // nil for none
	maxValue     money.MicroUSD  // with maxCommitted
	delegated    *Delegated      // only in replies that show usage (budgets/block/show_delegated.lua)
}

// budgetAt reads a field gb, which is nil for a session that has neither rollbacks of commits nor max_committed.
func budgetAt(r *reply, i int) budget { return parseBudget(r, r.Optional(i)) }

// parseBudget reads a field gb, "" for none.
func parseBudget(r *reply, text string) budget {
	if text == "" {
		return budget{}
	}
	parts := strings.Split(text, " ")
	b := budget{givenBack: money.MicroUSD(r.Parse(parts[0]))}
	if len(parts) == 5 {
		b.delegated = &Delegated{r.Parse(parts[3]), money.MicroUSD(r.Parse(parts[4]))}
		parts = parts[:3]
	}
	switch len(parts) {
	case 1:
	case 3:
		most := money.MicroUSD(r.Parse(parts[1]))
		if b.maxValue = money.MicroUSD(r.Parse(parts[2])); most != noMaxCommitted {
			b.maxCommitted = &most
		}
	default:
		r.Err = fmt.Errorf("%w: %q is no budget", errReply, text)
	}
	return b
}

// split sets MaxValue and Withheld. Until then MaxValue is the lower of max_value and what max_committed leaves.
func (u *Usage) split(b budget) {
	if b.delegated != nil {
		u.Delegated = b.delegated
	}
	if b.maxCommitted != nil {
		u.MaxValue, u.Withheld = b.maxValue, b.maxValue-u.MaxValue
	}
}
