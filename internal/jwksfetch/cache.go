package jwksfetch

import (
	"container/list"
	"time"

	"github.com/google/uuid"
	"remit/internal/token"
)

// bounds bound a cache. One tenant may have a quarter of it.
type bounds struct {
	entries int
	bytes   int
}

var usualBounds = bounds{entries: 4096, bytes: 64 << 20}

// entrySize is what an entry takes without its keys, in bytes.
const entrySize = 1 << 10

// keySet is what was read from a source.
type keySet struct {
	keys token.JWKS
	read time.Time // when its fetch began; zero for none
}

// entry is what is known of a source.
type entry struct {
	Source

	keySet

	tried  time.Time     // when the last fetch began
	failed bool          // the last fetch failed
	flight chan struct{} // closed when the fetch that is under way ends; nil for none

	tenant          *tenant
	size            int // bytes
	inAll, ofItsOwn *list.Element
	forgotten       bool // the cache no longer has it
}

// due says whether the keys are to be fetched before they are used.
func (e *entry) due(now time.Time, again bool) bool {
	pause := failedPause
	if e.isUsable(now) {
		pause = rereadPause
	}
	switch {
	case e.failed && now.Sub(e.tried) < pause:
		return false
	case e.read.IsZero() || now.Sub(e.read) >= freshTime:
		return true
	default:
		return again && now.Sub(e.tried) >= rereadPause
	}
}

func (e *entry) isUsable(now time.Time) bool { return !e.read.IsZero() && now.Sub(e.read) < staleTime }

func (e *entry) usable(now time.Time) (keySet, error) {
	if !e.isUsable(now) {
		return keySet{}, ErrNoKeys
	}
	return e.keySet, nil
}

// bytes is about what the entry takes: each key as text, as numbers, and with what stands around it.
func (e *entry) bytes() int {
	size := entrySize + len(e.URL)
	if e.keys != nil {
		size += 3 * len(e.keys.Text())
	}
	return size
}

// tenant is what one organization takes of the cache and of the places.
type tenant struct {
	places    chan struct{} // of its fetches under way
	slowUntil time.Time     // one of its hosts was slow lately, or it read all the time
	used      time.Duration // that its fetches took, less what time has made good since usedAt
	usedAt    time.Time
	flights   int        // fetches of it that are under way or wait for a place
	waiting   int        // requests that wait for these
	entries   *list.List // of *entry, the least recently used one last
	bytes     int
}

// spend counts what a fetch took, and reports whether the tenant has used more of the quick places than the burst.
func (t *tenant) spend(took, burst time.Duration, now time.Time) (tooMuch bool) {
	t.used = max(0, t.used-now.Sub(t.usedAt)/quickShare) + took
	t.usedAt = now
	return t.used > burst
}

// cache has entries by source. The least recently used ones make room for others, first those of tenants with more than their share.
type cache struct {
	bounds

	sources map[Source]*entry
	tenants map[uuid.UUID]*tenant
	entries *list.List // of *entry, the least recently used one last
	held    int        // bytes
}

func newCache(b bounds) cache {
	return cache{bounds: b, sources: map[Source]*entry{}, tenants: map[uuid.UUID]*tenant{}, entries: list.New()}
}

// entry returns the entry of a source, a new one if there is none, as the most recently used one.
func (c *cache) entry(s Source) *entry {
	if e, found := c.sources[s]; found {
		c.entries.MoveToFront(e.inAll)
		e.tenant.entries.MoveToFront(e.ofItsOwn)
		return e
	}
	of, found := c.tenants[s.Tenant]
	if !found {
		of = &tenant{places: make(chan struct{}, placesOfTenant), entries: list.New()}
		c.tenants[s.Tenant] = of
	}
	e := &entry{Source: s, tenant: of}
	c.sources[s] = e
	e.inAll, e.ofItsOwn = c.entries.PushFront(e), of.entries.PushFront(e)
	c.resize(e)
	return e
}

// resize counts what an entry takes now, and makes room.
func (c *cache) resize(e *entry) {
	if e.forgotten {
		c.dropTenant(e)
		return
	}
	grown := e.bytes() - e.size
	e.size += grown
	e.tenant.bytes += grown
	c.held += grown
	for of := e.tenant; of.entries.Len() > c.bounds.entries/4 || of.bytes > c.bounds.bytes/4; {
		c.forget(of.entries.Back().Value.(*entry))
	}
	for c.entries.Len() > c.bounds.entries || c.held > c.bounds.bytes {
		c.forget(c.leastUsed())
	}
}

// leastUsed returns the least recently used entry of the tenants that have at least an equal share of the cache: a few that fill it
// must not make others forget their keys.
func (c *cache) leastUsed() *entry {
	tooMany := c.entries.Len() > c.bounds.entries
	at := c.entries.Back()
	for of := at.Value.(*entry).tenant; ; of = at.Value.(*entry).tenant {
		if tooMany && of.entries.Len()*len(c.tenants) >= c.entries.Len() || !tooMany && of.bytes*len(c.tenants) >= c.held {
			return at.Value.(*entry)
		}
		at = at.Prev()
	}
}

func (c *cache) forget(e *entry) {
	e.forgotten = true
	delete(c.sources, e.Source)
	c.entries.Remove(e.inAll)
	e.tenant.entries.Remove(e.ofItsOwn)
	e.tenant.bytes -= e.size
	c.held -= e.size
	c.dropTenant(e)
}

// dropTenant forgets a tenant of which nothing is left.
func (c *cache) dropTenant(e *entry) {
	if e.tenant.entries.Len() == 0 && e.tenant.flights == 0 && c.tenants[e.Tenant] == e.tenant {
		delete(c.tenants, e.Tenant)
	}
}
