package console

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// refreshHeader marks the request of a page that a browser shows already: its script takes over what differs.
const refreshHeader = "Remit-Refresh"

const (
	// eventPause is the least time between two refreshes of a page that events ask for.
	eventPause = time.Second
	// sumPause is the least between two that charges and sums ask for: there may be some every second.
	sumPause = 5 * time.Second
	// calmPause is the time between two that nothing asks for: an API key may expire soon, or a webhook fail.
	calmPause = 30 * time.Second
	// sumLook is how often a page that is open looks whether something has been added up anew.
	sumLook = 2 * time.Second
)

// urgency is how soon a page is to be read anew.
type urgency int

const (
	calm urgency = iota
	summed
	urgent
)

var pauses = map[urgency]time.Duration{calm: calmPause, summed: sumPause, urgent: eventPause}

// refreshing decides when a viewer's page is read anew. Patches and news bring only what they name. Only the viewer's own goroutine uses it.
type refreshing struct {
	isOff  bool      // the page shows nothing that changes
	wanted urgency   // since the last refresh
	at     time.Time // of the last refresh
	next   time.Time // before then there is none

	sums    *spentOf // what the page shows the sum of; nil for none
	sumsAt  time.Time
	shownAt int64  // when the reading on the page was made, in milliseconds since 1970; 0 for none
	shown   *spent // nil before it is known
}

// newRefreshing reads what a page says of itself.
func newRefreshing(v *visit, shows bool) refreshing {
	r := refreshing{isOff: !shows, at: v.now, next: v.now.Add(calmPause)}
	text, agent := v.queryParam("spent"), v.queryParam("agent")
	id, err := uuid.Parse(agent)
	if text == "" || agent != "" && err != nil {
		return r
	}
	r.shownAt, _ = strconv.ParseInt(text, 10, 64) // 0 makes the page show the next one
	r.sums, r.sumsAt = &spentOf{organization: v.who.Organization}, v.now
	if agent != "" {
		r.sums.agent = id.String() // in one spelling, so that an agent is added up once
	}
	return r
}

// spentAt returns what a page says of the reading that it shows.
func spentAt(last *spent) string {
	if last == nil {
		return "0"
	}
	return strconv.FormatInt(last.At.UnixMilli(), 10)
}

// ask notes that the page shows something old.
func (r *refreshing) ask(how urgency) { r.wanted = max(r.wanted, how) }

// lookAtSums asks for a refresh when what the page shows has been added up anew, and differs.
func (r *refreshing) lookAtSums(v *visit, now time.Time) {
	if r.sums == nil || now.Before(r.sumsAt) {
		return
	}
	last, _ := v.console.fleets.spendings(*r.sums, now).begin(v.api, now)
	if r.sumsAt = now.Add(sumLook); last == nil {
		r.sumsAt = now.Add(tick)
		return
	}
	switch {
	case r.shown == nil && last.At.UnixMilli() == r.shownAt, r.shown != nil && last.equals(r.shown):
	case r.shownAt == 0:
		r.ask(urgent)
	default:
		r.ask(summed)
	}
	r.shown, r.shownAt = last, last.At.UnixMilli()
}

// equals reports whether two readings have the same amounts.
func (s *spent) equals(other *spent) bool {
	return s == other || s.Total == other.Total && s.Problem == other.Problem && slices.Equal(s.agents, other.agents) && slices.Equal(s.types, other.types)
}

// isDue reports whether the page is to be read anew now.
func (r *refreshing) isDue(a *allowance, now time.Time) bool {
	if r.isOff {
		return false
	}
	if r.next = r.at.Add(pauses[r.wanted]); now.Before(r.next) {
		return false
	}
	if wait := a.take(now); wait > 0 {
		r.next = now.Add(wait)
		return false
	}
	next := calm
	if r.wanted == urgent { // figures may follow their event: an expired session counts as active until it is recorded
		next = summed
	}
	r.wanted, r.at, r.next = next, now, now.Add(pauses[next])
	return true
}

// nextLook returns when there is something to decide again.
func (r *refreshing) nextLook(latest time.Time) time.Time {
	if !r.isOff && r.next.Before(latest) {
		latest = r.next
	}
	if r.sums != nil && r.sumsAt.Before(latest) {
		latest = r.sumsAt
	}
	return latest
}

// urgencyOfKind returns how soon a page about the whole organization is to be read anew after an event.
func urgencyOfKind(kind string) urgency {
	switch room, _, _ := strings.Cut(kind, "."); {
	case room == "token" && kind != "token.reuse_detected": // no page about all has them
		return calm
	case room == "transaction", room == "lease":
		return summed
	}
	return urgent
}

// allowance bounds what the refreshes of an organization's pages cost, however many viewers and events there are. Without any left
// pages wait; patches and news go on.
type allowance struct {
	mu    sync.Mutex
	left  time.Duration // below 0 when refreshes cost more than expected
	usual time.Duration // what one costs
	owed  int           // taken, and not settled yet
	at    time.Time
}

// cost is what a page takes of a processor, about: how long it takes also depends on what else runs.
type cost time.Duration

// Measured on a list of 10,000 agents, and on pages of many small objects.
const (
	callCost = cost(100 * time.Microsecond)
	byteCost = cost(20 * time.Nanosecond)
)

// add adds a call of the API, or a page that was written; nil counts nothing.
func (c *cost) add(bytes int) {
	if c != nil {
		*c += callCost + cost(bytes)*byteCost
	}
}

const (
	refreshShare = 50                     // one part in so many of a core
	refreshBurst = 100 * time.Millisecond // that a quiet time leaves
	firstCost    = 5 * time.Millisecond   // of a refresh, before one was measured
	mostOwed     = 64                     // a page may be left before it is refreshed
)

// take takes what a refresh usually costs, or returns how long to wait for that.
func (a *allowance) take(now time.Time) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() {
		a.left, a.usual = refreshBurst, firstCost
	} else {
		a.left = min(a.left+now.Sub(a.at)/refreshShare, refreshBurst)
	}
	a.at = now
	if a.left <= 0 {
		return max(-a.left*refreshShare, tick)
	}
	a.left -= a.usual
	a.owed = min(a.owed+1, mostOwed)
	return 0
}

// settle corrects what take took by what a refresh did cost. A refresh that none was taken for changes nothing: otherwise a viewer who asks
// for many would stop those of all others.
func (a *allowance) settle(cost time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed == 0 {
		return
	}
	a.owed--
	a.left -= cost - a.usual
	a.usual += (cost - a.usual) / 4
}

// handleRefresh answers with the page, for a browser that shows it already.
func (v *visit) handleRefresh() error {
	v.api.cost = new(cost)
	err := v.page.handle(v)
	v.api.cost.add(len(v.ctx.Response.Body()))
	v.console.followers.mu.Lock()
	f := v.console.followers.known[v.who.Organization]
	v.console.followers.mu.Unlock()
	if f != nil {
		f.refreshes.settle(time.Duration(*v.api.cost))
	}
	return err
}
