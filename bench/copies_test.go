package bench

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisstore"
)

// crowd is many sessions of some agents. The service creates the first of each agent; the others are copies, written in Redis,
// that differ only in their ids.
type crowd struct {
	*service
	agents   []agent
	sources  []source
	sessions [][]uuid.UUID // of each agent
}

// source is a session as stored in Redis: its keys, and its entries in indexes.
type source struct {
	id      uuid.UUID
	keys    []kept
	indexes []entry
}

// entry is the member for a session in an index: a prefix of its id.
type entry struct {
	index string
	bytes int
}

type kept struct {
	key, dump string
	ttl       time.Duration
}

// copiesAtOnce is how many sessions one pipeline writes.
const copiesAtOnce = 1000

func newCrowd(tb testing.TB, s *service, agents int) *crowd {
	tb.Helper()
	c := &crowd{service: s, sessions: make([][]uuid.UUID, agents)}
	for range agents {
		c.agents = append(c.agents, s.newAgent(tb))
	}
	for i, a := range c.agents {
		c.sources = append(c.sources, s.readSource(tb, a.session))
		c.sessions[i] = append(c.sessions[i], a.session)
	}
	return c
}

// readSource finds everything that Redis stores for a session.
func (s *service) readSource(tb testing.TB, session uuid.UUID) source {
	tb.Helper()
	found := source{id: session}
	ctx := context.Background()
	scan := s.redis.Scan(ctx, 0, "*", 1000).Iterator()
	for scan.Next(ctx) {
		key := scan.Val()
		if strings.Contains(key, session.String()) {
			dump := must(s.redis.Dump(ctx, key).Result())(tb)
			found.keys = append(found.keys, kept{key, dump, s.redis.PTTL(ctx, key).Val()})
			continue
		}
		for _, bytes := range []int{len(session), len(session) - 2} { // an agent's index omits the cell
			if s.redis.ZScore(ctx, key, string(session[:bytes])).Err() == nil { // an error for other types
				found.indexes = append(found.indexes, entry{key, bytes})
			}
		}
	}
	noError(tb, scan.Err())
	return found
}

// growTo copies until there are that many sessions, the same number of each agent.
func (c *crowd) growTo(tb testing.TB, sessions int) {
	tb.Helper()
	each := sessions / len(c.agents)
	for i, a := range c.agents {
		for missing := each - len(c.sessions[i]); missing > 0; missing = each - len(c.sessions[i]) {
			ids := make([]uuid.UUID, min(missing, copiesAtOnce))
			for j := range ids {
				ids[j] = redisstore.NewID(a.id)
			}
			noError(tb, c.copySession(c.sources[i], ids))
			c.sessions[i] = append(c.sessions[i], ids...)
		}
	}
}

// copySession writes the session again under other ids.
func (s *service) copySession(from source, ids []uuid.UUID) error {
	ctx := context.Background()
	_, err := s.redis.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, id := range ids {
			for _, k := range from.keys {
				p.Restore(ctx, strings.ReplaceAll(k.key, from.id.String(), id.String()), k.ttl, k.dump)
			}
		}
		for _, e := range from.indexes {
			members := make([]redis.Z, len(ids))
			for i, id := range ids {
				members[i] = redis.Z{Member: string(id[:e.bytes])}
			}
			p.ZAdd(ctx, e.index, members...)
		}
		return nil
	})
	return err
}

// any returns one of the sessions and its agent.
func (c *crowd) any() (agent, uuid.UUID) {
	i := rand.N(len(c.agents))
	return c.agents[i], c.sessions[i][rand.N(len(c.sessions[i]))]
}

// charges returns turns that charge random sessions.
func (c *crowd) charges() turns {
	return func([]byte) call {
		a, session := c.any()
		return a.charge(session)
	}
}

// pages returns turns that list pages of the organization's sessions from random positions.
func (c *crowd) pages(limit int) turns {
	return func([]byte) call {
		_, session := c.any()
		cursor := base64.RawURLEncoding.EncodeToString(session[:])
		return get(fmt.Sprintf("/sessions?limit=%d&cursor=%s", limit, cursor), c.asKey())
	}
}
