package console

import (
	"time"

	"github.com/google/uuid"
	"remit/server/pages"
)

// spendingCache keeps what is added up of one kind: of organizations, or of single agents.
type spendingCache struct {
	known map[spentOf]*spendings
	turns chan struct{} // a place for each reading under way
	pause time.Duration // the least between two readings
	pool  *pages.CachePool
	guard func(what string)
}

func newSpendingCache(pause time.Duration, pool *pages.CachePool, guard func(what string)) *spendingCache {
	return &spendingCache{map[spentOf]*spendings{}, make(chan struct{}, spentTurns), pause, pool, guard}
}

const (
	mostSpent    = 1024 // organizations, and agents: without their readings they are small
	mostOwnSpent = 64   // agents of an organization
	spentTurns   = 2
)

const manySpent = "Too many organizations are looked at now."

// spendings returns what an organization or an agent spent. The least recently used one without a reading under way makes room. If all
// have one, the new one fails with manySpent and is not kept.
func (f *fleets) spendings(what spentOf, now time.Time) *spendings {
	f.mu.Lock()
	defer f.mu.Unlock()
	among := f.spent
	if what.agent != "" {
		among = f.byAgent
	}
	if s := among.known[what]; s != nil {
		s.used = now
		s.idle.Reset(keptFor)
		return s
	}
	s := &spendings{among: among, of: what, used: now}
	s.report = s.reports
	if !among.makeRoom(what.organization) {
		s.failed, s.next = manySpent, now.Add(time.Hour)
		return s
	}
	s.idle = time.AfterFunc(keptFor, func() { f.dropSpendings(s) })
	among.known[what] = s
	return s
}

// makeRoom reports whether there is room for another one of the organization, which drops its own before those of others.
func (among *spendingCache) makeRoom(organization uuid.UUID) bool {
	dropped, hasRoom := roomIn(among.known, mostSpent, mostOwnSpent, func(of spentOf, s *spendings) (time.Time, bool, bool) {
		return s.used, of.organization == organization, s.isReading()
	})
	if dropped != nil {
		delete(among.known, dropped.of)
		dropped.idle.Reset(0) // which drops its reading
	}
	return hasRoom
}

// roomIn reports whether there is room for another reading of an organization, and which one to drop for it, nil for none: the least
// recently used one that is not under way, of the organization if that has too many. about returns when one was used, whether it is the
// organization's, and whether it is under way.
func roomIn[K comparable, E any](known map[K]*E, most, mostOwn int, about func(K, *E) (used time.Time, isOwn, isUnderWay bool)) (*E, bool) {
	var oldest, ownOldest *E
	var at, ownAt time.Time
	own := 0
	for key, one := range known {
		used, isOwn, isUnderWay := about(key, one)
		if isOwn {
			own++
		}
		if isUnderWay {
			continue
		}
		if oldest == nil || used.Before(at) {
			oldest, at = one, used
		}
		if isOwn && (ownOldest == nil || used.Before(ownAt)) {
			ownOldest, ownAt = one, used
		}
	}
	switch {
	case own >= mostOwn:
		return ownOldest, ownOldest != nil
	case len(known) < most:
		return nil, true
	}
	return oldest, oldest != nil
}

// dropSpendings reduces spendings that were not used for keptFor to their sums, and drops these when the next reading is due. Dropped
// earlier, they would be read again too soon.
func (f *fleets) dropSpendings(s *spendings) {
	s.shorten()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.among.known[s.of] != s {
		return
	}
	if rest := s.rest(time.Now()); rest > 0 {
		s.idle.Reset(max(rest, keptFor))
		return
	}
	delete(s.among.known, s.of)
}

// rest returns how long it is until the next reading; one under way is not yet its last.
func (s *spendings) rest(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading != nil {
		return keptFor
	}
	return s.next.Sub(now)
}
