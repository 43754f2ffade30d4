package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// NewLimits changes a session's limits. A nil field leaves a limit unchanged. Either set a limit or add to it.
type NewLimits struct {
	MaxActions  *int64
	MaxValue    *money.MicroUSD
	AddActions  *int64
	AddValue    *money.MicroUSD
	Lifetime    *time.Duration // from now
	MaxLease    *time.Duration // in whole seconds; 0 for no leases
	Observes    *bool          // whether it goes beyond its limits; see Session
	PerAction   LimitChange    // of the value of one charge or hold
	Thresholds  *Thresholds    // nil Thresholds for the default
	Idempotency *Idempotency   // nil for no idempotency key
}

// The highest max_actions and max_value_usd.
const (
	MostActions = 1_000_000_000
	MostValue   = money.Max
)

var changeLimits = kernel.NewKeyedScript("budgets/change_limits")

// ChangeLimits changes the limits of an active session of the key's organization, and returns the session. Errors:
// ErrInvalidAPIKey, ErrUnknownSession, *NotActiveError, *BelowUsageError, *AboveBoundsError, ErrParentEnforces; with an idempotency key
// ErrIdempotencyKeyReused, and for an addition *QuotaError and *RateError; *ParentError when its parent has no room, *BudgetError
// when the organization's budget has none.
func (s *Store) ChangeLimits(ctx context.Context, key APIKey, id uuid.UUID, n NewLimits) (Session, error) {
	c := Caller{Key: &key}
	if n.Idempotency != nil { // without its key a repeated addition would be added again
		n.Idempotency.Bounded = n.AddActions != nil || n.AddValue != nil
	}
	act, at, err := s.sessionToChange(ctx, c, id, n)
	if err != nil {
		s.core.FreeClaim(ctx, c, n.Idempotency, err)
		return Session{}, err
	}
	r, err := s.changeLimits(ctx, act, at, n)
	if err != nil {
		err = act.ErrorFor(err)
		s.core.FreeClaim(ctx, c, n.Idempotency, err)
		return Session{}, err
	}
	return s.afterChange(ctx, act, id, n, r)
}

// afterChange lists a session whose limits were changed as active, and makes its descendants follow.
func (s *Store) afterChange(ctx context.Context, act kernel.Actor, id uuid.UUID, n NewLimits, r *reply) (Session, error) {
	if n.Lifetime != nil && !n.Idempotency.IsReplay() { // a replay does not reopen: the session may have ended since
		s.reopenSession(ctx, act.Organization, id)
	}
	session, err := sessionFrom(r, id)
	if err == nil && session.Delegated != nil { // as the change left it: a child may have come since the limits were read
		err = unfinishedBelow(s.narrowBelow(ctx, act, id, n))
	}
	if err != nil {
		return Session{}, err
	}
	return session, nil
}

// changeLimits changes the limits within what the session above grants.
func (s *Store) changeLimits(ctx context.Context, act kernel.Actor, at limitsNow, n NewLimits) (*reply, error) {
	if n.Idempotency != nil && n.Idempotency.Outcome.Claim.Before { // what was granted and added before is not added again
		r, err := s.core.Perform(ctx, replaySession, act, n.Idempotency, []string{s.keys.Agent(act.Agent)}, act.Organization)
		if err != kernel.ErrNoOutcome {
			return r, err
		}
	}
	return s.topUp(ctx, act, at, n, func(granted string) (*reply, error) {
		return s.changeWithin(ctx, act, at.id, n, granted)
	})
}

// topUp runs the script that changes a session's limits: a request to change them, or the approval of a request for more. Whatever
// raises a limit passes here, and gets what the session above grants. When others change the limits at the same time, it asks
// for the grant again.
func (s *Store) topUp(ctx context.Context, act kernel.Actor, at limitsNow, n NewLimits, raise func(granted string) (*reply, error)) (*reply, error) {
	if at.asksFirst(n) {
		if r, err := raise(onlyAsks); err != kernel.ErrStale {
			return r, err
		}
	}
	for attempt := 1; ; attempt++ {
		var r *reply
		granted, err := s.grantAbove(ctx, act, at, n)
		if err == nil {
			r, err = raise(granted)
		}
		switch {
		case err == kernel.ErrBeyondParent:
			usage := Usage{MaxActions: at.maxActions, MaxValue: at.maxValue, Expires: at.expires}
			return nil, at.needing(n, &ParentError{Parent: at.above.session, LimitError: &LimitError{Limit: "expires_at", Usage: usage}})
		case err != kernel.ErrStale:
			return r, at.needing(n, err)
		case attempt == maxGrants:
			return nil, fmt.Errorf("%w: the limits of the session change all the time", ErrUnavailable)
		}
		budgeted := at.budgeted
		if at, err = s.readLimits(ctx, act.Flow, at.id); err != nil {
			return nil, err
		}
		at.budgeted = budgeted
	}
}

func (s *Store) changeWithin(ctx context.Context, act kernel.Actor, id uuid.UUID, n NewLimits, granted string) (*reply, error) {
	keys := []string{s.keys.Agent(act.Agent), s.keys.Session(act.Agent, id), s.keys.AgentSessions(act.Agent),
		s.keys.SessionTransactions(act.Agent, id), s.keys.Events(act.Agent), s.keys.SessionRequests(act.Agent, id),
		s.keys.AgentOpen(act.Agent)}
	return s.repeatForRoom(ctx, act, id, n.Idempotency, func() (*reply, error) {
		return s.core.Perform(ctx, changeLimits, act, n.Idempotency, keys, act.Organization, act.Agent,
			setOrAdded(n.MaxActions, n.AddActions), setOrAdded((*int64)(n.MaxValue), (*int64)(n.AddValue)),
			orEmpty(milliseconds(n.Lifetime)), s.config.Retention.Milliseconds(), s.core.Audit(ctx, act),
			MostActions, int64(MostValue), orEmpty(seconds(n.MaxLease)), enforcementText(n.Observes), n.PerAction.sessionText(), granted, thresholdsText(n.Thresholds))
	})
}

// sessionText returns a limit as change_limits.lua takes it.
func (c LimitChange) sessionText() string {
	if !c.Given {
		return ""
	}
	return c.text()
}

// setOrAdded returns a limit as change_limits.lua takes it.
func setOrAdded(set, added *int64) string {
	if added != nil {
		return "+" + orEmpty(added)
	}
	return orEmpty(set)
}

// orEmpty returns a number as scripts take it, "" for none.
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

func seconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	s := int64(*d / time.Second)
	return &s
}
