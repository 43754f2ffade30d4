package redisstore

import (
	"context"

	"github.com/google/uuid"
)

// loadAgents returns the agents with these ids, in their order, with nil for one that does not exist or belongs to another
// organization. fields are agentFields or listedAgentFields.
func (s *Store) loadAgents(ctx context.Context, organization uuid.UUID, ids []uuid.UUID, fields []string) ([]*Agent, error) {
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(ids, s.keys.agent), fields...)
	if err != nil {
		return nil, err
	}
	agents := make([]*Agent, len(ids))
	for i, r := range replies {
		if r.Optional(agentOrganization) != string(organization[:]) {
			continue
		}
		agent, err := readAgent(organization, ids[i], r)
		if err != nil {
			return nil, err
		}
		agents[i] = &agent
	}
	return agents, nil
}
