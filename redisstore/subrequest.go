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
