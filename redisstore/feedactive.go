package redisstore

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
)

// activeFeed is the feed of an organization that this instance has changed lately.
type activeFeed struct {
	organization uuid.UUID
	used         atomic.Int64 // when a call last began, in ns since 1970
	entered      atomic.Int64 // since when Redis knows that this instance may change it, in ns since 1970; 0: it does not
	confirmed    atomic.Int64 // until when it knows that, in ms since 1970 by its own clock; 0: it does not
	renewing     atomic.Bool
	unsettled    atomic.Bool // calls may still run that this instance will not see the end of
	leads        atomic.Bool // this instance leads it, for the metrics

	turn sync.Mutex // of entering and leaving

	mu       sync.Mutex
	marked   map[uuid.UUID]struct{} // to write to Redis
	serving  bool                   // a goroutine serves it; it ends when there is nothing to do
	leading  leading
	unserved bool      // it failed, or did not finish
	waits    time.Time // since when it is unfinished and nothing has come of serving it
}

// leading is what the leader of a feed knows. The zero value leads nothing.
type leading struct {
	token string // "" leads nothing
	last  int64  // number of the last event
	hash  string // of that event
	wake  string // number of the event that the webhooks have yet to be woken for, "" for none
	woken string // of the last one that they were woken for, "" for none
}

// all returns the active feeds.
func (d *feeds) all() []*activeFeed {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]*activeFeed, 0, len(d.active))
	for _, a := range d.active {
		all = append(all, a)
	}
	return all
}

// of returns the organization's feed, as an active one.
func (d *feeds) of(organization uuid.UUID) *activeFeed {
	d.mu.RLock()
	a := d.active[organization]
	d.mu.RUnlock()
	if a != nil {
		return a
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a = d.active[organization]; a == nil {
		a = &activeFeed{organization: organization, marked: map[uuid.UUID]struct{}{}}
		a.used.Store(d.now().UnixNano())
		d.active[organization] = a
	}
	return a
}

// enter returns when Redis knows that this instance may change the organization's agents, or cannot be reached.
func (d *feeds) enter(organization uuid.UUID) {
	a, now := d.of(organization), d.now().UnixNano()
	a.used.Store(now) // before it reads entered: see leave
	switch age := time.Duration(now - a.entered.Load()); {
	case age < renewAfter:
	case age < sureFor:
		if a.renewing.CompareAndSwap(false, true) {
			began := d.begin(func() {
				defer a.renewing.Store(false)
				d.writeEntry(d.ctx, a)
			})
			if !began {
				a.renewing.Store(false)
			}
		}
	default:
		d.writeEntry(d.ctx, a)
	}
}

// writeEntry writes the entry to Redis: first to the organization's server, then the list of feeds that may have work. An
// instance that finds the organization in no list can then be sure that no other one is about to change it.
func (d *feeds) writeEntry(ctx context.Context, a *activeFeed) {
	a.turn.Lock()
	defer a.turn.Unlock()
	began := d.now()
	if time.Duration(began.UnixNano()-a.entered.Load()) < renewAfter { // another call has written it
		return
	}
	ctx, cancel := context.WithTimeout(ctx, failedFor)
	defer cancel()
	f, o := flow{Owner: a.organization}, a.organization
	r, err := d.client.Run(ctx, f, enterFeed, []string{d.keys.organization(o), d.keys.feedHead(o), d.keys.feedInstances(o)},
		d.instance, enteredFor.Milliseconds(), a.confirmedUntil())
	if err == nil {
		a.confirmed.Store(r.NumberOr0(0))
		_, err = d.client.Run(ctx, f, noteFeed, []string{d.keys.feeds()}, a.organization)
	}
	if err != nil {
		began = d.now().Add(failedFor - sureFor)
	}
	a.entered.Store(began.UnixNano())
}

// confirmedUntil returns until when Redis knows of this instance, as scripts take it.
func (a *activeFeed) confirmedUntil() string {
	if until := a.confirmed.Load(); until != 0 {
		return strconv.FormatInt(until, 10)
	}
	return ""
}

// leave removes the entry of this instance, which changes the organization no more, unless a call has begun since.
func (d *feeds) leave(ctx context.Context, a *activeFeed) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.entered.Store(0)
	if d.ctx.Err() == nil && d.now().UnixNano()-a.used.Load() < idleFor.Nanoseconds() {
		return nil // it began before it could see that
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	key := d.keys.feedInstances(a.organization)
	if err := d.client.Redis().ZRem(ctx, key, d.instance).Err(); err != nil {
		return d.client.Classify(err, bestEffort)
	}
	a.confirmed.Store(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.marked) == 0 && !a.serving {
		delete(d.active, a.organization)
	}
	return nil
}

// mark notes that the agent may have new events, and has them appended to the feed soon.
func (d *feeds) mark(organization, agent uuid.UUID) {
	a := d.of(organization)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.isUnfinishedLocked() {
		a.waits = d.now()
	}
	a.marked[agent] = struct{}{}
	d.serveLocked(a)
}

// serveLocked begins to serve the feed, unless that goes on. The caller holds the feed's lock.
func (d *feeds) serveLocked(a *activeFeed) {
	if !a.serving {
		a.serving = d.begin(func() { d.serve(a) })
	}
}

// isUnfinished says whether there is something left to do for the feed.
func (a *activeFeed) isUnfinished() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.isUnfinishedLocked()
}

func (a *activeFeed) isUnfinishedLocked() bool { return len(a.marked) > 0 || a.unserved }

// takeMarks returns the agents to mark, each in a line.
func (a *activeFeed) takeMarks() ([]uuid.UUID, string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var lines strings.Builder
	agents := make([]uuid.UUID, 0, len(a.marked))
	for agent := range a.marked {
		if len(agents) == maxMarks {
			break
		}
		agents = append(agents, agent)
		delete(a.marked, agent)
		lines.WriteString(agent.String() + "\n")
	}
	return agents, lines.String()
}

// maxMarks is how many agents are marked at once.
const maxMarks = 1000

func (a *activeFeed) giveBack(agents []uuid.UUID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, agent := range agents {
		a.marked[agent] = struct{}{}
	}
}
