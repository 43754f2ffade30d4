package console

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/server/pages"
)

// fleets keeps for a moment what pages about all agents of an organization need: the API lists agents page by page, and people
// search and sort them. What it keeps is only shown to who has just proven to be a viewer of that organization. Its memory is
// reserved, so it is at most mostCached, and it is dropped a minute after its last use.
type fleets struct {
	pool *pages.CachePool

	mu      sync.Mutex
	known   map[uuid.UUID]*fleetCache
	spent   *spendingCache // of organizations
	byAgent *spendingCache // of single agents
}

func newFleets(most int, guard func(what string)) *fleets {
	pool := pages.NewCachePool(most)
	return &fleets{
		pool: pool, known: map[uuid.UUID]*fleetCache{},
		spent: newSpendingCache(spentPause, pool, guard), byAgent: newSpendingCache(agentPause, pool, guard),
	}
}

// fleetCache is one organization's. mu is held while it is read, so viewers share one reading.
type fleetCache struct {
	mu   sync.Mutex
	read time.Time
	aged atomic.Bool // an event was about an agent since

	agents atomic.Pointer[agentTable] // nil before it is read, and once it is dropped

	sorting sync.Mutex  // held while a viewer's page searches and sorts: one at a time of an organization
	idle    *time.Timer // drops it
}

const (
	// mostCached bounds the bytes that are kept, of all organizations.
	mostCached = 48 << 20
	// keptFor is how long something is kept after its last use.
	keptFor = time.Minute

	agentsFresh = 3 * time.Second
	mostAgents  = 20_000 // of an organization
)

var errUnreadable = errors.New("the service listed an agent that cannot be read")

// of returns the cache of an organization.
func (f *fleets) of(organization uuid.UUID) *fleetCache {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.known[organization]; c != nil {
		c.idle.Reset(keptFor)
		return c
	}
	c := &fleetCache{}
	c.idle = time.AfterFunc(keptFor, func() { f.drop(organization, c) })
	f.known[organization] = c
	return c
}

// drop forgets a cache and releases its memory. A page that still reads into it starts its timer again.
func (f *fleets) drop(organization uuid.UUID, c *fleetCache) {
	f.mu.Lock()
	if f.known[organization] == c {
		delete(f.known, organization)
	}
	f.mu.Unlock()
	c.empty()
}

// empty drops the agents.
func (c *fleetCache) empty() {
	if t := c.agents.Swap(nil); t != nil {
		t.memory.Release()
	}
}

// age makes the next page read the agents of an organization anew. It waits for no reading.
func (f *fleets) age(organization uuid.UUID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.known[organization]; c != nil {
		c.aged.Store(true)
	}
}

// fleet is the agents of an organization, newest first. Viewers share them, so they are immutable.
type fleet struct {
	Agents  *agentTable // nil when they cannot be read
	Spent   *spent      // nil while it is added up for the first time
	Unspent string      // why that has failed so far; "" if it has not

	sorting *sync.Mutex
}

// Truncated reports whether there are more agents.
func (f fleet) Truncated() bool { return f.Agents != nil && f.Agents.truncated }

// Crowded reports whether agents are left out because other organizations use the memory.
func (f fleet) Crowded() bool { return f.Agents != nil && f.Agents.crowded }

// fleet returns the viewer's agents as they were a moment ago. What they spent it returns also with an error.
func (v *visit) fleet() (fleet, error) {
	f := v.console.fleets
	var shown fleet
	var err error
	shown.Spent, shown.Unspent = f.spendings(spentOf{organization: v.who.Organization}, v.now).latest(v.api.alone(), v.now)
	c := f.of(v.who.Organization)
	shown.sorting = &c.sorting
	shown.Agents, err = f.agents(v.who.Organization, c, v.now, func(cursor string, into *[]agentRow) (next string, err error) {
		return v.api.list(query("/v1/agents", "limit", "200", "cursor", cursor), into)
	})
	return shown, err
}

// agents returns the agents, which it reads with list unless they are fresh.
func (f *fleets) agents(organization uuid.UUID, c *fleetCache, now time.Time, list listAgents) (*agentTable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	aged := c.aged.Swap(false)
	if t := c.agents.Load(); t != nil && !aged && now.Sub(c.read) < agentsFresh {
		return t, nil
	}
	c.empty() // before the next are read, so that both are never in memory
	t := &agentTable{bytes: tableBytes}
	t.memory = f.pool.Reserve(organization, t.bytes, func() {
		t.displaced.Store(true)
		c.agents.CompareAndSwap(t, nil)
	})
	isKept, err := t.read(list)
	if err != nil || !isKept {
		t.memory.Release()
		f.drop(organization, c)
		return t, err
	}
	c.read = now
	c.agents.Store(t)
	if t.displaced.Load() { // before it was stored
		c.agents.CompareAndSwap(t, nil)
	}
	c.idle.Reset(keptFor)
	return t, nil
}

// listAgents reads a page of the API's list of agents, and returns the cursor of the next one, "" for none.
type listAgents func(cursor string, into *[]agentRow) (next string, err error)

// read reads the agents as far as there is memory, and reports whether there is memory to keep them. The first page needs none: it is
// shown in any case.
func (t *agentTable) read(list listAgents) (isKept bool, err error) {
	for cursor, more := "", true; more; {
		var page []agentRow
		if cursor, err = list(cursor, &page); err != nil {
			return false, err
		}
		isKept = t.memory.Resize(t.bytes + bytesOf(page))
		if !isKept && t.size > 0 {
			t.truncated, t.crowded = true, true
			return !t.displaced.Load() && t.memory != nil, nil
		}
		if err := t.add(page); err != nil {
			return false, err
		}
		t.truncated, t.crowded = cursor != "", cursor != "" && !isKept
		more = t.truncated && t.size < mostAgents && isKept
	}
	return isKept, nil
}

// dayOf returns a day in UTC as the API writes it.
func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// foundAgent is an agent that a search found.
type foundAgent struct {
	*keptAgent

	name    string
	lowered string // the name, when it is sorted by that
	spent   spending
}

// find returns the agents whose name or id contains a text, in an order: spend, name or new.
func (f fleet) find(text, state, order string) []foundAgent {
	f.sorting.Lock()
	defer f.sorting.Unlock()
	text = strings.ToLower(text)
	var found []foundAgent
	for a, name := range f.Agents.all() {
		if state != "" && a.state() != state {
			continue
		}
		lowered := ""
		if text != "" || order == "name" {
			lowered = strings.ToLower(name)
		}
		if strings.Contains(lowered, text) || a.matches(text) {
			found = append(found, foundAgent{a, name, lowered, f.Spent.by(a.id)})
		}
	}
	switch order {
	case "name":
		slices.SortStableFunc(found, func(a, b foundAgent) int { return cmp.Compare(a.lowered, b.lowered) })
	case "new":
	default:
		slices.SortStableFunc(found, func(a, b foundAgent) int {
			return cmp.Or(cmp.Compare(b.spent.Month, a.spent.Month), cmp.Compare(b.spent.Today, a.spent.Today))
		})
	}
	return found
}

// rowsOf returns found agents as pages show them.
func rowsOf(found []foundAgent) []agentRow {
	rows := make([]agentRow, len(found))
	for i, a := range found {
		rows[i] = a.row(a.name, a.spent)
	}
	return rows
}
