package redisstore

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/redisclient"
)

const (
	// fullFrom is the part of maxmemory from which on organizations share.
	fullFrom = 0.7
	// fullFromAlone is that part while all others hold less than ofNote of maxmemory together.
	fullFromAlone = 0.9
	ofNote        = 0.001
	// comparedAtOnce is how many organizations are compared, those that hold most.
	comparedAtOnce = 1000
	// refreshedAtOnce is how many of them are looked at anew each time, of those that hold most: what they held may have
	// expired while they did nothing.
	refreshedAtOnce, refreshedOf = 8, 64
	refreshedAfter               = time.Minute
	// pressureKnownFor is how long a look at the memory holds.
	pressureKnownFor = 2 * time.Second
)

// pressure is how full Redis is, and how much an organization may hold then.
type pressure struct {
	mu        sync.Mutex
	looked    time.Time
	used, max int64 // bytes; max is 0 for none
	written   int64 // by this instance since then
	full      int64 // bytes from which on there is a share
	share     int64 // unbounded while there is none; 0 before the first look
}

// level returns how much an organization may hold.
func (p *pressure) level(now time.Time) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.share == 0 || now.Sub(p.looked) > pressureKnownFor {
		return unbounded
	}
	return p.share
}

// wrote counts what this instance has written, and says whether it is time to look again.
func (p *pressure) wrote(bytes int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written += bytes
	return p.max > 0 && (p.used < p.full && p.used+p.written >= p.full || p.written > p.max/50)
}

// ratio is the used part of maxmemory, 0 when there is no maxmemory.
func (p *pressure) ratio() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.max == 0 {
		return 0
	}
	return float64(p.used) / float64(p.max)
}

// lookAtMemory asks the primaries how full they are, and works out the fair share.
func (s *Store) lookAtMemory() {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	used, most := s.memoryUsed(ctx)
	full, share := int64(fullFrom*float64(most)), int64(unbounded)
	var owners []uuid.UUID
	if most > 0 && used >= full {
		var held []int64
		var err error
		if held, owners, err = s.largestHoldings(ctx); err == nil { // else as if there was room: Redis itself refuses when there is none
			full, share = fairShare(held, used, most)
		}
	}
	p := &s.usage.pressure
	p.mu.Lock()
	p.used, p.max, p.written, p.looked = used, most, 0, s.usage.now()
	p.full, p.share = full, share
	p.mu.Unlock()
	s.refreshHoldings(owners)
}

// fairShare returns from how many bytes on organizations share, and the level above which one holds too much: as much as
// is beyond that goes from those that hold most, down to one level (max-min fairness). It is never below an equal part.
func fairShare(held []int64, used, most int64) (full, share int64) {
	slices.Sort(held)
	slices.Reverse(held)
	var others int64
	for _, bytes := range held[min(1, len(held)):] {
		others += bytes
	}
	full = int64(fullFrom * float64(most))
	switch {
	case len(held) < 2: // alone
		return most, unbounded
	case float64(others) < ofNote*float64(most):
		full = int64(fullFromAlone * float64(most))
	}
	if used < full {
		return full, unbounded
	}
	excess, above := used-full, int64(0)
	level := held[0]
	for i, bytes := range held {
		above += bytes // of the i+1 that hold most
		level = (above - excess) / int64(i+1)
		if i+1 == len(held) || level >= held[i+1] {
			break
		}
	}
	return full, max(level, full/int64(len(held)))
}

// largestHoldings returns the bytes of the organizations that hold most, and which they are. What this instance knows of
// one counts at once.
func (s *Store) largestHoldings(ctx context.Context) ([]int64, []uuid.UUID, error) {
	listed, err := s.client.Redis().ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: s.keys.holdings(), Start: 0, Stop: comparedAtOnce - 1, Rev: true,
	}).Result()
	if err != nil {
		return nil, nil, err
	}
	held, owners := make([]int64, 0, len(listed)), make([]uuid.UUID, 0, len(listed))
	for _, z := range listed {
		member, _ := z.Member.(string)
		id, err := uuid.FromBytes([]byte(member))
		if err != nil {
			continue
		}
		bytes := int64(z.Score)
		if a, known := s.usage.accounts.Peek(id); known {
			a.mu.Lock()
			if !a.synced.IsZero() {
				bytes = a.used()[bytesHeld]
			}
			a.mu.Unlock()
		}
		held, owners = append(held, bytes), append(owners, id)
	}
	return held, owners, nil
}

// refreshHoldings looks anew at a few of those that hold most.
func (s *Store) refreshHoldings(owners []uuid.UUID) {
	now, refreshed := s.usage.now(), 0
	for _, id := range owners[:min(refreshedOf, len(owners))] {
		a := s.usage.account(id)
		a.mu.Lock()
		old := now.Sub(a.synced) > refreshedAfter
		a.mu.Unlock()
		if !old {
			continue
		}
		s.usage.syncing.want(a)
		if refreshed++; refreshed == refreshedAtOnce {
			return
		}
	}
}

// memoryUsed returns how much memory is used, and how much there may be, of a cluster as if all its primaries were as full
// as the fullest. Both are 0 when there is no maxmemory, or none that can be asked for.
func (s *Store) memoryUsed(ctx context.Context) (used, most int64) {
	var mu sync.Mutex
	var fullest float64
	ask := func(ctx context.Context, primary *redis.Client) error {
		info := redisclient.Info(ctx, primary, "memory")
		number := func(name string) int64 {
			n, _ := strconv.ParseInt(info[name], 10, 64)
			return n
		}
		limit := number("maxmemory")
		if limit == 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		most += limit
		fullest = max(fullest, float64(number("used_memory")-number("mem_not_counted_for_evict"))/float64(limit))
		return nil
	}
	_ = s.client.ForEachPrimary(ctx, ask)
	return int64(fullest * float64(most)), most
}
