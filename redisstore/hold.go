package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// NewHold changes a pending transaction's hold. A nil field stays unchanged.
type NewHold struct {
	Value       *money.MicroUSD
	Lifetime    *time.Duration // from now
	Idempotency *Idempotency   // nil for no idempotency key
}

var changeHold = kernel.NewKeyedScript("budgets/change_hold")

// ChangeHold changes the value and the expiry of a pending transaction of the calling agent, if the session's limits allow.
// Errors: ErrInvalidToken, ErrUnknownTransaction, *NotPendingError, *NotActiveError, *LimitError, ErrHeldByGateway; with an
// idempotency key ErrIdempotencyKeyReused, *QuotaError and *RateError.
func (s *Store) ChangeHold(ctx context.Context, t AccessToken, id uuid.UUID, n NewHold) (Transaction, error) {
	n.Idempotency.SetBounded()
	return s.changeHold(ctx, t.Actor(), &t, id, n)
}

// changeHold is ChangeHold for an actor with this token, nil for the gateway.
func (s *Store) changeHold(ctx context.Context, act kernel.Actor, t *AccessToken, id uuid.UUID, n NewHold) (Transaction, error) {
	facts, err := s.transactionFacts(ctx, act.Flow, act.Agent, id)
	if err != nil && err != ErrUnknownTransaction { // as in actOnTransaction
		return Transaction{}, err
	}
	if err := s.heldTo(ctx, t, facts.Session, ErrUnknownTransaction); err != nil {
		return Transaction{}, err
	}
	keys := append(s.transactionKeys(act, facts), s.keys.AgentSessions(act.Agent), s.keys.AgentHolds(act.Agent))
	r, err := s.repeatForRoom(ctx, act, facts.Session, n.Idempotency, func() (*reply, error) {
		return s.core.Perform(ctx, changeHold, act, n.Idempotency, keys, act.Organization, act.Agent, act.Family, id,
			orEmpty((*int64)(n.Value)), orEmpty(milliseconds(n.Lifetime)), s.config.Retention.Milliseconds(), s.core.Audit(ctx, act))
	})
	changed, err := facts.withReply(act, r, err)
	if err == nil && r.Has(5) {
		changed.WouldRefuse = r.Text(5)
	}
	if err == nil && !n.Idempotency.IsReplay() {
		s.notePostponed(act.Organization, changed, r.Time(4))
	}
	return changed, err
}

// notePostponed counts that a pending transaction's expiry changed.
func (s *Store) notePostponed(organization uuid.UUID, t Transaction, before time.Time) {
	s.core.Usage.Note(organization, func(c *kernel.Changes, _ *kernel.Quantities) {
		c.EventBytes += kernel.EventSize
		if !t.Expires.Equal(before) {
			c.Expire(kernel.PendingUntil(before.Sub(t.Created), before), -1)
			c.Expire(kernel.PendingUntil(t.Expires.Sub(t.Created), t.Expires), 1)
		}
	})
}

var releaseHolds = kernel.NewScript("budgets/release_holds", bestEffort)

// releaseDue releases the holds that an operation found due: those of the session, or those that count in the agent's day.
func (s *Store) releaseDue(ctx context.Context, act kernel.Actor, session uuid.UUID, due error) error {
	if due == kernel.ErrAgentHoldsDue {
		return s.releaseAgentHolds(ctx, act, session)
	}
	return s.releaseHolds(ctx, act, session)
}

// releaseHolds releases holds of a session that are due, ends its leases, and folds the usage of a day that is over.
func (s *Store) releaseHolds(ctx context.Context, act kernel.Actor, session uuid.UUID) error {
	released, err := s.client.Run(ctx, act.Flow, releaseHolds, s.releaseKeys(act, session), s.core.Audit(ctx, act), s.daysKept(), act.Agent)
	if err != nil {
		return kernel.NothingVisible(err)
	}
	s.noteReleased(act.Organization, released)
	return nil
}

// releaseKeys are the keys of release_holds.lua.
func (s *Store) releaseKeys(act kernel.Actor, session uuid.UUID) []string {
	return []string{s.keys.Session(act.Agent, session), s.keys.Holds(act.Agent, session), s.keys.Events(act.Agent),
		s.core.AgentKey(act), s.keys.Leases(act.Agent, session), s.keys.AgentHolds(act.Agent), s.keys.UsageDays(act.Agent)}
}

// noteReleased counts what release_holds.lua has released.
func (s *Store) noteReleased(organization uuid.UUID, r *reply) {
	s.noteExpiredLeases(organization, r.Number(0))
	s.expiredHolds.Add(float64(r.Number(1)))
}
