package redisstore

import (
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

// agentState is what a session's own fields do not say: its agent and the time of the read, both of which determine its
// status, its leases, its suspension and what it has observed.
type agentState struct {
	agent   uuid.UUID
	now     time.Time
	revoked time.Time // of the agent, zero while it is active
	scopes  string    // of the agent, separated by spaces
	leases  leaseState

	suspended suspendedState
	observed  observedState
	perAction *money.MicroUSD // max_value_usd_per_action, nil for none
	tree      treeState

	thresholds Thresholds
}

// sessionFrom reads a session from a reply of now, revoked, scopes, session.
func sessionFrom(r *reply, id uuid.UUID) (Session, error) {
	a, err := agentStateFrom(r)
	if err != nil {
		return Session{}, err
	}
	fields := r.List(3)
	a.agent, a.leases = fields.ID(sessionAgent), leaseStateAt(fields, sessionLeased, sessionMaxLease)
	a.suspended = suspendedStateAt(fields, sessionSuspended, sessionSuspensionReason)
	a.observed = observedStateAt(fields, sessionRestrictions, sessionObservedRefusals)
	a.perAction = perActionAt(fields, sessionPerAction)
	a.tree = treeStateAt(fields, sessionDelegatedActions)
	a.thresholds = thresholdsAt(fields, sessionFlags)
	return readSession(id, fields, a)
}

// agentStateFrom reads the agent's state at the beginning of a reply with a session.
func agentStateFrom(r *reply) (agentState, error) {
	a := agentState{now: r.Time(0), revoked: r.TimeOrZero(1), scopes: r.Text(2)}
	return a, r.Err
}

// readSession reads a session from its sessionFields, of which it leaves the agent to its caller.
func readSession(id uuid.UUID, r *reply, a agentState) (Session, error) {
	session := Session{
		ID: id, Agent: a.agent, Created: r.TimeSince(kernel.MadeAt(id), sessionCreated), Ended: r.TimeOrZero(sessionEnded),
		ValueOverage: money.MicroUSD(r.NumberOr0(sessionOverage)),
		Usage: Usage{
			ActionCount: r.Number(sessionActions), MaxActions: r.Number(sessionMaxActions), Expires: r.Time(sessionExpires),
			ValueUsed: kernel.MoneyAt(r, sessionValue), MaxValue: kernel.MoneyAt(r, sessionMaxValue),
			ValueHeld: money.MicroUSD(r.NumberOr0(sessionHeld)),
		},
	}
	b := budgetAt(r, sessionBudget)
	session.split(b)
	session.takeLeases(a.leases)
	session.MaxPerAction = a.perAction
	session.takeTree(a.tree)
	session.Thresholds = a.thresholds
	session.Suspended, session.SuspensionReason = a.suspended.since, a.suspended.reason
	session.Observes, session.ObservedRefusals = a.observed.observes, a.observed.refusals
	session.ValueCommitted, session.MaxCommitted = min(session.ValueUsed+b.givenBack, mostCounted), b.maxCommitted
	session.Status = statusAt(a.now, lifeEvents{ended: session.Ended, revoked: a.revoked, expires: session.Expires})
	if session.Status != Completed {
		session.Ended = time.Time{} // see close_usage.lua
	}
	if r.Has(sessionMetadata) {
		session.Metadata = r.Rest(sessionMetadata)
	}
	scopes := r.Optional(sessionScopes)
	if scopes == "" {
		scopes = a.scopes
	}
	session.Scopes = strings.Fields(scopes)
	return session, r.Err
}

// leaseState is what a session has leased, and the longest lease.
type leaseState struct {
	leased  money.MicroUSD
	longest time.Duration
}

// leaseStateAt reads a leaseState whose two values are at these places.
func leaseStateAt(r *reply, leased, longest int) leaseState {
	return leaseState{money.MicroUSD(r.NumberOr0(leased)), time.Duration(r.NumberOr0(longest)) * time.Second}
}

// suspendedState is since when a session is suspended, zero if it is not, and why.
type suspendedState struct {
	since  time.Time
	reason string
}

// suspendedStateAt reads a suspendedState whose two values are at these places.
func suspendedStateAt(r *reply, since, reason int) suspendedState {
	return suspendedState{r.TimeOrZero(since), kernel.ManyLines.Replace(r.Optional(reason))}
}

// observedState is whether a session observes, and what its limits would have refused, nil if it never observed.
type observedState struct {
	observes bool
	refusals *int64
}

// observedStateAt reads an observedState whose two values are at these places.
func observedStateAt(r *reply, restrictions, refusals int) observedState {
	if r.Optional(refusals) == "" {
		return observedState{}
	}
	count := r.Number(refusals)
	return observedState{strings.Contains(r.Optional(restrictions), "o"), &count}
}

// perActionAt reads max_value_usd_per_action, nil for none.
func perActionAt(r *reply, i int) *money.MicroUSD {
	if r.Optional(i) == "" {
		return nil
	}
	return new(kernel.MoneyAt(r, i))
}

// takeLeases shows leased value as held.
func (s *Session) takeLeases(l leaseState) {
	s.ValueUsed -= l.leased
	s.ValueHeld += l.leased
	s.MaxLease = l.longest
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

// treeState is what a session has delegated, and its parent.
type treeState struct {
	delegated *Delegated // nil for a session that never had children
	parent    uuid.UUID  // uuid.Nil for a root
}

// treeStateAt reads a treeState whose three values begin at i. They may be missing, as those of leaseStateAt.
func treeStateAt(r *reply, i int) treeState {
	if !r.Has(i + 2) {
		return treeState{}
	}
	var t treeState
	if r.Optional(i) != "" {
		t.delegated = &Delegated{r.Number(i), money.MicroUSD(r.NumberOr0(i + 1))}
	}
	if r.Optional(i+2) != "" {
		t.parent = kernel.IDOrNilAt(r, i+2)
	}
	return t
}

// takeTree shows what is delegated as that, and not as used.
func (s *Session) takeTree(t treeState) {
	s.Parent, s.Delegated = t.parent, t.delegated
	s.ActionCount -= s.delegated().Actions
	s.ValueUsed -= s.delegated().Value
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
