package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// keepUsage syncs accounts until there are none to sync, or the store is closed.
func (s *Core) keepUsage() {
	defer s.Usage.Syncing.ended.Done()
	defer redisclient.RecoverTo(func(error) { s.Usage.Syncing.stopped() })
	ticks := time.NewTicker(s.config.UsageEvery)
	defer ticks.Stop()
	s.PollMemory()
	for {
		hurried := false
		select {
		case <-s.Closed:
			s.finishUsage()
			return
		case <-ticks.C:
		case <-s.Usage.Syncing.hurried:
			hurried = true
		}
		s.PollMemory()
		if hurried {
			select {
			case <-time.After(hurryPause):
			case <-s.Closed:
			}
			continue
		}
		round := s.Usage.Syncing.take()
		if len(round) == 0 {
			return
		}
		s.syncAll(context.Background(), round)
	}
}

func (s *Core) finishUsage() {
	ctx, cancel := context.WithTimeout(context.Background(), FinishTime)
	defer cancel()
	for ctx.Err() == nil {
		round := s.Usage.Syncing.take()
		if len(round) == 0 {
			return
		}
		s.syncAll(ctx, round)
	}
}

func (s *Core) syncAll(ctx context.Context, round []*account) {
	_ = EachOf(ctx, len(round), syncWorkers, func(ctx context.Context, i int) error {
		a := round[i]
		a.Mu.Lock()
		a.queued = false
		a.Mu.Unlock()
		_ = s.SyncUsage(ctx, a) // a later round retries
		return nil
	})
	s.publish(ctx, round)
}

var noteUsage = NewScript("kernel/note_usage", redisclient.BestEffort) // it needs no confirmation by a replica

// OrganizationUsage sends an organization's changes to Redis, and returns its usage and its quotas by name. Errors:
// ErrUnknownOrganization.
func (s *Core) OrganizationUsage(ctx context.Context, organization uuid.UUID) (usage, quotas map[string]int64, err error) {
	a := s.Usage.Account(organization)
	if err := s.SyncUsage(ctx, a); err != nil {
		return nil, nil, err
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.Used().ByName(), a.quotas.ByName(), nil
}

// SyncUsage sends an account's changes to Redis once, and reads the organization's usage. If the reply is lost, it assumes
// that Redis has counted the changes, because sending them again might count them twice. Errors: ErrUnknownOrganization.
func (s *Core) SyncUsage(ctx context.Context, a *account) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.Mu.Lock()
	sent := a.changes
	a.changes = Changes{}
	a.sending, a.Unsent = a.Unsent, Quantities{}
	a.Mu.Unlock()

	o := a.organization
	keys := []string{s.Keys.Organization(o), s.Keys.OrganizationUsage(o), s.Keys.OrganizationAgents(o), s.Keys.OrganizationOpen(o), s.Keys.FeedHead(o)}
	r, err := s.Client.Run(ctx, OwnFlow, noteUsage, keys, sent.AgentBytes, sent.EventBytes, s.eventCap(), sent.lines())
	if again := s.Usage.synced(a, sent, r, err); again {
		s.Usage.Syncing.enqueue(a)
	}
	return err
}

// synced applies the result of sending the changes, and says whether the account must be synced again.
func (u *usage) synced(a *account, sent Changes, r *redisclient.Reply, err error) (again bool) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	switch {
	case err == nil:
		u.learn(a, r)
	case errors.Is(err, redisclient.ErrOutcomeUnknown):
		a.Known.add(a.sending)
	case errors.Is(err, ErrUnknownOrganization):
		a.Known, a.synced = Quantities{}, u.Now()
	default:
		sent.add(a.changes)
		a.changes = sent
		a.Unsent.add(a.sending)
	}
	a.sending = Quantities{}
	return len(a.changes.expiring) > 0
}

// lines are the changes as note_usage.lua takes them.
func (c *Changes) lines() []byte {
	lines := []byte{}
	for e, amount := range c.expiring {
		lines = fmt.Appendf(lines, "%c %d %d %d\n", e.Class, e.Width, e.Remaining.Milliseconds(), amount)
	}
	return lines
}

// learn applies the reply of note_usage.lua. The caller must hold the account's lock.
func (u *usage) learn(a *account, r *redisclient.Reply) {
	var known Quantities
	for i := range known {
		known[i] = r.Number(i)
	}
	known[BytesHeld] += known[AgentsHeld] * AgentSize
	set, given := map[string]int64{}, r.List(int(Resources))
	for i := 0; i+1 < len(given.Values); i += 2 {
		set[given.Text(i)] = given.Number(i + 1)
	}
	if r.Err == nil && given.Err == nil {
		a.Known, a.quotas, a.synced = known, u.defaults.over(set), u.Now()
	}
}

// publish writes the bytes of organizations to the index of holdings, which compares all organizations.
func (s *Core) publish(ctx context.Context, round []*account) {
	now := s.Usage.Now()
	var held []redis.Z
	var gone []any
	for _, a := range round {
		a.Mu.Lock()
		bytes, learned := a.Known[BytesHeld], !a.synced.IsZero()
		if learned && bytes != a.published && now.Sub(a.publishedAt) >= publishPause {
			a.published, a.publishedAt = bytes, now
			if bytes > 0 {
				held = append(held, redis.Z{Score: float64(bytes), Member: string(a.organization[:])})
			} else {
				gone = append(gone, string(a.organization[:]))
			}
		}
		late := bytes != a.published
		a.Mu.Unlock()
		if late && learned {
			s.Usage.Syncing.enqueue(a)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	if len(held) > 0 {
		_ = s.Client.Redis().ZAdd(ctx, s.Keys.Holdings(), held...).Err() // a failure is corrected by a later round
	}
	if len(gone) > 0 {
		_ = s.Client.Redis().ZRem(ctx, s.Keys.Holdings(), gone...).Err()
	}
}

const (
	// hurryPause is the least time between two readings of Redis's memory.
	hurryPause  = 20 * time.Millisecond
	syncAtOnce  = 256 // accounts in each round; the others wait for the next
	syncWorkers = 8
	// FinishTime is how long a closing store sends its last usage to Redis.
	FinishTime = 300 * time.Millisecond
	// publishPause is the least time between two updates of one organization in the index of holdings.
	publishPause = time.Second
)

// syncing is the queue of accounts to sync with Redis. A goroutine runs while the queue is not empty.
type syncing struct {
	Mu      sync.Mutex
	waiting []*account
	Running bool
	Closed  bool
	start   func() // the goroutine
	hurried chan struct{}
	ended   sync.WaitGroup
}

// enqueue adds an account to the queue, and starts the goroutine if none runs.
func (y *syncing) enqueue(a *account) {
	a.Mu.Lock()
	queued := a.queued
	a.queued = true
	a.Mu.Unlock()
	if queued {
		return
	}
	y.Mu.Lock()
	defer y.Mu.Unlock()
	y.waiting = append(y.waiting, a)
	if !y.Running && !y.Closed {
		y.Running = true
		y.ended.Add(1)
		go y.start()
	}
}

// hurry makes the goroutine read Redis's memory soon.
func (y *syncing) hurry() {
	select {
	case y.hurried <- struct{}{}:
	default:
	}
}

// take returns the accounts of a round. If there are none, the goroutine must end.
func (y *syncing) take() []*account {
	y.Mu.Lock()
	defer y.Mu.Unlock()
	round := y.waiting[:min(len(y.waiting), syncAtOnce)]
	y.waiting = y.waiting[len(round):]
	if len(y.waiting) == 0 {
		y.waiting = nil
	}
	if len(round) == 0 {
		y.Running = false
	}
	return round
}

// stopped lets the next enqueue start a new goroutine.
func (y *syncing) stopped() {
	y.Mu.Lock()
	defer y.Mu.Unlock()
	y.Running = false
}

// finish stops the goroutine. Usage that it cannot send within FinishTime is lost; see decision 36.
func (y *syncing) finish() {
	y.Mu.Lock()
	y.Closed = true
	y.Mu.Unlock()
	y.ended.Wait()
}
