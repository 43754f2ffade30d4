package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// NewHold changes a pending transaction's hold. A nil field stays unchanged.
type NewHold struct {
	Value       *money.MicroUSD
	Lifetime    *time.Duration // from now
	Idempotency *Idempotency   // nil for no idempotency key
}

var (
	changeHold = newKeyedScript("budgets/change_hold")
)

// ChangeHold changes the value and the expiry of a pending transaction of the calling agent, if the session's limits allow.
// Errors: ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, *NotActiveError, *LimitError; with an idempotency key
// ErrIdempotencyKeyReused, *QuotaError and *RateError.
func (s *Store) ChangeHold(ctx context.Context, t AccessToken, id uuid.UUID, n NewHold) (Transaction, error) {
	act := t.actor()
	if n.Idempotency != nil {
		n.Idempotency.bounded = true
	}
	facts, err := s.transactionFacts(ctx, act.flow, t.Agent, id)
	if err != nil && err != ErrUnknownTransaction { // as in actOnTransaction
		return Transaction{}, err
	}
	keys := append(s.transactionKeys(act, facts), s.keys.agentSessions(act.agent), s.keys.agentHolds(act.agent))
	r, err := s.givingBack(ctx, act, facts.Session, n.Idempotency, func() (*reply, error) {
		return s.perform(ctx, changeHold, act, n.Idempotency, keys, t.Organization, t.Agent, act.family, id,
			orEmpty((*int64)(n.Value)), orEmpty(milliseconds(n.Lifetime)), s.config.Retention.Milliseconds(), s.audit(ctx, act))
	})
	changed, err := facts.withReply(act, r, err)
	if err == nil && r.Has(5) {
		changed.WouldRefuse = r.Text(5)
	}
	if err == nil && (n.Idempotency == nil || !n.Idempotency.Replayed) {
		s.notePostponed(act.organization, changed, r.Time(4))
	}
	return changed, err
}

// notePostponed counts that a pending transaction's expiry changed.
func (s *Store) notePostponed(organization uuid.UUID, t Transaction, before time.Time) {
	s.usage.note(organization, func(c *changes, _ *quantities) {
		c.eventBytes += eventSize
		if !t.Expires.Equal(before) {
			c.expire(pendingUntil(before.Sub(t.Created), before), -1)
			c.expire(pendingUntil(t.Expires.Sub(t.Created), t.Expires), 1)
		}
	})
}
