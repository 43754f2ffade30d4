package redisstore

import (
	"cmp"
	"context"
	"sync"

	"github.com/google/uuid"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

var (
	checkDelegated = kernel.NewMergedScript("identity/check_delegated", reads)
	checkBelonging = kernel.NewScript("kernel/check_belonging", reads)
)

// CheckDelegated returns which scopes the agents of a delegated token have left, while it is live, none of them is suspended, and
// each that acts may still delegate. It asks about all of them at once. Errors: ErrInvalidToken,
// *AgentSuspendedError, *SessionSuspendedError.
func (s *Store) CheckDelegated(ctx context.Context, t *DelegatedToken) ([]ScopesLeft, error) {
	left, errs := make([]ScopesLeft, 1+len(t.Actors)), make([]error, 1+len(t.Actors))
	var group sync.WaitGroup
	for i, actor := range t.Actors {
		group.Go(func() {
			defer redisclient.RecoverTo(func(err error) { errs[1+i] = err })
			left[1+i], errs[1+i] = s.VerifyToken(ctx, actor)
			if errs[1+i] == nil && !left[1+i].May(scopeDelegate) {
				errs[1+i] = ErrInvalidToken
			}
		})
	}
	left[0], errs[0] = s.checkDelegatedIn(ctx, t)
	group.Wait()
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	return left, nil
}

// checkDelegatedIn is CheckDelegated for the session and its agent.
func (s *Store) checkDelegatedIn(ctx context.Context, t *DelegatedToken) (ScopesLeft, error) {
	act := t.Actor()
	r, err := s.client.Run(ctx, act.Flow, checkDelegated, []string{s.core.AgentKey(act), s.keys.Session(t.Agent, t.Session)},
		t.Organization, t.Agent, act.Family)
	if err != nil {
		return ScopesLeft{}, act.ErrorFor(err)
	}
	return scopesLeftAt(r, 0), r.Err
}

// CheckTransaction returns ErrUnknownTransaction unless the transaction is of the delegated token's session.
func (s *Store) CheckTransaction(ctx context.Context, t *DelegatedToken, id uuid.UUID) error {
	return s.checkBelonging(ctx, t, s.keys.Transaction(t.Agent, id), ErrUnknownTransaction)
}

// CheckLease returns ErrUnknownLease unless the lease is of the delegated token's session.
func (s *Store) CheckLease(ctx context.Context, t *DelegatedToken, id uuid.UUID) error {
	return s.checkBelonging(ctx, t, s.keys.Lease(t.Agent, id), ErrUnknownLease)
}

func (s *Store) checkBelonging(ctx context.Context, t *DelegatedToken, key string, unknown error) error {
	_, err := s.client.Run(ctx, t.Flow(), checkBelonging, []string{key}, t.Session)
	if err == ErrUnknownSession {
		return unknown
	}
	return err
}

// DelegatedToken is an access token with which other agents act for a session's agent, in that session alone (RFC 8693). Each
// use checks it in Redis, because it dies with the session and with every agent that stands in it.
type DelegatedToken struct {
	AccessToken               // of the session's agent, with a family of its own and its Session
	Actors      []AccessToken // who acts, by which token: first who asked for this one
}
