package kernel

import (
	"context"
	"strconv"
	"sync"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// PollMemory reads how full the primaries are, and computes the fair share.
func (s *Core) PollMemory() {
	ctx, cancel := context.WithTimeout(context.Background(), redisclient.CallTimeout)
	defer cancel()
	used, most := s.MemoryUsed(ctx)
	full, share := int64(fullFrom*float64(most)), int64(Unbounded)
	var owners []uuid.UUID
	if most > 0 && used >= full {
		var held []int64
		var err error
		if held, owners, err = s.largestHoldings(ctx); err == nil { // on an error assume room: Redis itself refuses when it is full
			full, share = FairShare(held, used, most)
		}
	}
	p := &s.Usage.pressure
	p.mu.Lock()
	p.used, p.max, p.written, p.readAt = used, most, 0, s.Usage.Now()
	p.full, p.share = full, share
	p.mu.Unlock()
	s.refreshHoldings(owners)
}

// largestHoldings returns the organizations that use most memory, with their bytes. For those that this instance knows it
// includes changes that Redis does not know yet.
func (s *Core) largestHoldings(ctx context.Context) ([]int64, []uuid.UUID, error) {
	listed, err := s.Client.Redis().ZRangeArgsWithScores(ctx, redis.ZRangeArgs{
		Key: s.Keys.Holdings(), Start: 0, Stop: comparedAtOnce - 1, Rev: true,
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
		if a, known := s.Usage.Accounts.Peek(id); known {
			a.Mu.Lock()
			if !a.synced.IsZero() {
				bytes = a.Used()[BytesHeld]
			}
			a.Mu.Unlock()
		}
		held, owners = append(held, bytes), append(owners, id)
	}
	return held, owners, nil
}

// refreshHoldings syncs a few of the organizations that use most memory.
func (s *Core) refreshHoldings(owners []uuid.UUID) {
	now, refreshed := s.Usage.Now(), 0
	for _, id := range owners[:min(refreshedOf, len(owners))] {
		a := s.Usage.Account(id)
		a.Mu.Lock()
		old := now.Sub(a.synced) > refreshedAfter
		a.Mu.Unlock()
		if !old {
			continue
		}
		s.Usage.Syncing.enqueue(a)
		if refreshed++; refreshed == refreshedAtOnce {
			return
		}
	}
}

// MemoryUsed returns the used memory and maxmemory, in bytes. It treats all primaries of a cluster as if they were as full as
// the fullest. Both are 0 if maxmemory is not set or cannot be read.
func (s *Core) MemoryUsed(ctx context.Context) (used, most int64) {
	var mu sync.Mutex
	var fullest float64
	readPrimary := func(ctx context.Context, primary *redis.Client) error {
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
	_ = s.Client.ForEachPrimary(ctx, readPrimary)
	return int64(fullest * float64(most)), most
}
