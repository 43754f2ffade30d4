package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// PreState returns the pre-state of a transaction of an agent of the organization as it was given, "" for a transaction that is
// forgotten.
func (s *Store) PreState(ctx context.Context, organization, agent, transaction uuid.UUID) (string, error) {
	answer, err := s.client.Call(ctx, flow{Owner: organization}, reads, "hmget", s.keys.transaction(agent, transaction), "a", "ps")
	if err != nil {
		return "", err
	}
	r := &reply{Values: []any{answer}}
	fields := r.List(0)
	if fields.Err != nil || fields.Optional(0) != string(agent[:]) {
		return "", fields.Err
	}
	return fields.Optional(1), fields.Err
}
