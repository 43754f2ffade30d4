package redisstore

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// The fields of a session by their index in the replies of block/session_state.lua.
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
)

// sessionFields are the fields of a session's hash in this order.
var sessionFields = []string{
	sessionAgent: "a", sessionActions: "n", sessionMaxActions: "ma", sessionValue: "v", sessionMaxValue: "mv", sessionHeld: "h",
	sessionExpires: "x", sessionEnded: "e", sessionCreated: "c", sessionScopes: "sc", sessionOverage: "ov", sessionBudget: "gb",
	sessionMetadata: "md",
}

// agentState is a session's agent and the time of the read, both of which determine the session's status.
type agentState struct {
	now     time.Time
	revoked time.Time // of the agent, zero while it is active
	scopes  string    // of the agent, separated by spaces
}

// sessionFrom reads a session from the reply of get_session.lua: now, revoked, scopes, session.
func sessionFrom(r *reply, id uuid.UUID) (Session, error) {
	a := agentState{now: r.Time(0), revoked: r.TimeOrZero(1), scopes: r.Text(2)}
	if r.Err != nil {
		return Session{}, r.Err
	}
	return readSession(id, r.List(3), a)
}

// readSession reads a session from its sessionFields.
func readSession(id uuid.UUID, r *reply, a agentState) (Session, error) {
	session := Session{
		ID: id, Agent: r.ID(sessionAgent), Created: r.TimeSince(madeAt(id), sessionCreated), Ended: r.TimeOrZero(sessionEnded),
		ValueOverage: money.MicroUSD(r.NumberOr0(sessionOverage)),
		Usage: Usage{
			ActionCount: r.Number(sessionActions), MaxActions: r.Number(sessionMaxActions), Expires: r.Time(sessionExpires),
			ValueUsed: moneyAt(r, sessionValue), MaxValue: moneyAt(r, sessionMaxValue),
			ValueHeld: money.MicroUSD(r.NumberOr0(sessionHeld)),
		},
	}
	b := budgetAt(r, sessionBudget)
	session.split(b)
	session.ValueCommitted, session.MaxCommitted = min(session.ValueUsed+b.givenBack, mostCounted), b.maxCommitted
	session.Status = statusAt(a.now, lifeEvents{ended: session.Ended, revoked: a.revoked, expires: session.Expires})
	session.Metadata = r.Optional(sessionMetadata)
	scopes := r.Optional(sessionScopes)
	if scopes == "" {
		scopes = a.scopes
	}
	session.Scopes = strings.Fields(scopes)
	return session, r.Err
}

// The usage of a session by its index in the replies of scripts that charge it or refuse to.
const (
	usageActions = iota
	usageMaxActions
	usageValue
	usageMaxValue
	usageHeld
	usageExpires
	usageBudget // nil or missing for none
)

// usageAt reads the usage that begins at i.
func usageAt(r *reply, i int) Usage {
	u := Usage{
		ActionCount: r.Number(i + usageActions), MaxActions: r.Number(i + usageMaxActions),
		ValueUsed: moneyAt(r, i+usageValue), MaxValue: moneyAt(r, i+usageMaxValue), ValueHeld: moneyAt(r, i+usageHeld),
		Expires: r.Time(i + usageExpires),
	}
	if i+usageBudget < len(r.Values) {
		u.split(budgetAt(r, i+usageBudget))
	}
	return u
}
