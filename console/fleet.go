package console

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"remit/money"
)

// fleets keeps for a moment what pages about all agents of an organization need: the API lists agents page by page, and people
// search and sort them. What it keeps is only shown to who has just proven to be a viewer of that organization.
type fleets struct {
	mu    sync.Mutex
	known map[uuid.UUID]*fleetCache
}

// fleetCache is one organization's. mu is held while it is read, so viewers share one reading.
type fleetCache struct {
	mu   sync.Mutex
	used time.Time // guarded by that of fleets

	agents    []agentRow
	truncated bool // there are more agents
	read      time.Time

	spent     map[string]spending
	spentRead time.Time
	unspent   string // why spending is not known; "" when it is
	byType    []usageLine
}

const (
	agentsFresh = 3 * time.Second
	spentFresh  = 10 * time.Second
	mostAgents  = 20_000 // of an organization
	mostFleets  = 32
)

// agentRow is an agent as the list of agents shows it.
type agentRow struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Status      string    `json:"status"`
	CreatedAt   time.Time `json:"created_at"`
	SuspendedAt time.Time `json:"suspended_at"`

	Spent spending `json:"-"`
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

// spending is what an agent spent.
type spending struct{ Today, Month money.MicroUSD }

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

func (f *fleets) drop() {
	var oldest uuid.UUID
	for organization, c := range f.known {
		if oldest == uuid.Nil || c.used.Before(f.known[oldest].used) {
			oldest = organization
		}
	}
	delete(f.known, oldest)
}

// fleet is the agents of an organization, newest first, with what they spent.
type fleet struct {
	Agents    []agentRow
	Truncated bool
	Unspent   string
	ByType    []usageLine // of the last 30 days, by day and action type
}

// fleet returns the viewer's agents as they were a moment ago.
func (v *visit) fleet() (fleet, error) {
	c := v.console.fleets.of(v.who.Organization, v.now)
	c.mu.Lock()
	defer c.mu.Unlock()
	if v.now.Sub(c.read) >= agentsFresh {
		if err := c.readAgents(v.api); err != nil {
			return fleet{}, err
		}
		c.read = v.now
	}
	if v.now.Sub(c.spentRead) >= spentFresh {
		if err := c.readSpending(v.api, v.now); err != nil {
			return fleet{}, err
		}
		c.spentRead = v.now
	}
	shown := fleet{slices.Clone(c.agents), c.truncated, c.unspent, c.byType}
	for i := range shown.Agents {
		shown.Agents[i].Spent = c.spent[shown.Agents[i].ID]
	}
	return shown, nil
}

// forget makes the next page read the agents anew, after a change.
func (v *visit) forgetFleet() {
	c := v.console.fleets.of(v.who.Organization, v.now)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read = time.Time{}
}

func (c *fleetCache) readAgents(a api) error {
	agents := c.agents[:0:0]
	for cursor, more := "", true; more; {
		var page []agentRow
		next, err := a.list(query("/v1/agents", "limit", "200", "cursor", cursor), &page)
		if err != nil {
			return err
		}
		agents = append(agents, page...)
		cursor, more = next, next != "" && len(agents) < mostAgents
		c.truncated = next != ""
	}
	c.agents = agents
	return nil
}

func (c *fleetCache) readSpending(a api, now time.Time) error {
	c.spent, c.unspent = map[string]spending{}, ""
	today := dayOf(now)
	var err error
	if c.byType, err = a.usage("group_by", "day,action_type"); err != nil && !isTooLarge(err) {
		return err
	}
	for _, report := range []struct {
		from string
		add  func(*spending, money.MicroUSD)
	}{
		{today, func(s *spending, m money.MicroUSD) { s.Today = m }},
		{dayOf(now.AddDate(0, 0, -29)), func(s *spending, m money.MicroUSD) { s.Month = m }},
	} {
		lines, err := a.usage("group_by", "agent", "from", report.from, "to", today)
		if isTooLarge(err) {
			c.unspent = "More than 10,000 agents spent something: what each of them spent is on its own page."
			return nil
		}
		if err != nil {
			return err
		}
		for _, line := range lines {
			s := c.spent[line.AgentID]
			report.add(&s, line.Value.MicroUSD())
			c.spent[line.AgentID] = s
		}
	}
	return nil
}

// dayOf returns a day in UTC as the API writes it.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// find returns the agents whose name or id contains a text, in an order: spend, name or new.
func (f fleet) find(text, state, order string) []agentRow {
	text = strings.ToLower(text)
	found := slices.DeleteFunc(f.Agents, func(a agentRow) bool {
		return state != "" && a.State() != state || !strings.Contains(strings.ToLower(a.Name), text) && !strings.Contains(a.ID, text)
	})
	switch order {
	case "name":
		slices.SortStableFunc(found, func(a, b agentRow) int { return cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)) })
	case "new":
	default:
		slices.SortStableFunc(found, func(a, b agentRow) int {
			return cmp.Or(cmp.Compare(b.Spent.Month, a.Spent.Month), cmp.Compare(b.Spent.Today, a.Spent.Today))
		})
	}
	return found
}
