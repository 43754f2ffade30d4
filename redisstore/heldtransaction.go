package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"remit/money"
	"remit/redisstore/internal/kernel"
)

// HeldTransaction names a transaction that the metering gateway holds: it was begun with HeldByGateway. No agent settles or changes
// it. The gateway does, by the methods of Store that take its name, whatever became of the agent, its tokens and its session meanwhile. They are in
// process: no request of the API reaches them. An API key may roll it back while it is pending, as any other.
type HeldTransaction struct {
	Organization, Agent, ID uuid.UUID

	begun *Transaction // nil: a settlement reads it first
}

// HeldAs names a transaction by what Begin returned, so that its settlement need not read it.
func HeldAs(organization uuid.UUID, begun Transaction) HeldTransaction {
	return HeldTransaction{organization, begun.Agent, begun.ID, &begun}
}

// factsOf returns the immutable fields of what the gateway holds.
func (s *Store) factsOf(ctx context.Context, f flow, h HeldTransaction) (Transaction, error) {
	if h.begun == nil {
		return s.transactionFacts(ctx, f, h.Agent, h.ID)
	}
	facts := *h.begun
	facts.SessionLeft, facts.WouldRefuse = 0, ""
	return facts, nil
}

// ErrNotHeldSo refuses to begin what the gateway could not settle for sure.
var ErrNotHeldSo = errors.New("what the gateway holds is in a session, spent when it expires, and not reversible")

// CommitHeld commits what the gateway holds with what it cost, nil for what is held. Cost beyond the session's limit is overage, and
// what the expiry of the hold has spent is corrected, as Commit does. It happens once: any later settlement changes nothing, and returns
// the status that was reached with Repeated. Errors: ErrUnknownTransaction, also if the gateway does not hold it.
func (s *Store) CommitHeld(ctx context.Context, h HeldTransaction, cost *money.MicroUSD) (Transaction, error) {
	if cost != nil && (*cost < 0 || *cost > MostValue) {
		return Transaction{}, fmt.Errorf("no transaction costs %s USD", *cost)
	}
	act := kernel.Gateway(h.Organization, h.Agent)
	facts, err := s.factsOf(ctx, act.Flow, h)
	if err != nil {
		return Transaction{}, err
	}
	t, err := s.commit(ctx, act, facts, Commit{Value: cost})
	return s.orSettled(ctx, h, t, err)
}

// RollbackHeld rolls back what the gateway holds, because nothing was sent. If the hold was spent meanwhile, because it has expired, it
// commits 0. It happens once, as CommitHeld. Errors: ErrUnknownTransaction, also if the gateway does not hold it.
func (s *Store) RollbackHeld(ctx context.Context, h HeldTransaction, reason string) (Transaction, error) {
	act := kernel.Gateway(h.Organization, h.Agent)
	facts, err := s.factsOf(ctx, act.Flow, h)
	if err != nil {
		return Transaction{}, err
	}
	t, err := s.rollback(ctx, act, facts, Rollback{Reason: reason})
	if err == ErrNotReversible { // committed, by its expiry or by an earlier settlement
		return s.CommitHeld(ctx, h, new(money.MicroUSD))
	}
	return s.orSettled(ctx, h, t, err)
}

// RenewHeld makes the hold of a pending transaction last so long from now. What it holds stays. Errors: ErrUnknownTransaction, also if
// the gateway does not hold it, *NotPendingError.
func (s *Store) RenewHeld(ctx context.Context, h HeldTransaction, lifetime time.Duration) (Transaction, error) {
	return s.changeHold(ctx, kernel.Gateway(h.Organization, h.Agent), nil, h.ID, NewHold{Lifetime: &lifetime})
}

// orSettled returns the outcome of a settlement by the gateway: the transaction as it stands if it was settled before.
func (s *Store) orSettled(ctx context.Context, h HeldTransaction, t Transaction, err error) (Transaction, error) {
	var before *NotPendingError
	if !errors.As(err, &before) {
		return t, err
	}
	act := ownActor(h.Organization, h.Agent)
	facts, err := s.transactionFacts(ctx, act.Flow, h.Agent, h.ID)
	if err != nil {
		return Transaction{}, err
	}
	if t, err = s.readTransaction(ctx, act, facts); err != nil {
		return Transaction{}, err
	}
	t.Repeated = true
	return t, nil
}
