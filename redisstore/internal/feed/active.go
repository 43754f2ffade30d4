package feed

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"remit/internal/redisclient"
)

// ActiveFeed is the feed of an organization that this instance has changed lately.
type ActiveFeed struct {
	Organization uuid.UUID
	Used         atomic.Int64 // when a call last began, in ns since 1970
	Entered      atomic.Int64 // since when Redis knows that this instance may change it, in ns since 1970; 0: it does not
	Confirmed    atomic.Int64 // until when it knows that, in ms since 1970 by its own clock; 0: it does not
	renewing     atomic.Bool
	unsettled    atomic.Bool // calls may still run that this instance will not see the end of
	leads        atomic.Bool // this instance leads it, for the metrics

	turn sync.Mutex // of entering and leaving

	Mu       sync.Mutex
	Marked   map[uuid.UUID]struct{} // to write to Redis
	serving  bool                   // a goroutine serves it; it ends when there is nothing to do
	Leading  Leading
	unserved bool      // it failed, or did not finish
	waits    time.Time // since when it is unfinished and nothing has come of serving it
}

// Leading is what the leader of a feed knows. The zero value leads nothing.
type Leading struct {
	Token string // "" leads nothing
	Last  int64  // number of the last event
	hash  string // of that event
	Wake  Debt   // number of the event that the webhooks are to be woken for
	Due   Debt   // from when something is due that the queue is to say, in ms since 1970
}

// All returns the active feeds.
func (d *Feeds) All() []*ActiveFeed {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]*ActiveFeed, 0, len(d.active))
	for _, a := range d.active {
		all = append(all, a)
	}
	return all
}

// Of returns the organization's feed, as an active one.
func (d *Feeds) Of(organization uuid.UUID) *ActiveFeed {
	d.mu.RLock()
	a := d.active[organization]
	d.mu.RUnlock()
	if a != nil {
		return a
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if a = d.active[organization]; a == nil {
		a = &ActiveFeed{Organization: organization, Marked: map[uuid.UUID]struct{}{}}
		a.Used.Store(d.Now().UnixNano())
		d.active[organization] = a
	}
	return a
}

// Enter returns when Redis knows that this instance may change the organization's agents, or cannot be reached.
func (d *Feeds) Enter(organization uuid.UUID) {
	a, now := d.Of(organization), d.Now().UnixNano()
	a.Used.Store(now) // before it reads entered: see leave
	switch age := time.Duration(now - a.Entered.Load()); {
	case age < renewAfter:
	case age < sureFor:
		if a.renewing.CompareAndSwap(false, true) {
			began := d.begin(func() {
				defer a.renewing.Store(false)
				d.WriteEntry(d.ctx, a)
			})
			if !began {
				a.renewing.Store(false)
			}
		}
	default:
		d.WriteEntry(d.ctx, a)
	}
}

// WriteEntry writes the entry to Redis: first to the organization's server, then the list of feeds that may have work. An
// instance that finds the organization in no list can then be sure that no other one is about to change it.
func (d *Feeds) WriteEntry(ctx context.Context, a *ActiveFeed) {
	a.turn.Lock()
	defer a.turn.Unlock()
	began := d.Now()
	if time.Duration(began.UnixNano()-a.Entered.Load()) < renewAfter { // another call has written it
		return
	}
	ctx, cancel := context.WithTimeout(ctx, failedFor)
	defer cancel()
	f, o := redisclient.Flow{Owner: a.Organization}, a.Organization
	r, err := d.Client.Run(ctx, f, enterFeed, []string{d.Keys.Organization(o), d.Keys.FeedHead(o), d.Keys.FeedInstances(o)},
		d.Instance, enteredFor.Milliseconds(), a.confirmedUntil())
	if err == nil {
		a.Confirmed.Store(r.NumberOr0(0))
		_, err = d.Client.Run(ctx, f, noteFeed, []string{d.Keys.Feeds()}, a.Organization)
	}
	if err != nil {
		began = d.Now().Add(failedFor - sureFor)
	}
	a.Entered.Store(began.UnixNano())
}

// confirmedUntil returns until when Redis knows of this instance, as scripts take it.
func (a *ActiveFeed) confirmedUntil() string {
	if until := a.Confirmed.Load(); until != 0 {
		return strconv.FormatInt(until, 10)
	}
	return ""
}

// leave removes the entry of this instance, which changes the organization no more, unless a call has begun since.
func (d *Feeds) leave(ctx context.Context, a *ActiveFeed) error {
	a.turn.Lock()
	defer a.turn.Unlock()
	a.Entered.Store(0)
	if d.ctx.Err() == nil && d.Now().UnixNano()-a.Used.Load() < IdleFor.Nanoseconds() {
		return nil // it began before it could see that
	}
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	key := d.Keys.FeedInstances(a.Organization)
	if err := d.Client.Redis().ZRem(ctx, key, d.Instance).Err(); err != nil {
		return d.Client.Classify(err, redisclient.BestEffort)
	}
	a.Confirmed.Store(0)
	d.mu.Lock()
	defer d.mu.Unlock()
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if len(a.Marked) == 0 && !a.serving {
		delete(d.active, a.Organization)
	}
	return nil
}

// Mark notes that the agent may have new events, and has them appended to the feed soon.
func (d *Feeds) Mark(organization, agent uuid.UUID) {
	a := d.Of(organization)
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.isUnfinishedLocked() {
		a.waits = d.Now()
	}
	a.Marked[agent] = struct{}{}
	d.serveLocked(a)
}

// serveLocked begins to serve the feed, unless that goes on. The caller holds the feed's lock.
func (d *Feeds) serveLocked(a *ActiveFeed) {
	if !a.serving {
		a.serving = d.begin(func() { d.serve(a) })
	}
}

// isUnfinished says whether there is something left to do for the feed.
func (a *ActiveFeed) isUnfinished() bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.isUnfinishedLocked()
}

func (a *ActiveFeed) isUnfinishedLocked() bool { return len(a.Marked) > 0 || a.unserved }

// takeMarks returns the agents to mark, each in a line.
func (a *ActiveFeed) takeMarks() ([]uuid.UUID, string) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	var lines strings.Builder
	agents := make([]uuid.UUID, 0, len(a.Marked))
	for agent := range a.Marked {
		if len(agents) == MaxMarks {
			break
		}
		agents = append(agents, agent)
		delete(a.Marked, agent)
		lines.WriteString(agent.String() + "\n")
	}
	return agents, lines.String()
}

// MaxMarks is how many agents are marked at once.
const MaxMarks = 1000

func (a *ActiveFeed) giveBack(agents []uuid.UUID) {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	for _, agent := range agents {
		a.Marked[agent] = struct{}{}
	}
}
