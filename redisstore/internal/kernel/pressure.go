package kernel

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

const (
	// fullFrom is the part of maxmemory above which organizations are limited to fair shares.
	fullFrom = 0.7
	// fullFromAlone is that part while all other organizations together use less than ofNote of maxmemory.
	fullFromAlone = 0.9
	ofNote        = 0.001
	// comparedAtOnce is how many organizations are compared: those that use most.
	comparedAtOnce = 1000
	// Each poll syncs up to refreshedAtOnce of the refreshedOf organizations that use most, if their last sync is older than
	// refreshedAfter: their data may have expired while they were idle.
	refreshedAtOnce, refreshedOf = 8, 64
	refreshedAfter               = time.Minute
	// pressureKnownFor is how long one reading of the memory is valid.
	pressureKnownFor = 2 * time.Second
)

// pressure is how full Redis is, and how many bytes an organization may use.
type pressure struct {
	mu        sync.Mutex
	readAt    time.Time
	used, max int64 // bytes; max is 0 for none
	written   int64 // bytes by this instance since then
	full      int64 // bytes above which there is a share
	share     int64 // bytes; unbounded while there is none, 0 before the first reading
}

// level returns how many bytes an organization may use.
func (p *pressure) level(now time.Time) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.share == 0 || now.Sub(p.readAt) > pressureKnownFor {
		return Unbounded
	}
	return p.share
}

// wrote counts bytes that this instance has written, and says whether to read the memory again now.
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

// FairShare returns full, the bytes above which organizations share, and share, the most that one may use (max-min
// fairness). If those above share came down to it, used would fall to full. share is at least full in equal parts.
func FairShare(held []int64, used, most int64) (full, share int64) {
	slices.Sort(held)
	slices.Reverse(held)
	var others int64
	for _, bytes := range held[min(1, len(held)):] {
		others += bytes
	}
	full = int64(fullFrom * float64(most))
	switch {
	case len(held) < 2: // alone
		return most, Unbounded
	case float64(others) < ofNote*float64(most):
		full = int64(fullFromAlone * float64(most))
	}
	if used < full {
		return full, Unbounded
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
		limit := info.Number("maxmemory")
		if limit == 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		most += limit
		fullest = max(fullest, float64(info.Number("used_memory")-info.Number("mem_not_counted_for_evict"))/float64(limit))
		return nil
	}
	_ = s.Client.ForEachPrimary(ctx, readPrimary)
	return int64(fullest * float64(most)), most
}
