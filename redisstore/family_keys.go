package redisstore

import (
	"time"

	"github.com/google/uuid"
)

func (s *Store) familyKeys(agent, family uuid.UUID) []string {
	return []string{s.keys.agent(agent), s.keys.family(agent, family), s.keys.events(agent), s.keys.agentFamilies(agent)}
}

// clockLeeway extends the record of a revocation so that it outlives the family's access tokens in spite of clocks that
// differ: two hours behind to two hours ahead, and a step of Redis's clock by one more.
const clockLeeway = 5 * time.Hour

// revocationLifetime is how long Redis records a family as revoked, in ms. Access tokens expire by the service's clock, the
// record by Redis's.
func (s *Store) revocationLifetime() int64 {
	return (s.config.AccessLifetime + clockLeeway).Milliseconds()
}
