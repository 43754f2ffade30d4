package console

import (
	"time"

	"github.com/google/uuid"
)

// spendingsOf are what is added up of one kind.
type spendingsOf struct {
	known map[spentOf]*spendings
	turns chan struct{} // a place for each reading under way
}

const (
	mostSpent  = 1024 // organizations, and agents: without their readings they are small
	spentTurns = 2
)

const manySpent = "Too many organizations are looked at now."

// spendingsOf returns what an organization spent.
func (f *fleets) spendingsOf(organization uuid.UUID, now time.Time) *spendings {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, isNew := f.find(&f.spent, spentOf{organization: organization}, now)
	if isNew {
		s.report, s.pause = s.reports, spentPause
	}
	return s
}

// spendingsOfAgent returns what an agent spent.
func (f *fleets) spendingsOfAgent(organization uuid.UUID, agent string, now time.Time) *spendings {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, isNew := f.find(&f.byAgent, spentOf{organization, agent}, now)
	if isNew {
		s.report, s.pause = reportAgent(agent), agentPause
	}
	return s
}

// find is called with mu held. The least recently used one without a reading under way makes room. If all have one, the new one fails
// with manySpent and is not kept.
func (f *fleets) find(among *spendingsOf, what spentOf, now time.Time) (s *spendings, isNew bool) {
	if among.known == nil {
		among.known, among.turns = map[spentOf]*spendings{}, make(chan struct{}, spentTurns)
	}
	if s = among.known[what]; s != nil {
		s.used = now
		s.idle.Reset(keptFor)
		return s, false
	}
	s = &spendings{turns: among.turns, guard: f.guard, pool: f.pool, of: what, used: now}
	if len(among.known) >= mostSpent && !among.makeRoom() {
		s.failed, s.next = manySpent, now.Add(time.Hour)
		return s, true
	}
	s.idle = time.AfterFunc(keptFor, func() { f.dropSpendings(among, s) })
	among.known[what] = s
	return s, true
}

// makeRoom leaves the memory of what it drops to the timer of that.
func (among *spendingsOf) makeRoom() bool {
	var oldest *spendings
	for _, s := range among.known {
		if (oldest == nil || s.used.Before(oldest.used)) && !s.isReading() {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	delete(among.known, oldest.of)
	return true
}

// dropSpendings reduces spendings that were not used for keptFor to their sums, and drops these when the next reading is due. Dropped
// earlier, they would be read again too soon.
func (f *fleets) dropSpendings(among *spendingsOf, s *spendings) {
	s.shorten()
	f.mu.Lock()
	defer f.mu.Unlock()
	if among.known[s.of] != s {
		return
	}
	if rest := s.rest(time.Now()); rest > 0 {
		s.idle.Reset(max(rest, keptFor))
		return
	}
	delete(among.known, s.of)
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
