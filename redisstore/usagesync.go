package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// keepUsage syncs accounts until there are none to sync, or the store is closed.
func (s *Store) keepUsage() {
	defer s.usage.syncing.ended.Done()
	defer redisclient.RecoverTo(func(error) { s.usage.syncing.stopped() })
	ticks := time.NewTicker(s.config.UsageEvery)
	defer ticks.Stop()
	s.pollMemory()
	for {
		hurried := false
		select {
		case <-s.closed:
			s.finishUsage()
			return
		case <-ticks.C:
		case <-s.usage.syncing.hurried:
			hurried = true
		}
		s.pollMemory()
		if hurried {
			select {
			case <-time.After(hurryPause):
			case <-s.closed:
			}
			continue
		}
		round := s.usage.syncing.take()
		if len(round) == 0 {
			return
		}
		s.syncAll(context.Background(), round)
	}
}

func (s *Store) finishUsage() {
	ctx, cancel := context.WithTimeout(context.Background(), finishTime)
	defer cancel()
	for ctx.Err() == nil {
		round := s.usage.syncing.take()
		if len(round) == 0 {
			return
		}
		s.syncAll(ctx, round)
	}
}

func (s *Store) syncAll(ctx context.Context, round []*account) {
	work := make(chan *account)
	var group sync.WaitGroup
	for range min(syncWorkers, len(round)) {
		group.Go(func() {
			for a := range work {
				a.mu.Lock()
				a.queued = false
				a.mu.Unlock()
				_ = s.syncUsage(ctx, a) // a later round retries
			}
		})
	}
	for _, a := range round {
		work <- a
	}
	close(work)
	group.Wait()
	s.publish(ctx, round)
}

var noteUsage = newScript("kernel/note_usage", bestEffort) // it needs no confirmation by a replica

// syncUsage sends an account's changes to Redis once, and reads the organization's usage. If the reply is lost, it assumes
// that Redis has counted the changes, because sending them again might count them twice. Errors: ErrUnknownOrganization.
func (s *Store) syncUsage(ctx context.Context, a *account) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.mu.Lock()
	sent := a.changes
	a.changes = changes{}
	a.sending, a.unsent = a.unsent, quantities{}
	a.mu.Unlock()

	o := a.organization
	keys := []string{s.keys.organization(o), s.keys.organizationUsage(o), s.keys.organizationAgents(o), s.keys.organizationOpen(o), s.keys.feedHead(o)}
	r, err := s.client.Run(ctx, ownFlow, noteUsage, keys, sent.agentBytes, sent.eventBytes, s.eventCap(), sent.lines())
	if again := s.usage.synced(a, sent, r, err); again {
		s.usage.syncing.enqueue(a)
	}
	return err
}

// synced applies the result of sending the changes, and says whether the account must be synced again.
func (u *usage) synced(a *account, sent changes, r *reply, err error) (again bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil:
		u.learn(a, r)
	case errors.Is(err, ErrOutcomeUnknown):
		a.known.add(a.sending)
	case errors.Is(err, ErrUnknownOrganization):
		a.known, a.synced = quantities{}, u.now()
	default:
		sent.add(a.changes)
		a.changes = sent
		a.unsent.add(a.sending)
	}
	a.sending = quantities{}
	return len(a.changes.expiring) > 0
}

// lines are the changes as note_usage.lua takes them.
func (c *changes) lines() []byte {
	lines := []byte{}
	for e, amount := range c.expiring {
		lines = fmt.Appendf(lines, "%c %d %d %d\n", e.class, e.width, e.remaining.Milliseconds(), amount)
	}
	return lines
}

// learn applies the reply of note_usage.lua. The caller must hold the account's lock.
func (u *usage) learn(a *account, r *reply) {
	var known quantities
	for i := range known {
		known[i] = r.Number(i)
	}
	known[bytesHeld] += known[agentsHeld] * agentSize
	set, given := map[string]int64{}, r.List(int(resources))
	for i := 0; i+1 < len(given.Values); i += 2 {
		set[given.Text(i)] = given.Number(i + 1)
	}
	if r.Err == nil && given.Err == nil {
		a.known, a.quotas, a.synced = known, u.defaults.over(set), u.now()
	}
}

// publish writes the bytes of organizations to the index of holdings, which compares all organizations.
func (s *Store) publish(ctx context.Context, round []*account) {
	now := s.usage.now()
	var held []redis.Z
	var gone []any
	for _, a := range round {
		a.mu.Lock()
		bytes, learned := a.known[bytesHeld], !a.synced.IsZero()
		if learned && bytes != a.published && now.Sub(a.publishedAt) >= publishPause {
			a.published, a.publishedAt = bytes, now
			if bytes > 0 {
				held = append(held, redis.Z{Score: float64(bytes), Member: string(a.organization[:])})
			} else {
				gone = append(gone, string(a.organization[:]))
			}
		}
		late := bytes != a.published
		a.mu.Unlock()
		if late && learned {
			s.usage.syncing.enqueue(a)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if len(held) > 0 {
		_ = s.client.Redis().ZAdd(ctx, s.keys.holdings(), held...).Err() // a failure is corrected by a later round
	}
	if len(gone) > 0 {
		_ = s.client.Redis().ZRem(ctx, s.keys.holdings(), gone...).Err()
	}
}
