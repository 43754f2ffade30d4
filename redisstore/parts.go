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

// A session sets parts of its limits aside for its children, and an organization's budget for its root sessions. Each step is
// one script in one cell. lua/budgets/README.md describes the protocol and every point at which it can break.

// A step is done when a replica has it, if writes are to be confirmed, for the next one builds on it in another cell. A part that comes
// back from the dead is dropped again.
var (
	closeUsage      = kernel.NewScript("budgets/close_usage", writes)
	takePart        = kernel.NewScript("budgets/take_part", writes)
	takeReservation = kernel.NewScript("budgets/take_reservation", writes).Watched(wroteThreshold(0))
	releaseRecord   = kernel.NewScript("kernel/release_record", writes)
	dropPart        = kernel.NewScript("budgets/drop_part", bestEffort)
	dropReservation = kernel.NewScript("budgets/drop_reservation", bestEffort)
)

const (
	// onItsWay is how long after its part was set aside a session may still be on its way. Afterwards one that does not exist is
	// refused. One that exists and is over gives its part back at any time.
	onItsWay = 30 * time.Second
	// createdWithin is how long after its part was set aside a session may be created, by the clock of its Redis.
	createdWithin = 10 * time.Minute
	// refusedFor is how long an id stays refused. It exceeds createdWithin by more than clocks of servers differ.
	refusedFor = 24 * time.Hour
	// settleTime bounds the settlement that follows an end, because the response waits for it.
	settleTime = time.Second
	// stepsAtOnce is how many sessions of a tree one request changes at once.
	stepsAtOnce = 64
)

// place is a session and its agent. As what takes a session's usage, the zero place is the organization's budget.
type place struct{ session, agent uuid.UUID }

// ownActor is the service as it acts in an organization by itself.
func ownActor(organization, agent uuid.UUID) kernel.Actor {
	return kernel.Actor{Organization: organization, Agent: agent, Flow: flow{Owner: organization}}
}

// finalUsage is what a session has used.
type finalUsage struct {
	state                    string // open, closed, refused or unkept, or why it is over while children are not settled
	actions                  int64
	value, overage, refunded money.MicroUSD
	above                    place
}

const (
	usageOpen    = "open"
	usageClosed  = "closed"
	usageRefused = "refused"
	usageUnkept  = "unkept" // over, and in no budget
	// The session is over, with children that are not settled.
	usageOfEnded   = "ended"
	usageOfExpired = "expired"
	usageOfRevoked = "revoked"
)

// isWaiting says whether a session in this state is over and waits for its children.
func isWaiting(state string) bool {
	return state == usageOfEnded || state == usageOfExpired || state == usageOfRevoked
}

// mayChange says whether the usage is not final yet.
func (b *finalUsage) mayChange() bool { return b.state == usageOpen || isWaiting(b.state) }

// missing says what becomes of an id without a session.
type missing bool

const (
	refusesMissing missing = true  // it is refused from now on
	awaitsMissing  missing = false // the session may still be created, and is open
)

func (s *Store) closeUsage(ctx context.Context, organization uuid.UUID, p place, none missing) (finalUsage, error) {
	refused := ""
	if none == refusesMissing {
		refused = strconv.FormatInt(refusedFor.Milliseconds(), 10)
	}
	act := ownActor(organization, p.agent)
	keys := []string{s.keys.Agent(p.agent), s.keys.Session(p.agent, p.session), s.keys.Holds(p.agent, p.session),
		s.keys.Leases(p.agent, p.session), s.keys.Looks(p.agent, p.session), s.keys.Events(p.agent)}
	r, err := s.repeatWhileDue(ctx, act, p.session, func() (*reply, error) {
		return s.client.Run(ctx, act.Flow, closeUsage, keys, refused, s.core.Audit(ctx, act))
	})
	if err != nil {
		return finalUsage{}, err
	}
	b := finalUsage{state: r.Text(0), actions: r.Number(1), value: kernel.MoneyAt(r, 2), overage: kernel.MoneyAt(r, 3), refunded: kernel.MoneyAt(r, 4)}
	if b.above.session = kernel.IDOrNilAt(r, 5); b.above.session != uuid.Nil {
		b.above.agent = r.ID(6)
	}
	return b, r.Err
}

// settleOwn closes a session and gives its part back, if it is over, and returns the session's state. Any step may fail: the next
// settlement goes on.
func (s *Store) settleOwn(ctx context.Context, organization uuid.UUID, p place) (string, error) {
	final, err := s.closeUsage(ctx, organization, p, refusesMissing)
	if err != nil || final.state != usageClosed {
		return final.state, err
	}
	return final.state, s.takeBack(ctx, organization, final.above, p, &final)
}

// settlePart is settleOwn for a part of what is above. taken says that the usage has replaced the part already. It returns the
// session's state, "" for a part that was taken.
func (s *Store) settlePart(ctx context.Context, organization uuid.UUID, above, p place, taken bool, none missing) (string, error) {
	if taken {
		return "", s.takeBack(ctx, organization, above, p, nil)
	}
	final, err := s.closeUsage(ctx, organization, p, none)
	if err != nil || final.mayChange() {
		return final.state, err
	}
	return final.state, s.takeBack(ctx, organization, above, p, &final)
}

// takeBack takes the final usage, unless that is nil, releases the record and drops the part. If it was the last of a
// session that is over itself, that is settled too.
func (s *Store) takeBack(ctx context.Context, organization uuid.UUID, above, p place, final *finalUsage) error {
	if final != nil {
		if err := s.takeUsage(ctx, organization, above, p, *final); err != nil {
			return err
		}
	}
	act := ownActor(organization, p.agent)
	record := []string{s.keys.Session(p.agent, p.session), s.keys.SessionTransactions(p.agent, p.session), s.keys.ClosedChildren(p.agent, p.session)}
	if _, err := s.client.Run(ctx, act.Flow, releaseRecord, record, max(s.config.Retention, refusedFor).Milliseconds()); err != nil {
		return err
	}
	if above == (place{}) {
		_, err := s.client.Run(ctx, act.Flow, dropReservation,
			[]string{s.keys.Reservations(organization), s.keys.ReservationLooks(organization), s.keys.OrganizationOpen(organization),
				s.keys.OrganizationClosed(organization)}, p.session)
		return err
	}
	keys := []string{s.keys.Session(above.session, above.session), s.keys.Parts(above.agent, above.session), s.keys.Looks(above.agent, above.session),
		s.keys.ClosedChildren(above.agent, above.session), s.keys.SessionTransactions(above.session, above.session)}
	r, err := s.client.Run(ctx, act.Flow, dropPart, keys, p.session, s.config.Retention.Milliseconds())
	if err != nil {
		return err
	}
	if r.Text(0) != "" {
		_, err = s.settleOwn(ctx, organization, above)
	}
	return err
}

func (s *Store) takeUsage(ctx context.Context, organization uuid.UUID, above, p place, b finalUsage) error {
	act := ownActor(organization, above.agent)
	if above == (place{}) {
		keys := []string{s.keys.OrganizationBudget(organization), s.keys.Reservations(organization), s.keys.Events(organization)}
		_, err := s.client.Run(ctx, act.Flow, takeReservation, keys, p.session, int64(b.value), s.core.AuditAs(ctx, kernel.ActorKey))
		return err
	}
	keys := []string{s.keys.Session(above.session, above.session), s.keys.Parts(above.agent, above.session), s.keys.Events(above.agent),
		s.keys.Agent(above.agent)}
	_, err := s.client.Run(ctx, act.Flow, takePart, keys, p.session, b.actions, int64(b.value), int64(b.overage),
		int64(b.refunded), s.core.Audit(ctx, act))
	return err
}

// readPart reads a part as budgets/include/parts.lua writes it.
func readPart(text string) (agent uuid.UUID, taken bool, err error) {
	if len(text) < len(agent) {
		return uuid.Nil, false, fmt.Errorf("%w: %q is no part", errReply, text)
	}
	copy(agent[:], text)
	return agent, text[len(agent):] == "taken", nil
}

// eachOf is kernel.EachOf for the sessions of a tree.
func eachOf(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	return kernel.EachOf(ctx, n, stepsAtOnce, do)
}

// deadline is until when a session whose value a budget reserved may be created, as create_session.lua takes it.
func (r *rootSession) deadline() string {
	if r == nil {
		return ""
	}
	reserved, err := strconv.ParseInt(r.reserved, 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(reserved+createdWithin.Milliseconds(), 10)
}

// giveBackReservation gives back what a session reserved that was not created. Failures are ignored, as by settleBelow.
func (s *Store) giveBackReservation(ctx context.Context, organization uuid.UUID, p place) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer cancel()
	_ = s.takeBack(ctx, organization, place{}, p, &finalUsage{}) // the creation has run, so its id needs no tombstone
}
