package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// Authorize is Charge, and returns which scopes the session's agent has left.
func (s *Store) Authorize(ctx context.Context, c Caller, session uuid.UUID, charge Charge) (Usage, ScopesLeft, error) {
	r, err := s.charge(ctx, c, session, charge)
	if err != nil {
		return Usage{}, ScopesLeft{}, err
	}
	usage, left := usageAt(r, 0), scopesLeftAt(r, usageScopesLeft)
	return usage, left, r.Err
}

// VerifyProof is VerifyToken for a token that is bound to a key, with a proof of that key, which it uses up. Errors:
// ErrInvalidToken, *AgentSuspendedError, ErrProofUsed, ErrManyProofs.
func (s *Store) VerifyProof(ctx context.Context, t AccessToken, p Proof) (ScopesLeft, error) {
	r, err := s.proveToken(ctx, verifyProof, t, p)
	if err != nil {
		return ScopesLeft{}, err
	}
	return scopesLeftAt(r, 0), r.Err
}
