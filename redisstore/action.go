package redisstore

import (
	"context"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// Charge is one use of a session.
type Charge struct {
	Count       int64          // actions, at least 1
	Value       money.MicroUSD // of all of them together
	Scope       string         // required of the session, "" for none
	ActionType  string         // what the usage reports call it, "" for none
	DryRun      bool           // only asks what the charge would do; without Idempotency
	Idempotency *Idempotency   // nil for no idempotency key
}

var (
	chargeSession = newMergedKeyedScript("budgets/charge_session").recordingIf(chargeMayRecord)
	dryCharge     = newDryScript("budgets/charge_session")
)

// Charge charges the session with the actions and their value if all of it fits, and returns the usage after it. Errors:
// ErrInvalidAPIKey or ErrInvalidToken, *AgentSuspendedError, ErrUnknownSession, *NotActiveError, *SessionSuspendedError,
// *ScopeError, *LimitError; with an idempotency key ErrIdempotencyKeyReused, *QuotaError and *RateError. With any of them
// nothing was charged; with ErrOutcomeUnknown it may have been. A dry run charges nothing, and returns the usage or the error
// that the charge would have returned.
func (s *Store) Charge(ctx context.Context, c Caller, session uuid.UUID, charge Charge) (Usage, error) {
	r, err := s.charge(ctx, c, session, charge)
	if err != nil {
		return Usage{}, err
	}
	usage := usageAt(r, 0)
	return usage, r.Err
}

func (s *Store) charge(ctx context.Context, c Caller, session uuid.UUID, charge Charge) (*reply, error) {
	if charge.Idempotency != nil {
		charge.Idempotency.bounded = true
	}
	act, err := s.actOnSession(ctx, c, session, charge.Idempotency)
	if err != nil {
		return nil, s.released(ctx, c, charge.Idempotency, err)
	}
	keys := s.sessionKeys(act, session)
	r, err := s.givingBack(ctx, act, session, charge.Idempotency, func() (*reply, error) {
		if charge.DryRun {
			return s.dryRun(ctx, dryCharge, act, keys[:], act.organization, act.agent, act.family,
				charge.Count, int64(charge.Value), charge.kind(), s.audit(ctx, act))
		}
		return s.perform(ctx, chargeSession, act, charge.Idempotency, keys[:], act.organization, act.agent, act.family,
			charge.Count, int64(charge.Value), charge.kind(), s.audit(ctx, act))
	})
	if err != nil {
		return nil, s.released(ctx, c, charge.Idempotency, act.errorFor(err))
	}
	s.noteChargedType(act, charge, r)
	return r, nil
}

// noteChargedType counts the memory of an action type that is new in the session.
func (s *Store) noteChargedType(act actor, charge Charge, r *reply) {
	if charge.ActionType == "" || charge.DryRun || charge.Idempotency != nil && charge.Idempotency.Replayed || !r.Has(usageTypeGrown) {
		return
	}
	s.noteTypes(act.organization, r.Number(usageTypeGrown), time.Until(r.Time(usageExpires)))
}

// noteTypes counts the memory of action types in a session that is over after this time.
func (s *Store) noteTypes(organization uuid.UUID, bytes int64, remaining time.Duration) {
	if bytes == 0 {
		return
	}
	retained := s.config.Retention + max(remaining, 0)
	s.usage.note(organization, func(c *changes, unsent *quantities) {
		c.expire(expiryOf('b', retained, retained), bytes)
		unsent[bytesHeld] += bytes
	})
}
