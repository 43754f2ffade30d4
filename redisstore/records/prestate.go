package records

import (
	"context"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// PreState returns the pre-state of a transaction of an agent of the organization as it was given, "" for a transaction that is
// forgotten.
func (s *Reader) PreState(ctx context.Context, organization, agent, transaction uuid.UUID) (string, error) {
	r, err := s.core.Client.Fields(ctx, redisclient.Flow{Owner: organization}, s.core.Keys.Transaction(agent, transaction), "a", "ps")
	if err != nil || r.Optional(0) != string(agent[:]) {
		return "", err
	}
	return r.Optional(1), r.Err
}
