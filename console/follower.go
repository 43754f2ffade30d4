package console

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"remit/server/pages"
)

// followers follow the events of organizations whose pages are open: one reader for all viewers of an organization.
type followers struct {
	mu    sync.Mutex
	known map[uuid.UUID]*follower
}

const (
	// tick collects events: viewers get at most four updates a second.
	tick = 250 * time.Millisecond
	// followWait is how long a read waits for the next event.
	followWait = "10"
	followFail = time.Second // pause after a read that failed
	// idleTime is how long a follower goes on without a viewer.
	idleTime = time.Minute
	// mostFollowed bounds the organizations that are followed at once.
	mostFollowed = 256
)

// follower reads the events of one organization, tells viewers of those that concern what they look at, and counts.
type follower struct {
	console      *Console
	organization uuid.UUID

	telling sync.Mutex // while viewers are sent events; taken before mu

	mu      sync.Mutex
	key     string // the API key of the viewer who came last; each viewer's own requests use the viewer's own
	used    time.Time
	viewers map[*viewing]struct{}

	refreshes allowance

	looks   map[string]*look // by session
	stats   stats
	caught  bool // all events that are kept have been counted, so tell counts the others
	begun   bool
	seen    int64 // number of the last event that viewers were sent, once it has begun
	dropped bool  // another organization has its place
	ended   bool  // it notifies viewers no more

	from netip.Addr // of the viewer that began it; invalid when unknown
}

var errManyFollowed = &problem{Status: 503, Code: "unavailable", Detail: "too many organizations are looked at now. Reload the page later"}

// follow returns the follower of the visitor's organization.
func (c *Console) follow(v *visit) (*follower, error) {
	var from netip.Addr
	if v.ctx != nil {
		from = c.host.ClientAddress(v.ctx)
	}
	c.followers.mu.Lock()
	defer c.followers.mu.Unlock()
	f := c.followers.known[v.who.Organization]
	if f == nil {
		if len(c.followers.known) >= mostFollowed && !c.followers.makeRoom(from) {
			return nil, errManyFollowed
		}
		f = &follower{console: c, organization: v.who.Organization, viewers: map[*viewing]struct{}{}, stats: newStats(), from: from}
		c.followers.known[f.organization] = f
		f.use(v)
		go f.run()
	}
	f.use(v)
	return f, nil
}

// makeRoom drops the follower without a viewer that was used longest ago. If all have viewers, it drops one of the client address that
// began most of them, unless the newcomer's would then have as many: one client cannot keep the others out.
func (f *followers) makeRoom(newcomer netip.Addr) bool {
	var idle, last uuid.UUID
	var oldest time.Time // when that of idle was used
	begun := map[netip.Addr]int{}
	for organization, one := range f.known {
		if one.from.IsValid() {
			begun[one.from]++
		}
		if used, isIdle := one.idleSince(); isIdle && (idle == uuid.Nil || used.Before(oldest)) {
			idle, oldest = organization, used
		}
	}
	if idle != uuid.Nil {
		f.drop(idle)
		return true
	}
	for organization, one := range f.known {
		if last == uuid.Nil || begun[one.from] > begun[f.known[last].from] {
			last = organization
		}
	}
	if last == uuid.Nil || begun[f.known[last].from] <= begun[newcomer]+1 {
		return false
	}
	f.drop(last)
	return true
}

func (f *followers) drop(organization uuid.UUID) {
	one := f.known[organization]
	one.mu.Lock()
	one.dropped = true
	one.mu.Unlock()
	one.dismiss()
	delete(f.known, organization)
}

// idleSince returns when a viewer last used the follower, and whether it has none now.
func (f *follower) idleSince() (used time.Time, isIdle bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used, len(f.viewers) == 0
}

func (f *follower) use(v *visit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key, f.used = v.signIn.APIKey, v.now
}

// retire forgets the follower, unless it is wanted: no viewer finds one that is about to end.
func (f *follower) retire(always bool) bool {
	all := &f.console.followers
	all.mu.Lock()
	defer all.mu.Unlock()
	if !always && f.isWanted() {
		return false
	}
	if all.known[f.organization] == f {
		delete(all.known, f.organization)
	}
	return true
}

// run reads events until no viewer has looked for a while, the key ends, or the server stops.
func (f *follower) run() {
	defer f.console.host.Recover("follower")
	defer f.retire(true)
	defer f.dismiss()
	head, err := f.head()
	for ; err != nil; head, err = f.head() {
		if isUnauthorized(err) && !f.useAnother() || f.retire(false) || !f.pause(followFail) {
			return
		}
	}
	f.begin(head)
	go f.catchUp()
	for after := head; !f.retire(false); {
		began := time.Now()
		events, _, err := f.api().feed(after, "wait", followWait)
		switch {
		case isUnauthorized(err) && !f.useAnother():
			return
		case err != nil:
			if !f.pause(followFail) {
				return
			}
		case len(events) > 0:
			after = events[len(events)-1].Sequence
			f.tell(events)
			if len(events) < feedPage && !f.pause(tick) {
				return
			}
		case time.Since(began) < followFail: // the wait was cut short
			if !f.pause(followFail) {
				return
			}
		}
	}
}

// catchUp counts the events that are kept already, up to the last one that viewers were sent. tell counts those that come then, so all are
// counted in their order.
func (f *follower) catchUp() {
	defer f.console.host.Recover("follower")
	known, near := false, false // since when events are kept; that all are counted but what came meanwhile
	for after := int64(0); ; {
		var done bool
		var err error
		if !known {
			err = f.noteOldest()
			known, done = err == nil, f.hasEnded()
		}
		if known {
			after, near, done, err = f.countPage(after, near)
		}
		pause := time.Duration(0)
		if err != nil {
			pause = followFail
		}
		if done || !f.pause(pause) {
			return
		}
	}
}

// countPage counts a page of the events that are kept, and returns up to which they are counted, and whether that is up to the last one that
// viewers had been sent before. Alone, it lets viewers be sent none meanwhile: else it would never catch up with a busy organization.
func (f *follower) countPage(after int64, alone bool) (next int64, near, done bool, err error) {
	if alone {
		f.telling.Lock()
		defer f.telling.Unlock()
	}
	until := f.lastSeen()
	events, next, err := f.api().feed(after, "types", strings.Join(countedTypes, ","))
	if err != nil {
		return after, false, f.hasEnded(), err
	}
	if next <= after || next > until {
		next = until
	}
	return next, next == until, f.countKept(events, next), nil
}

// countKept counts events that are kept already, and reports whether there are no others, or the follower has ended.
func (f *follower) countKept(events []eventRow, until int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range events {
		if e.Sequence <= until {
			f.stats.count(e)
		}
	}
	if f.caught = until == f.seen; f.caught {
		f.tellCaught()
	}
	return f.caught || f.ended
}

// tellCaught asks for a refresh of the pages that say that events are still being read. It is called with mu held.
func (f *follower) tellCaught() {
	for w := range f.viewers {
		if w.about == aboutAll {
			w.changed = urgent
			w.rouse()
		}
	}
}

func (f *follower) hasEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended
}

// noteOldest notes since when events are kept: a lease that was granted before is not counted.
func (f *follower) noteOldest() error {
	oldest, err := f.api().oldest()
	if oldest.Sequence > 1 {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.stats.leases.knowFrom(oldest.OccurredAt.Add(longestLease))
	}
	return err
}

func (f *follower) api() api {
	f.mu.Lock()
	defer f.mu.Unlock()
	return api{host: f.console.host, key: f.key}
}

// useAnother takes the API key of another viewer, when that of the last one has ended.
func (f *follower) useAnother() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.viewers {
		if key := w.visit.signIn.APIKey; key != f.key {
			f.key = key
			return true
		}
	}
	return false
}

// isWanted reports whether a viewer looks, or has just looked.
func (f *follower) isWanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.dropped && (len(f.viewers) > 0 || time.Since(f.used) < idleTime)
}

// dismiss ends the streams of the viewers: browsers connect again, and find another follower.
func (f *follower) dismiss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for w := range f.viewers {
		w.dismissed = true
		w.rouse()
	}
}

func (f *follower) pause(pause time.Duration) bool {
	select {
	case <-f.console.host.Stopping():
		return false
	case <-time.After(pause):
		return true
	}
}

// head returns the number of the last event.
func (f *follower) head() (int64, error) {
	c, err := f.api().checkpoint()
	return c.Sequence, err
}

// checkpoint is where an organization's events end.
type checkpoint struct {
	jwt.RegisteredClaims

	Sequence int64  `json:"seq"`
	Hash     string `json:"hash"`
	Issued   int64  `json:"iat"`
	Text     string `json:"-"` // as the service signed it
}

// checkpoint reads the signed checkpoint. The server made it a moment ago, so its signature needs no check here.
func (a api) checkpoint() (checkpoint, error) {
	var c checkpoint
	err := a.call(pages.Call{Method: get, Path: "/v1/events/checkpoint"}, nil, func(r pages.Reply) { c.Text = string(r.Body) })
	if err == nil {
		_, _, err = jwt.NewParser().ParseUnverified(c.Text, &c)
	}
	return c, err
}
