package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// Charge is one use of a session.
type Charge struct {
	Count       int64          // actions, at least 1
	Value       money.MicroUSD // of all of them together
	Scope       string         // required of the session, "" for none
	ActionType  string         // what the usage reports call it, "" for none
	DryRun      bool           // only asks what the charge would do; without Idempotency
	Idempotency *Idempotency   // nil for no idempotency key

	tellsScopes bool // of a session key: the reply says which scopes it has
}

var (
	chargeSession = kernel.NewMergedKeyedScript("budgets/charge_session").RecordingIf(chargeMayRecord)
	dryCharge     = kernel.NewDryScript("budgets/charge_session")
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

func (s *Store) charge(ctx context.Context, c Caller, session uuid.UUID, charge Charge) (_ *reply, err error) {
	defer func() { s.core.FreeClaim(ctx, c, charge.Idempotency, err) }()
	charge.Idempotency.SetBounded()
	act, err := s.core.ActOnSession(ctx, c, session, charge.Idempotency)
	if err != nil {
		return nil, err
	}
	keys := s.sessionKeys(act, session)
	r, err := s.repeatForRoom(ctx, act, session, charge.Idempotency, func() (*reply, error) {
		if charge.DryRun {
			return s.dryRun(ctx, dryCharge, act, keys[:], act.Organization, act.Agent, act.Family,
				charge.Count, int64(charge.Value), charge.kind(), s.core.Audit(ctx, act))
		}
		return s.core.Perform(ctx, chargeSession, act, charge.Idempotency, keys[:], act.Organization, act.Agent, act.Family,
			charge.Count, int64(charge.Value), charge.kind(), s.core.Audit(ctx, act))
	})
	if err != nil {
		return nil, act.ErrorFor(err)
	}
	s.noteChargedType(act, charge, r)
	return r, nil
}

// noteChargedType counts the memory of an action type that is new in the session.
func (s *Store) noteChargedType(act kernel.Actor, charge Charge, r *reply) {
	if charge.ActionType == "" || charge.DryRun || charge.Idempotency.IsReplay() || !r.Has(usageTypeGrown) {
		return
	}
	s.noteTypes(act.Organization, r.Number(usageTypeGrown), time.Until(r.Time(usageExpires)))
}

// noteTypes counts the memory of action types in a session that is over after this time.
func (s *Store) noteTypes(organization uuid.UUID, bytes int64, remaining time.Duration) {
	s.core.Usage.NoteBytes(organization, bytes, s.config.Retention+max(remaining, 0))
}

// errDryRun finishes what a dry run has reserved: it creates nothing.
var errDryRun = errors.New("a dry run creates nothing")

// dryRun runs a script of NewDryScript, and returns the reply or the refusal that the operation would have given. Nothing is
// written; but like a read it may release holds whose time is up first, see repeatWhileDue.
func (s *Store) dryRun(ctx context.Context, dry *script, act kernel.Actor, keys []string, args ...any) (*reply, error) {
	r, err := s.client.Run(ctx, act.Flow, dry, keys, args...)
	if err != nil {
		return nil, err
	}
	would := r.List(0)
	if would.Err != nil {
		return nil, would.Err
	}
	return would.Whole()
}
