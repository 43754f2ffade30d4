package redisstore

import (
	"context"
	"strings"

	"github.com/google/uuid"
)

// loadAgents returns the agents with these ids, in their order, with nil for one that does not exist or belongs to another
// organization.
func (s *Store) loadAgents(ctx context.Context, organization uuid.UUID, ids []uuid.UUID) ([]*Agent, error) {
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(ids, s.keys.agent), "organization", "name", "scopes", "description", "metadata", "created", "revoked",
		"restricted", "max_open_sessions")
	if err != nil {
		return nil, err
	}
	agents := make([]*Agent, len(ids))
	for i, r := range replies {
		if r.Optional(0) != string(organization[:]) {
			continue
		}
		agents[i] = &Agent{
			ID: ids[i], Organization: organization, Name: r.Text(1), Scopes: strings.Fields(r.Text(2)),
			Description: r.Optional(3), Metadata: r.Optional(4), Created: r.Time(5), Revoked: r.TimeOrZero(6),
		}
		agents[i].Limits, _ = readAgentLimits(r, r.Optional(7), r.Optional(8))
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return agents, nil
}
