package console

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// fleets keeps for a moment what pages about all agents of an organization need: the API lists agents page by page, and people
// search and sort them. What it keeps is only shown to who has just proven to be a viewer of that organization.
type fleets struct {
	mu      sync.Mutex
	known   map[uuid.UUID]*fleetCache
	spent   spendingsOf // of organizations: small, so of more of them, for a reading that is forgotten would come again too soon
	byAgent spendingsOf // of single agents
	guard   func(what string)
}

// spendingsOf are what is added up of one kind.
type spendingsOf struct {
	known map[spentOf]*spendings
	turns chan struct{} // a place for each reading under way
}

// fleetCache is one organization's. mu is held while it is read, so viewers share one reading.
type fleetCache struct {
	mu   sync.Mutex
	used time.Time // guarded by that of fleets

	sorting sync.Mutex // held while a viewer's page searches and sorts: one at a time of an organization

	agents    []agentRow
	truncated bool // there are more agents
	read      time.Time
}

const (
	agentsFresh = 3 * time.Second
	mostAgents  = 20_000 // of an organization
	mostFleets  = 32
	mostSpent   = 1024 // organizations, and agents
	spentTurns  = 2
)

const manySpent = "Too many organizations are looked at now."

// agentRow is an agent as the list of agents shows it.
type agentRow struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
	SuspendedAt time.Time `json:"suspended_at"`

	Spent spending `json:"-"`

	lowered string // the name, for searching and sorting
}

// State is the status in one word.
func (a agentRow) State() string {
	if a.Status == statusActive && !a.SuspendedAt.IsZero() {
		return statusSuspended
	}
	return a.Status
}

const (
	statusActive    = "active"
	statusSuspended = "suspended"
	statusPending   = "pending"
)

// of returns the cache of an organization. The one that was used longest ago makes room.
func (f *fleets) of(organization uuid.UUID, now time.Time) *fleetCache {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.known[organization]
	if c == nil {
		if f.known == nil {
			f.known = map[uuid.UUID]*fleetCache{}
		}
		if len(f.known) >= mostFleets {
			f.drop()
		}
		c = &fleetCache{}
		f.known[organization] = c
	}
	c.used = now
	return c
}

// spendingsOf returns what an organization spent.
func (f *fleets) spendingsOf(organization uuid.UUID, now time.Time) *spendings {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, isNew := f.spent.of(spentOf{organization: organization}, now)
	if isNew {
		s.guard, s.report, s.pause = f.guard, s.reports, spentPause
	}
	return s
}

// spendingsOfAgent returns what an agent spent.
func (f *fleets) spendingsOfAgent(organization uuid.UUID, agent string, now time.Time) *spendings {
	f.mu.Lock()
	defer f.mu.Unlock()
	s, isNew := f.byAgent.of(spentOf{organization, agent}, now)
	if isNew {
		s.guard, s.report, s.pause = f.guard, reportAgent(agent), agentPause
	}
	return s
}

// of is called with the mu of fleets held. The one that was used longest ago and has no reading under way makes room. Without
// room the new one says so, and nobody keeps it.
func (f *spendingsOf) of(what spentOf, now time.Time) (s *spendings, isNew bool) {
	if f.known == nil {
		f.known, f.turns = map[spentOf]*spendings{}, make(chan struct{}, spentTurns)
	}
	if s = f.known[what]; s != nil {
		s.used = now
		return s, false
	}
	s = &spendings{turns: f.turns, used: now}
	if len(f.known) >= mostSpent && !f.makeRoom() {
		s.failed, s.next = manySpent, now.Add(time.Hour)
		return s, true
	}
	f.known[what] = s
	return s, true
}

func (f *spendingsOf) makeRoom() bool {
	var oldest *spendings
	var of spentOf
	for what, s := range f.known {
		if (oldest == nil || s.used.Before(oldest.used)) && !s.isReading() {
			oldest, of = s, what
		}
	}
	delete(f.known, of)
	return oldest != nil
}

func (f *fleets) drop() {
	var oldest uuid.UUID
	for organization, c := range f.known {
		if oldest == uuid.Nil || c.used.Before(f.known[oldest].used) {
			oldest = organization
		}
	}
	delete(f.known, oldest)
}

// fleet is the agents of an organization, newest first. Viewers share them: nobody changes them.
type fleet struct {
	Agents    []agentRow
	Truncated bool
	Spent     *spent // nil while it is added up for the first time
	Unspent   string // why that has failed so far; "" if it has not

	sorting *sync.Mutex
}

// spentBy returns what an agent spent; nothing while that is not known.
func (f fleet) spentBy(id string) spending {
	if f.Spent == nil {
		return spending{}
	}
	return f.Spent.ByAgent[id]
}

// fleet returns the viewer's agents as they were a moment ago. What they spent it returns also with an error.
func (v *visit) fleet() (fleet, error) {
	c := v.console.fleets.of(v.who.Organization, v.now)
	var shown fleet
	shown.Spent, shown.Unspent = v.console.fleets.spendingsOf(v.who.Organization, v.now).latest(v.api.alone(), v.now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.now.Sub(c.read) >= agentsFresh {
		if err := c.readAgents(v.api); err != nil {
			return shown, err
		}
		c.read = v.now
	}
	shown.Agents, shown.Truncated, shown.sorting = c.agents, c.truncated, &c.sorting
	return shown, nil
}

// forgetFleet makes the next page read the agents anew, after a change.
func (v *visit) forgetFleet() { v.console.fleets.of(v.who.Organization, v.now).forget() }

func (c *fleetCache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

func (c *fleetCache) readAgents(a api) error {
	var read []agentRow
	for cursor, more := "", true; more; {
		var page []agentRow
		next, err := a.list(query("/v1/agents", "limit", "200", "cursor", cursor), &page)
		if err != nil {
			return err
		}
		for _, one := range page {
			one.lowered = strings.ToLower(one.Name)
			read = append(read, one)
		}
		cursor, more = next, next != "" && len(read) < mostAgents
		c.truncated = next != ""
	}
	c.agents = read
	return nil
}

// dayOf returns a day in UTC as the API writes it.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// find returns the agents whose name or id contains a text, in an order: spend, name or new.
func (f fleet) find(text, state, order string) []agentRow {
	f.sorting.Lock()
	defer f.sorting.Unlock()
	text = strings.ToLower(text)
	var found []agentRow
	for _, a := range f.Agents {
		if (state == "" || a.State() == state) && (strings.Contains(a.lowered, text) || strings.Contains(a.ID, text)) {
			a.Spent = f.spentBy(a.ID)
			found = append(found, a)
		}
	}
	switch order {
	case "name":
		slices.SortStableFunc(found, func(a, b agentRow) int { return cmp.Compare(a.lowered, b.lowered) })
	case "new":
	default:
		slices.SortStableFunc(found, func(a, b agentRow) int {
			return cmp.Or(cmp.Compare(b.Spent.Month, a.Spent.Month), cmp.Compare(b.Spent.Today, a.Spent.Today))
		})
	}
	return found
}
