package console

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/server/pages"
)

// usageReports keeps reports of usage for a minute after their last use: pages show them part by part, and over a large fleet the service
// takes up to a minute for one. What it keeps is only shown to who has just proven to be a viewer of that organization.
type usageReports struct {
	pool  *pages.CachePool
	guard func(what string)
	turns chan struct{} // a place for each reading under way

	mu    sync.Mutex
	known map[usageOf]*usageReport
}

// usageOf names a report, by the parameters of the API.
type usageOf struct {
	organization             uuid.UUID
	from, to, groupBy, agent string
}

// usageReport is a report, read in the background.
type usageReport struct {
	of   usageOf
	idle *time.Timer // drops it

	used    time.Time     // guarded by the mu of usageReports, as all below
	reading chan struct{} // closed when the reading under way ends; nil for none
	next    time.Time     // of the next reading
	failed  error         // of the last one

	last atomic.Pointer[usageTable] // nil before the first
}

const (
	mostReports    = 256 // of all organizations; without their tables they are small
	mostOwnReports = 4   // of one
	usageTurns     = 4
	// usagePause is the least pause between two readings of a report; spentRest and keptFor bound it, too.
	usagePause = 2 * time.Second
)

func newUsageReports(pool *pages.CachePool, guard func(what string)) *usageReports {
	return &usageReports{pool: pool, guard: guard, turns: make(chan struct{}, usageTurns), known: map[usageOf]*usageReport{}}
}

// latest returns the last reading of a report, nil before the first, and why that failed. With anew it begins another if that is due. It
// waits a moment for a reading under way.
func (u *usageReports) latest(of usageOf, a api, now time.Time, anew bool) (*usageTable, error) {
	u.mu.Lock()
	r := u.known[of]
	if r == nil {
		if !u.makeRoom(of.organization) {
			u.mu.Unlock()
			return nil, errManyReports
		}
		r = &usageReport{of: of}
		r.idle = time.AfterFunc(keptFor, func() { u.drop(r) })
		u.known[of] = r
	}
	r.used = now
	r.idle.Reset(keptFor)
	isDue := !now.Before(r.next) && (anew || r.last.Load() == nil)
	if isDue && !u.isReading(of.organization) {
		r.reading, r.failed = make(chan struct{}), nil
		go u.read(r, a)
	}
	reading := r.reading
	u.mu.Unlock()
	if reading != nil {
		select {
		case <-reading:
		case <-time.After(spentWait):
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if last := r.last.Load(); last != nil {
		return last, nil
	}
	return nil, r.failed
}

var errManyReports = &problem{Status: 503, Code: "unavailable", Detail: "too many reports are looked at now. Reload the page later"}

// isReading reports whether a report of the organization is being read: the service makes one at a time.
func (u *usageReports) isReading(organization uuid.UUID) bool {
	for of, r := range u.known {
		if of.organization == organization && r.reading != nil {
			return true
		}
	}
	return false
}

// makeRoom drops the least recently used report that is not being read, of the organization if that has too many.
func (u *usageReports) makeRoom(organization uuid.UUID) bool {
	dropped, hasRoom := roomIn(u.known, mostReports, mostOwnReports, func(of usageOf, r *usageReport) (time.Time, bool, bool) {
		return r.used, of.organization == organization, r.reading != nil
	})
	if dropped != nil {
		u.forget(dropped)
	}
	return hasRoom
}

// drop forgets a report that was not used for keptFor.
func (u *usageReports) drop(r *usageReport) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if r.reading != nil {
		r.idle.Reset(keptFor)
		return
	}
	u.forget(r)
}

func (u *usageReports) forget(r *usageReport) {
	if u.known[r.of] == r {
		delete(u.known, r.of)
	}
	r.idle.Stop()
	if last := r.last.Swap(nil); last != nil {
		last.memory.Release()
	}
}

// read reads once. After an error the last reading stays.
func (u *usageReports) read(r *usageReport, a api) {
	defer u.guard("usage")
	u.turns <- struct{}{}
	defer func() { <-u.turns }()
	began := time.Now()
	var lines []usageLine
	err := errPanicked
	defer func() {
		if err == nil {
			u.keep(r, usageTableOf(lines, began))
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if r.failed = err; isUnauthorized(err) {
			r.failed = nil // the next viewer has another key
		}
		r.next = time.Now().Add(min(max(usagePause, spentRest*time.Since(began)), keptFor))
		close(r.reading)
		r.reading = nil
	}()
	lines, err = a.usage("from", r.of.from, "to", r.of.to, "group_by", r.of.groupBy, "agent_id", r.of.agent)
}

// keep makes a table the last one. Without memory for it only its first page is kept.
func (u *usageReports) keep(r *usageReport, next *usageTable) {
	before, cut := r.last.Load(), next.cut()
	if before != nil {
		before.memory.Release()
	}
	if cut.Cut {
		next.memory = u.pool.Reserve(r.of.organization, next.bytes(), func() {
			next.displaced.Store(true)
			r.last.CompareAndSwap(next, cut)
		})
	}
	r.last.Store(next)
	if cut.Cut && next.memory == nil || next.displaced.Load() {
		r.last.CompareAndSwap(next, cut)
	}
}
