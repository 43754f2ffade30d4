package console

import (
	"time"

	"github.com/google/uuid"
	"remit/server/pages"
)

// spendingsOf are what is added up of one kind: of organizations, or of single agents.
type spendingsOf struct {
	known map[spentOf]*spendings
	turns chan struct{} // a place for each reading under way
	pause time.Duration // the least between two readings
	pool  *pages.CachePool
	guard func(what string)
}

func newSpendings(pause time.Duration, pool *pages.CachePool, guard func(what string)) *spendingsOf {
	return &spendingsOf{map[spentOf]*spendings{}, make(chan struct{}, spentTurns), pause, pool, guard}
}

const (
	mostSpent    = 1024 // organizations, and agents: without their readings they are small
	mostOwnSpent = 64   // agents of an organization
	spentTurns   = 2
)

const manySpent = "Too many organizations are looked at now."

// spendingsOf returns what an organization or an agent spent. The least recently used one without a reading under way makes room. If all
// have one, the new one fails with manySpent and is not kept.
func (f *fleets) spendingsOf(what spentOf, now time.Time) *spendings {
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
func (among *spendingsOf) makeRoom(organization uuid.UUID) bool {
	var oldest, ownOldest *spendings
	own := 0
	for of, s := range among.known {
		isOwn := of.organization == organization
		if isOwn {
			own++
		}
		if s.isReading() {
			continue
		}
		if oldest == nil || s.used.Before(oldest.used) {
			oldest = s
		}
		if isOwn && (ownOldest == nil || s.used.Before(ownOldest.used)) {
			ownOldest = s
		}
	}
	switch {
	case own >= mostOwnSpent:
		oldest = ownOldest
	case len(among.known) < mostSpent:
		return true
	}
	if oldest == nil {
		return false
	}
	delete(among.known, oldest.of)
	oldest.idle.Reset(0) // which drops its reading
	return true
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
