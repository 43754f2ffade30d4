package redisstore

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/redisclient"
)

// owners remembers which agents lists have met, by their organization and cell. The agent that it names for a session is only
// likely: cells are drawn at random, and two agents may have the same. Readers check.
type owners struct {
	met *lru.Cache[ownersCell, uuid.UUID]
}

type ownersCell struct {
	organization uuid.UUID
	cell         uint16
}

// maxOwners bounds the memory for owners to about 1 MiB. One that is forgotten costs one more round trip.
const maxOwners = 1 << 13

func newOwners() owners {
	met, err := lru.New[ownersCell, uuid.UUID](maxOwners)
	if err != nil {
		panic(err) // the size is not positive
	}
	return owners{met}
}

// likely returns the agents that may own what has these ids, without duplicates.
func (o owners) likely(organization uuid.UUID, ids []uuid.UUID) []uuid.UUID {
	var agents []uuid.UUID
	last := -1
	for _, id := range ids {
		if cell := cellOf(id); int(cell) != last {
			last = int(cell)
			if agent, known := o.met.Get(ownersCell{organization, cell}); known && !slices.Contains(agents, agent) {
				agents = append(agents, agent)
			}
		}
	}
	return agents
}

func (o owners) note(organization uuid.UUID, agents []uuid.UUID) {
	for _, agent := range agents {
		o.met.Add(ownersCell{organization, cellOf(agent)}, agent)
	}
}

// revocations are the agents of an organization, with the time at which each was revoked, zero for never.
type revocations map[uuid.UUID]time.Time

// agentsToRead says what revocations.take takes of agents.
func (s *Store) agentsToRead(agents []uuid.UUID) redisclient.Hashes {
	return redisclient.Hashes{Keys: keysOf(agents, s.keys.agent), Fields: []string{"organization", "revoked", "scopes"}}
}

// take adds those of the agents that are the organization's. One without scopes, of which an agent may have none, is an error.
func (v revocations) take(organization uuid.UUID, agents []uuid.UUID, replies []*reply) error {
	for i, agent := range agents {
		r := replies[i]
		if r.Optional(0) == string(organization[:]) {
			v[agent] = r.TimeOrZero(1)
			r.Text(2)
		}
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// readAgents adds those of the agents that are the organization's, by a read of their own.
func (s *Store) readAgents(ctx context.Context, organization uuid.UUID, agents []uuid.UUID, v revocations) error {
	read := s.agentsToRead(agents)
	replies, err := s.client.ReadAll(ctx, flow{Owner: organization}, read.Keys, read.Fields...)
	if err != nil {
		return err
	}
	return v.take(organization, agents, replies)
}

// agentsOf returns the agents of the objects, without duplicates.
func agentsOf(objects []*reply) []uuid.UUID {
	var agents []uuid.UUID
	for _, r := range objects {
		if r.Optional(0) == "" {
			continue
		}
		if agent := r.ID(0); !slices.Contains(agents, agent) {
			agents = append(agents, agent)
		}
	}
	return agents
}
