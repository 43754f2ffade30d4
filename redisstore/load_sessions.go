package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// loadSessionsOf returns a loader that reads sessions first and their agents after, so that it observes every revocation
// acknowledged before the request.
func (s *Store) loadSessionsOf(organization uuid.UUID) func(context.Context, []uuid.UUID, time.Time) ([]*Session, error) {
	return func(ctx context.Context, ids []uuid.UUID, now time.Time) ([]*Session, error) {
		replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(ids, func(id uuid.UUID) string { return s.keys.session(id, id) }), listedFields...)
		if err != nil {
			return nil, err
		}
		states, err := s.loadAgentStates(ctx, organization, replies, now)
		if err != nil {
			return nil, err
		}
		sessions := make([]*Session, len(ids))
		for i, r := range replies {
			state, found := states[r.Optional(0)]
			if !found {
				continue
			}
			state.leases = leaseStateAt(r, sessionLeased, sessionMaxLease)
			session, err := readSession(ids[i], r, state)
			if err != nil {
				return nil, err
			}
			sessions[i] = &session
		}
		return sessions, nil
	}
}

// loadAgentStates returns the states of the sessions' agents by the agent's 16 bytes, without agents of other organizations.
func (s *Store) loadAgentStates(ctx context.Context, organization uuid.UUID, sessions []*reply, now time.Time) (map[string]agentState, error) {
	agents := agentsOf(sessions)
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, keysOf(agents, s.keys.agent), "organization", "revoked", "scopes")
	if err != nil {
		return nil, err
	}
	states := make(map[string]agentState, len(agents))
	for i, agent := range agents {
		r := replies[i]
		if r.Optional(0) == string(organization[:]) {
			states[string(agent[:])] = agentState{agent: agent, now: now, revoked: r.TimeOrZero(1), scopes: r.Text(2)}
		}
		if r.Err != nil {
			return nil, r.Err
		}
	}
	return states, nil
}

// agentsOf returns the agents of the sessions, without duplicates.
func agentsOf(sessions []*reply) []uuid.UUID {
	var agents []uuid.UUID
	for _, r := range sessions {
		if r.Optional(0) == "" {
			continue
		}
		if agent := r.ID(0); !slices.Contains(agents, agent) {
			agents = append(agents, agent)
		}
	}
	return agents
}
