package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// NewLimits are what a session's limits change to; nil leaves one as it is.
type NewLimits struct {
	MaxActions *int64
	MaxValue   *money.MicroUSD
	Lifetime   *time.Duration // from now
}

var changeLimits = newScript("change_limits", writes)

// ChangeLimits changes the limits of an active session of the key's organization. Errors: ErrInvalidAPIKey,
// ErrUnknownSession, *NotActiveError, *BelowUsageError.
func (s *Store) ChangeLimits(ctx context.Context, key APIKey, id uuid.UUID, n NewLimits) (Session, error) {
	act, err := s.actOnSession(ctx, Caller{Key: &key}, id, nil)
	if err != nil {
		return Session{}, err
	}
	keys := []string{s.keys.agent(act.agent), s.keys.session(act.agent, id), s.keys.agentSessions(act.agent),
		s.keys.sessionTransactions(act.agent, id), s.keys.events(act.agent)}
	r, err := s.look(ctx, act, id, func() (*reply, error) {
		return s.run(ctx, act.flow, changeLimits, keys, act.organization, act.agent,
			orEmpty(n.MaxActions), orEmpty((*int64)(n.MaxValue)), orEmpty(milliseconds(n.Lifetime)),
			s.config.Retention.Milliseconds(), s.audit(ctx, act))
	})
	if err != nil {
		return Session{}, act.refusedTo(err)
	}
	if n.Lifetime != nil {
		s.reopenSession(ctx, act.organization, id)
	}
	return r.session(id)
}

// orEmpty returns a number as scripts take it, ” for none.
func orEmpty(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func milliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
