package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// A session sets parts of its limits aside for its children, and an organization's budget for its root sessions. Each step is
// one script in one cell. docs/budgets.md describes the protocol and every point at which it can break.

// A step is done when a replica has it, if writes are to be confirmed, for the next one builds on it in another cell. A part that comes
// back from the dead is dropped again.
var (
	closeBooks      = newScript("budgets/close_books", writes)
	takePart        = newScript("budgets/take_part", writes)
	takeReservation = newScript("budgets/take_reservation", writes).Watched(wroteThreshold(0))
	releaseRecord   = newScript("kernel/release_record", writes)
	dropPart        = newScript("budgets/drop_part", bestEffort)
	dropReservation = newScript("budgets/drop_reservation", bestEffort)
)

const (
	// firstLook is how long after its part was set aside a session may still be on its way. Afterwards the service looks whether
	// it exists, and refuses its creation if not.
	firstLook = 30 * time.Second
	// createdWithin is how long after its part was set aside a session may be created, by the clock of its Redis.
	createdWithin = 10 * time.Minute
	// refusedFor is how long an id stays refused. It exceeds createdWithin by more than clocks of servers differ.
	refusedFor = 24 * time.Hour
	// settleTime bounds the settlement that follows an end, because the response waits for it.
	settleTime = time.Second
	// stepsAtOnce is how many sessions of a tree one request changes at once.
	stepsAtOnce = 64
)

// place is a session and its agent. As what keeps another session's books, the zero place is the organization's budget.
type place struct{ session, agent uuid.UUID }

// ownActor is the service as it acts in an organization by itself.
func ownActor(organization, agent uuid.UUID) actor {
	return actor{organization: organization, agent: agent, flow: flow{Owner: organization}}
}

// closedBooks is what a session has used.
type closedBooks struct {
	state                    string // open, closed, refused or unkept, or why it is over while children are not settled
	actions                  int64
	value, overage, refunded money.MicroUSD
	above                    place
}

const (
	booksOpen    = "open"
	booksClosed  = "closed"
	booksRefused = "refused"
	booksUnkept  = "unkept" // over, and in no budget
	// The session is over, with children that are not settled.
	booksOfEnded   = "ended"
	booksOfExpired = "expired"
	booksOfRevoked = "revoked"
)

// isWaiting says whether a session with books in this state is over and waits for its children.
func isWaiting(state string) bool {
	return state == booksOfEnded || state == booksOfExpired || state == booksOfRevoked
}

// mayChange says whether the usage is not final yet.
func (b *closedBooks) mayChange() bool { return b.state == booksOpen || isWaiting(b.state) }

func (s *Store) closeBooks(ctx context.Context, organization uuid.UUID, p place) (closedBooks, error) {
	act := ownActor(organization, p.agent)
	keys := []string{s.keys.agent(p.agent), s.keys.session(p.agent, p.session), s.keys.holds(p.agent, p.session),
		s.keys.leases(p.agent, p.session), s.keys.looks(p.agent, p.session), s.keys.events(p.agent)}
	r, err := s.releasingDueHolds(ctx, act, p.session, func() (*reply, error) {
		return s.client.Run(ctx, act.flow, closeBooks, keys, refusedFor.Milliseconds(), s.audit(ctx, act))
	})
	if err != nil {
		return closedBooks{}, err
	}
	b := closedBooks{state: r.Text(0), actions: r.Number(1), value: moneyAt(r, 2), overage: moneyAt(r, 3), refunded: moneyAt(r, 4)}
	if b.above.session = idOrNilAt(r, 5); b.above.session != uuid.Nil {
		b.above.agent = r.ID(6)
	}
	return b, r.Err
}

// settleOver closes the books of a session and gives its part back, if it is over. It says whether it did. Any step may fail:
// the next settlement goes on.
func (s *Store) settleOver(ctx context.Context, organization uuid.UUID, p place) (bool, error) {
	state, err := s.settleOwn(ctx, organization, p)
	return state == booksClosed, err
}

// settleOwn is settleOver, and returns the state of the books.
func (s *Store) settleOwn(ctx context.Context, organization uuid.UUID, p place) (string, error) {
	books, err := s.closeBooks(ctx, organization, p)
	if err != nil || books.state != booksClosed {
		return books.state, err
	}
	return books.state, s.takeBack(ctx, organization, books.above, p, &books)
}

// settlePart is settleOver for a part of what is above. taken says that the usage has replaced the part already. It returns the
// state of the books, "" for a part that was taken.
func (s *Store) settlePart(ctx context.Context, organization uuid.UUID, above, p place, taken bool) (string, error) {
	if taken {
		return "", s.takeBack(ctx, organization, above, p, nil)
	}
	books, err := s.closeBooks(ctx, organization, p)
	if err != nil || books.mayChange() {
		return books.state, err
	}
	return books.state, s.takeBack(ctx, organization, above, p, &books)
}

// takeBack takes what the books say, unless they are nil, releases the record and drops the part. If it was the last of a
// session that is over itself, that is settled too.
func (s *Store) takeBack(ctx context.Context, organization uuid.UUID, above, p place, books *closedBooks) error {
	if books != nil {
		if err := s.takeUsage(ctx, organization, above, p, *books); err != nil {
			return err
		}
	}
	act := ownActor(organization, p.agent)
	record := []string{s.keys.session(p.agent, p.session), s.keys.sessionTransactions(p.agent, p.session), s.keys.closedChildren(p.agent, p.session)}
	if _, err := s.client.Run(ctx, act.flow, releaseRecord, record, max(s.config.Retention, refusedFor).Milliseconds()); err != nil {
		return err
	}
	if above == (place{}) {
		_, err := s.client.Run(ctx, act.flow, dropReservation,
			[]string{s.keys.reservations(organization), s.keys.reservationLooks(organization), s.keys.organizationOpen(organization),
				s.keys.organizationClosed(organization)}, p.session)
		return err
	}
	keys := []string{s.keys.session(above.session, above.session), s.keys.parts(above.agent, above.session), s.keys.looks(above.agent, above.session),
		s.keys.closedChildren(above.agent, above.session), s.keys.sessionTransactions(above.session, above.session)}
	r, err := s.client.Run(ctx, act.flow, dropPart, keys, p.session, s.config.Retention.Milliseconds())
	if err != nil {
		return err
	}
	if r.Text(0) != "" {
		_, err = s.settleOver(ctx, organization, above)
	}
	return err
}

func (s *Store) takeUsage(ctx context.Context, organization uuid.UUID, above, p place, b closedBooks) error {
	act := ownActor(organization, above.agent)
	if above == (place{}) {
		keys := []string{s.keys.organizationBudget(organization), s.keys.reservations(organization), s.keys.events(organization)}
		_, err := s.client.Run(ctx, act.flow, takeReservation, keys, p.session, int64(b.value), s.auditAs(ctx, actorKey))
		return err
	}
	keys := []string{s.keys.session(above.session, above.session), s.keys.parts(above.agent, above.session), s.keys.events(above.agent),
		s.keys.agent(above.agent)}
	_, err := s.client.Run(ctx, act.flow, takePart, keys, p.session, b.actions, int64(b.value), int64(b.overage),
		int64(b.refunded), s.audit(ctx, act))
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

// eachOf calls do for 0 to n−1, some at once, and returns one of their errors.
func eachOf(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	turns := make(chan struct{}, stepsAtOnce)
	for i := range n {
		turns <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		group.Go(func() {
			defer func() { <-turns }()
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
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
	_ = s.takeBack(ctx, organization, place{}, p, &closedBooks{}) // the creation has run, so its id needs no tombstone
}
