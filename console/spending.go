package console

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// spendings adds up what an organization spent, in the background: over a large fleet the service takes seconds for that. Pages
// show the last reading with its time. There is one reading at a time, and only while a page is open.
type spendings struct {
	among  *spendingCache // the others of its kind
	report func(a api, now time.Time) (*spent, error)
	of     spentOf
	used   time.Time   // guarded by the mu of fleets
	idle   *time.Timer // drops it; nil if it is not kept at all

	last atomic.Pointer[spent] // nil before the first

	mu       sync.Mutex
	reading  chan struct{} // closed when the reading under way ends; nil for none
	next     time.Time     // of the next reading
	failed   string        // why there is no reading yet; "" for no reason
	tooLarge bool          // by day and agent there are too many lines
}

// spentOf names what is added up.
type spentOf struct {
	organization uuid.UUID
	agent        string // "" for all agents
}

const (
	// spentWait is how long a page waits for a reading. That of a small organization is there by then.
	spentWait = 100 * time.Millisecond
	// spentPause is the least pause between two readings, and spentRest how many times as long as the last one took it is.
	spentPause = 5 * time.Second
	spentRest  = 20
	// agentPause is the least pause between two readings of one agent.
	agentPause = 3 * time.Second
)

const tooManyTypes = "There are more than 10,000 pairs of a day and an action type: what each type cost is on the agents' pages."

const tooManyOwnTypes = "There are more than 10,000 pairs of a day and an action type: what each type cost is on the pages of the sessions."

const tooManySpent = "More than 10,000 agents spent something: what each of them spent is on its own page."

// latest returns the last reading, nil before the first, and why there is none. It begins another if that is due, and waits a moment
// for it.
func (s *spendings) latest(a api, now time.Time) (last *spent, failed string) {
	if _, reading := s.begin(a, now); reading != nil {
		select {
		case <-reading:
		case <-time.After(spentWait):
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.Load(), s.failed
}

// begin begins a reading if one is due, and returns the last one, and what is closed when the one under way ends; nil for none.
func (s *spendings) begin(a api, now time.Time) (last *spent, reading <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading == nil && !now.Before(s.next) {
		s.reading = make(chan struct{})
		go s.read(a, now)
	}
	return s.last.Load(), s.reading
}

func (s *spendings) isReading() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reading != nil
}

// read reads once. After an error the last reading stays.
func (s *spendings) read(a api, now time.Time) {
	defer s.among.guard("spending")
	s.among.turns <- struct{}{}
	defer func() { <-s.among.turns }()
	began := time.Now()
	var next *spent
	err := errPanicked
	defer func() {
		if err == nil {
			s.keep(next)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil && s.last.Load() == nil {
			s.failed = problemOf(err).text()
		}
		s.next = time.Now().Add(max(s.among.pause, spentRest*time.Since(began)))
		close(s.reading)
		s.reading = nil
	}()
	next, err = s.report(a, now)
}

// add adds the lines of a report that has days.
func (s *spending) add(lines []usageLine, now time.Time) {
	today := dayOf(now)
	for _, line := range lines {
		s.Month += money.MicroUSD(line.Value)
		if line.Day == today {
			s.Today += money.MicroUSD(line.Value)
		}
	}
}

// reports reads what was spent. What each agent spent it reads only of all of them.
func (s *spendings) reports(a api, now time.Time) (*spent, error) {
	next := &spent{At: now}
	lines, err := a.usage("group_by", "day,action_type", "agent_id", s.of.agent)
	if isTooLarge(err) {
		if next.Problem, next.NoTypes = tooManyTypes, true; s.of.agent != "" {
			next.Problem = tooManyOwnTypes
		}
	} else if err != nil {
		return nil, err
	}
	next.types = typesOf(lines)
	if next.NoTypes || s.of.agent == "" {
		if lines, err = a.usage("group_by", "day", "agent_id", s.of.agent); err != nil {
			return nil, err
		}
	}
	next.Total.add(lines, now)
	if s.of.agent != "" {
		return next, nil
	}
	by := map[string]spending{}
	if !s.tooLarge { // only the reading under way uses it
		err = a.addByDay(by, now)
		s.tooLarge = isTooLarge(err)
	}
	if s.tooLarge {
		err = a.addSums(by, now)
	}
	if isTooLarge(err) {
		next.Problem, next.NoAgents = strings.TrimSpace(next.Problem+" "+tooManySpent), true
		return next, nil
	}
	if err == nil {
		next.agents, err = agentsOf(by)
	}
	return next, err
}

// addByDay adds what each agent spent by one report, which has a line for each of its days.
func (a api) addByDay(to map[string]spending, now time.Time) error {
	lines, err := a.usage("group_by", "day,agent")
	for i, line := range lines {
		of := to[line.AgentID]
		of.add(lines[i:i+1], now)
		to[line.AgentID] = of
	}
	return err
}

// addSums adds what each agent spent by two reports, which have a line for each agent.
func (a api) addSums(to map[string]spending, now time.Time) error {
	month, err := a.usage("group_by", "agent")
	if err != nil {
		return err
	}
	today, err := a.usage("group_by", "agent", "from", dayOf(now), "to", dayOf(now))
	for _, line := range month {
		to[line.AgentID] = spending{Month: money.MicroUSD(line.Value)}
	}
	for _, line := range today {
		of := to[line.AgentID]
		of.Today = money.MicroUSD(line.Value)
		to[line.AgentID] = of
	}
	return err
}
