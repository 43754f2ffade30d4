package records

import (
	"context"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// PreState returns the pre-state of a transaction of an agent of the organization as it was given, "" for a transaction that is
// forgotten.
func (s *Reader) PreState(ctx context.Context, organization, agent, transaction uuid.UUID) (string, error) {
	answer, err := s.core.Client.Call(ctx, redisclient.Flow{Owner: organization}, redisclient.Reads, "hmget", s.core.Keys.Transaction(agent, transaction), "a", "ps")
	if err != nil {
		return "", err
	}
	r := &redisclient.Reply{Values: []any{answer}}
	fields := r.List(0)
	if fields.Err != nil || fields.Optional(0) != string(agent[:]) {
		return "", fields.Err
	}
	return fields.Optional(1), fields.Err
}
