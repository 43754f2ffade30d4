package redisstore

import (
	"time"

	"github.com/google/uuid"
)

func (s *Store) familyKeys(agent, family uuid.UUID) []string {
	return []string{s.keys.agent(agent), s.keys.family(agent, family), s.keys.events(agent), s.keys.agentFamilies(agent)}
}

// clockLeeway is how far the clocks of Redis and of the service may be apart, and Redis's may step, while a family stays
// revoked: from two hours behind to two hours ahead, and one more.
const clockLeeway = 5 * time.Hour

// revocationLifetime is how long a family stays marked revoked, in ms. Access tokens end by the service's clock, marks by
// Redis's.
func (s *Store) revocationLifetime() int64 {
	return (s.config.AccessLifetime + clockLeeway).Milliseconds()
}
