package kernel

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
	Met *lru.Cache[OwnersCell, uuid.UUID]
}

// OwnersCell is a cell of an organization.
type OwnersCell struct {
	Organization uuid.UUID
	Cell         uint16
}

// maxOwners bounds the memory for owners to about 1 MiB. One that is forgotten costs one more round trip.
const maxOwners = 1 << 13

func newOwners() owners { return owners{newCache[OwnersCell, uuid.UUID](maxOwners)} }

// Likely returns the agents that may own what has these ids, without duplicates.
func (o owners) Likely(organization uuid.UUID, ids []uuid.UUID) []uuid.UUID {
	var agents []uuid.UUID
	last := -1
	for _, id := range ids {
		if cell := CellOf(id); int(cell) != last {
			last = int(cell)
			if agent, known := o.Met.Get(OwnersCell{organization, cell}); known && !slices.Contains(agents, agent) {
				agents = append(agents, agent)
			}
		}
	}
	return agents
}

// Note remembers agents of the organization.
func (o owners) Note(organization uuid.UUID, agents []uuid.UUID) {
	for _, agent := range agents {
		o.Met.Add(OwnersCell{organization, CellOf(agent)}, agent)
	}
}

// Revocations are the agents of an organization, with the time at which each was revoked, zero for never.
type Revocations map[uuid.UUID]time.Time

// AgentsToRead says what revocations.take takes of agents.
func (s *Core) AgentsToRead(agents []uuid.UUID) redisclient.Hashes {
	return redisclient.Hashes{Keys: Map(agents, s.Keys.Agent), Fields: []string{"organization", "revoked", "scopes"}}
}

// Take adds those of the agents that are the organization's. One without scopes, of which an agent may have none, is an error.
func (v Revocations) Take(organization uuid.UUID, agents []uuid.UUID, replies []*redisclient.Reply) error {
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

// ReadAgents adds those of the agents that are the organization's, by a read of their own.
func (s *Core) ReadAgents(ctx context.Context, organization uuid.UUID, agents []uuid.UUID, v Revocations) error {
	read := s.AgentsToRead(agents)
	replies, err := s.Client.ReadAll(ctx, redisclient.Flow{Owner: organization}, read.Keys, read.Fields...)
	if err != nil {
		return err
	}
	return v.Take(organization, agents, replies)
}

// AgentsOf returns the agents of the objects, without duplicates.
func AgentsOf(objects []*redisclient.Reply) []uuid.UUID {
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
