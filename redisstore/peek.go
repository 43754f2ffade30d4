package redisstore

import (
	"context"

	"github.com/google/uuid"
	"remit/money"
)

var peekSession = newScript("budgets/peek_session", reads)

// peekHolds is how many due holds one call counts.
const peekHolds = 500

// peekSession reads a session while Redis refuses every write. It writes no audit event. It subtracts due holds, which it
// cannot release, from the held value, and counts expired leases as used.
func (s *Store) peekSession(ctx context.Context, act actor, id uuid.UUID) (Session, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys := []string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.holds(act.agent, id),
		s.keys.leases(act.agent, id)}
	var over money.MicroUSD
	for skip := 0; ; skip += peekHolds {
		r, err := s.client.Run(ctx, act.flow, peekSession, keys, act.organization, act.agent, act.family, skip, peekHolds)
		if err != nil {
			return Session{}, act.errorFor(err)
		}
		counted, due := r.Number(4), moneyAt(r, 5)
		if over += due; counted == peekHolds {
			continue
		}
		session, err := sessionFrom(r, id)
		lapsed := moneyAt(r, 6)
		session.ValueUsed += lapsed
		session.ValueCommitted += lapsed
		session.ValueHeld = max(session.ValueHeld-over-lapsed, 0) // holds may be released between two pages
		return session, err
	}
}
