package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

var (
	raisePart        = kernel.NewScript("budgets/raise_part", writes)
	raiseReservation = kernel.NewScript("budgets/raise_reservation", writes).Watched(wroteThreshold(1))
)

// maxGrants is how often a top-up asks for its grant again, because others changed the same limits meanwhile.
const maxGrants = 8

// limitsNow are a session's limits as they are read before a change.
type limitsNow struct {
	id         uuid.UUID
	agent      uuid.UUID
	flags      string
	above      place // the zero place for a root
	maxActions int64
	maxValue   money.MicroUSD
	expires    time.Time
	narrowed   string         // how often it was narrowed from above: its expiry, its other limits, and that it enforces them
	used       money.MicroUSD // and held; more than maxValue if it has observed
	maxLease   int64          // s
	perAction  *money.MicroUSD
	budgeted   bool // the organization has a budget; only for a root whose max_value is to change
}

// sessionToChange authorizes the caller, and reads the session; when its value is to change, in the same round trip also whether
// the organization has a budget.
func (s *Store) sessionToChange(ctx context.Context, c Caller, id uuid.UUID, n NewLimits) (kernel.Actor, limitsNow, error) {
	n.Idempotency.SetObject(id)
	act, err := s.core.ActOnAgent(ctx, c, uuid.Nil, n.Idempotency)
	if err != nil {
		return kernel.Actor{}, limitsNow{}, err
	}
	if n.MaxValue == nil && n.AddValue == nil {
		at, err := s.readLimits(ctx, act.Flow, id)
		act.Agent = at.agent
		return act, at, err
	}
	budgets, sessions, err := s.client.ReadTexts(ctx, act.Flow,
		redisclient.Hashes{Keys: []string{s.keys.OrganizationBudget(act.Organization)}, Fields: []string{"max"}},
		redisclient.Hashes{Keys: []string{s.keys.Session(id, id)}, Fields: limitsFields})
	if err != nil {
		return kernel.Actor{}, limitsNow{}, err
	}
	at, err := readLimitsNow(id, sessions[0])
	at.budgeted = budgets[0][0] != ""
	act.Agent = at.agent
	return act, at, err
}

func (s *Store) readLimits(ctx context.Context, f flow, id uuid.UUID) (limitsNow, error) {
	r, err := s.client.Fields(ctx, f, s.keys.Session(id, id), limitsFields...)
	if err != nil {
		return limitsNow{}, err
	}
	return readLimitsNow(id, r)
}

// limitsFields are the fields of a session's hash that limitsNow has.
var limitsFields = []string{"a", "r", "pa", "pg", "ma", "mv", "gb", "x", "sh", "v", "h", "ml", "mp"}

func readLimitsNow(id uuid.UUID, r *reply) (limitsNow, error) {
	if r.Values[0] == nil {
		return limitsNow{}, ErrUnknownSession
	}
	l := limitsNow{
		id: id, agent: r.ID(0), flags: r.Optional(1), maxActions: r.Number(4), maxValue: kernel.MoneyAt(r, 5), expires: r.Time(7),
		narrowed: cmp.Or(r.Optional(8), "0"), used: kernel.MoneyAt(r, 9) + money.MicroUSD(r.NumberOr0(10)),
		maxLease: r.NumberOr0(11), perAction: perActionAt(r, 12),
	}
	if b := budgetAt(r, 6); b.maxValue > 0 {
		l.maxValue = b.maxValue
	}
	if r.Optional(2) != "" {
		l.above = place{kernel.IDOrNilAt(r, 2), r.ID(3)}
	}
	return l, r.Err
}

// goal returns what the limits are to become.
func (l limitsNow) goal(n NewLimits) (actions int64, value money.MicroUSD) {
	actions, value = l.maxActions, l.maxValue
	if n.MaxActions != nil {
		actions = *n.MaxActions
	}
	if n.MaxValue != nil {
		value = *n.MaxValue
	}
	if n.AddActions != nil {
		actions += *n.AddActions
	}
	if n.AddValue != nil {
		value += *n.AddValue
	}
	return actions, value
}

// raisesOwn says whether a limit is raised of which nothing is set aside: the parent's bounds it all the same.
func (l limitsNow) raisesOwn(n NewLimits) bool {
	if n.MaxLease != nil && *seconds(n.MaxLease) > l.maxLease {
		return true
	}
	to := n.PerAction
	return to.Given && l.perAction != nil && (to.Value == nil || *to.Value > int64(*l.perAction))
}

// needing adds to the refusal of a change how much it would have raised the limits.
func (l limitsNow) needing(n NewLimits, err error) error {
	actions, value := l.goal(n)
	return Needing(err, max(actions-l.maxActions, 0), max(value-l.maxValue, 0))
}

// onlyAsks stands for a grant when nothing is granted yet, and the script is to say whether anything else refuses the change.
const onlyAsks = "-"

// asksFirst says whether a change that raises a limit may be refused for something else: by the budget's organization, which
// the session may not belong to, or by another limit that it lowers. Then nothing is to be set aside for it, because that comes back only
// when the session closes.
func (l limitsNow) asksFirst(n NewLimits) bool {
	actions, value := l.goal(n)
	if l.above == (place{}) {
		return value > l.maxValue && (l.budgeted || strings.Contains(l.flags, keptAbove))
	}
	return n.Observes == nil && (n.MaxActions != nil || n.MaxValue != nil) && (actions > l.maxActions || value > l.maxValue)
}

// grantAbove raises the part of a session to what its limits are to become, and returns the grant as change_limits.lua takes it, ""
// for a change that needs none.
func (s *Store) grantAbove(ctx context.Context, act kernel.Actor, at limitsNow, n NewLimits) (string, error) {
	actions, value := at.goal(n)
	switch {
	case actions > MostActions || value > MostValue: // the script says so
		return "", nil
	case at.above != (place{}):
		if actions <= at.maxActions && value <= at.maxValue && n.Lifetime == nil && !(n.Observes != nil && *n.Observes) && !at.raisesOwn(n) {
			return "", nil
		}
		if raises := actions > at.maxActions || value > at.maxValue; raises && n.Observes != nil && *n.Observes {
			// First without the raise: where the parent enforces, the change is refused, and nothing may be set aside.
			granted, err := s.grantByParent(ctx, act, at, at.maxActions, at.maxValue, n)
			if err != nil || !strings.HasSuffix(granted, parentObserves) {
				return granted, err
			}
		}
		return s.grantByParent(ctx, act, at, actions, value, n)
	case value > at.maxValue && (at.budgeted || strings.Contains(at.flags, keptAbove)):
		return s.grantByBudget(ctx, act, at, value)
	case (n.Lifetime != nil || actions > at.maxActions) && strings.Contains(at.flags, keptAbove):
		return fmt.Sprintf("%d %d %d 0", int64(MostActions), int64(at.maxValue), maxTime), nil
	}
	return "", nil
}

// parentObserves ends a grant when the child may observe.
const parentObserves = "o"

// maxTime is after every expiry, in ms since 1970.
const maxTime = 1 << 52

func (s *Store) grantByParent(ctx context.Context, act kernel.Actor, at limitsNow, actions int64, value money.MicroUSD, n NewLimits) (string, error) {
	above := ownActor(act.Organization, at.above.agent)
	above.Flow = act.Flow
	keys := []string{s.keys.Agent(above.Agent), s.keys.Session(above.Agent, at.above.session), s.keys.Parts(above.Agent, at.above.session),
		s.keys.Events(above.Agent)}
	r, err := s.repeatForRoom(ctx, above, at.above.session, nil, func() (*reply, error) {
		return s.client.Run(ctx, above.Flow, raisePart, keys, act.Organization, above.Agent, at.id,
			max(actions, at.maxActions), int64(max(value, at.maxValue)), s.core.Audit(ctx, act), orEmpty(milliseconds(n.Lifetime)),
			orEmpty(seconds(n.MaxLease)), n.PerAction.sessionText())
	})
	if err == kernel.ErrGivenUp { // it is closed, so it is not active
		return "", nil
	}
	if err != nil {
		return "", asOfParent(above, at.above.session, kernel.NothingVisible(err))
	}
	expires := r.Number(0)
	return fmt.Sprintf("%d %d %d %s%s", max(actions, at.maxActions), int64(max(value, at.maxValue)), expires, at.narrowed, r.Text(1)), r.Err
}

// grantByBudget reserves what a root session's value is to become, and what it has used beyond that if it has observed.
func (s *Store) grantByBudget(ctx context.Context, act kernel.Actor, at limitsNow, value money.MicroUSD) (string, error) {
	o := act.Organization
	value = max(value, at.used)
	keys := []string{s.keys.OrganizationBudget(o), s.keys.Reservations(o), s.keys.ReservationLooks(o), s.keys.OrganizationClosed(o), s.keys.Events(o)}
	raise := func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, raiseReservation, keys, at.id, at.agent, int64(value), s.core.Audit(ctx, act))
	}
	r, err := raise()
	if kernel.IsBudgetExhausted(err) && s.settleBelow(ctx, o, place{}) {
		r, err = raise()
	}
	if err != nil {
		return "", kernel.NothingVisible(err)
	}
	if r.Text(0) == "" { // there is no budget, and there was none
		return "", r.Err
	}
	return fmt.Sprintf("%d %d %d 0", int64(MostActions), int64(value), maxTime), r.Err
}
