// Package feed appends the events in the trails of agents to the feed of their organization: each once, in order, and numbered.
// One instance leads a feed at a time. docs/events.md has the protocol.
package feed

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// Feeds is this instance's part in the feeds of organizations: it notes which organizations it may change, marks the agents
// that it has changed, and leads the feeds that no other instance leads. docs/events.md has the protocol.
type Feeds struct {
	Client   *redisclient.Client
	Keys     kernel.Keys
	config   Config
	Instance string
	Now      func() time.Time
	Metrics  *feedMetrics

	mu     sync.RWMutex
	active map[uuid.UUID]*ActiveFeed

	Owners  *lru.Cache[uuid.UUID, uuid.UUID] // agents' organizations
	looks   *lru.Cache[uuid.UUID, int64]     // when sessions will be looked at next, in ms since 1970
	unknown *unknownCalls
	Turns   chan struct{} // a place for each feed that is being served

	ctx   context.Context // ends when the store is closed
	Work  sync.Mutex      // begin adds to ended, or finish waits for it
	Ended sync.WaitGroup
	Stop  context.CancelFunc
}

const (
	// enteredFor is how long Redis takes this instance for one that may change an organization's agents. It says so again after
	// renewAfter, and before a call that begins after sureFor: calls end within callTimeout.
	enteredFor = 10 * time.Second
	renewAfter = 3 * time.Second
	sureFor    = 6 * time.Second
	// IdleFor is how long after its last call an instance leaves an organization.
	IdleFor = 30 * time.Second
	// failedFor is how long an instance goes on when it cannot say so. Should it end meanwhile, its last events may wait until
	// all agents are looked at again.
	failedFor = time.Second
	// ArrivalTime is how long after the end of an instance calls that it had sent may still reach Redis.
	ArrivalTime = time.Minute
	// flushPause collects marks: an organization's feed is served so often at the most.
	flushPause = 50 * time.Millisecond
	RetryAfter = 300 * time.Millisecond
	// LeaseTime is how long a leader that has ended keeps others away.
	LeaseTime = 3 * time.Second
	// patrolPause is the interval at which an instance looks for feeds with work and without a leader.
	patrolPause = time.Second

	maxFeedOwners = 1 << 16
	feedTurns     = 32
)

// Config is what feeds need of the store's configuration.
type Config struct {
	Prefix     string       // of every key
	EventsKept int          // of an agent's trail
	Log        *slog.Logger // of panics; nil for none
	NotesDue   bool         // with each event, what will be due after it

	Render func(event.InFeed) ([]byte, error) // for tests; nil means event.InFeed.JSON
}

// New returns the part of this instance in the feeds. It does nothing before Start.
func New(cfg Config) *Feeds {
	if cfg.Render == nil {
		cfg.Render = event.InFeed.JSON
	}
	owners, _ := lru.New[uuid.UUID, uuid.UUID](maxFeedOwners)
	looks, _ := lru.New[uuid.UUID, int64](maxFeedOwners)
	started := time.Now()
	d := &Feeds{
		Keys: kernel.Keys{Prefix: cfg.Prefix}, config: cfg, Instance: uuid.NewString(), Metrics: newFeedMetrics(),
		active: map[uuid.UUID]*ActiveFeed{}, Owners: owners, looks: looks, unknown: newUnknownCalls(), Turns: make(chan struct{}, feedTurns),
		Now: func() time.Time { return started.Add(time.Since(started)) }, // which never goes back
	}
	d.ctx, d.Stop = context.WithCancel(context.Background())
	return d
}

// Start begins the work on feeds. Call Finish at the end.
func (d *Feeds) Start(client *redisclient.Client) {
	d.Client = client
	d.begin(d.patrol)
	d.begin(d.markUnknownCalls)
}

// begin runs work of its own, and says whether it does: not when the store is being closed.
func (d *Feeds) begin(work func()) bool {
	d.Work.Lock()
	defer d.Work.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.Ended.Go(func() {
		defer d.recovered(func() {})
		work()
	})
	return true
}

// Finish marks what is to be marked, leaves the feeds, and returns after at most FinishTime. A feed that it cannot finish, or in
// which calls may still run, it does not leave: another instance finds that this one has gone.
func (d *Feeds) Finish() {
	d.Work.Lock()
	d.Stop()
	d.Work.Unlock()
	d.Ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), kernel.FinishTime)
	defer cancel()
	for _, a := range d.All() {
		if ctx.Err() != nil {
			return
		}
		err := d.finishOne(ctx, a)
		quiet := d.Client.UnderWay() == 0 // first: the calls that end after this are unsettled, if they may run
		switch {
		case a.unsettled.Load():
			d.WriteEntry(ctx, a)
		case err == nil && quiet:
			_ = d.leave(ctx, a)
		}
	}
}

// finishOne does what is left to do for a feed.
func (d *Feeds) finishOne(ctx context.Context, a *ActiveFeed) error {
	for a.isUnfinished() {
		if err := d.serveOnce(ctx, a); err != nil && err != ErrFeedLost {
			return err
		}
	}
	return nil
}

// before notes that this instance may change an agent, before it does. See redisclient.Watch.
func (d *Feeds) before(_ context.Context, f redisclient.Flow, keys []string) {
	organization := uuid.UUID(f.Owner)
	if organization == uuid.Nil {
		organization, _ = d.ownerOf(d.agentIn(keys), keys)
	}
	if organization != uuid.Nil {
		d.Enter(organization)
	}
}

// After marks the agent that a call may have changed. See redisclient.Watch.
func (d *Feeds) After(f redisclient.Flow, keys []string, mayRun bool) {
	agent := d.agentIn(keys)
	if agent == uuid.Nil {
		return
	}
	organization := uuid.UUID(f.Owner)
	if organization == uuid.Nil {
		organization, _ = d.Owners.Get(agent)
	}
	marked := 0
	if organization != uuid.Nil {
		d.Mark(organization, agent)
		marked = 1
	}
	if organization == uuid.Nil || mayRun {
		d.unknown.add(agent, unknownCall{organization, slices.Clone(keys), d.Now(), marked, mayRun})
	}
	if mayRun && organization != uuid.Nil && d.ctx.Err() != nil { // too late for markUnknownCalls
		d.Of(organization).unsettled.Store(true)
	}
}

// agentIn returns the agent whose trail is among the keys, uuid.Nil for none.
func (d *Feeds) agentIn(keys []string) uuid.UUID {
	for _, key := range keys {
		if agent := d.Keys.AgentOfEvents(key); agent != uuid.Nil {
			return agent
		}
	}
	return uuid.Nil
}

// ownerOf returns the agent's organization, uuid.Nil if it has none. An organization with its record among the keys is its own.
func (d *Feeds) ownerOf(agent uuid.UUID, keys []string) (uuid.UUID, error) {
	if agent == uuid.Nil {
		return uuid.Nil, nil
	}
	if organization, known := d.Owners.Get(agent); known {
		return organization, nil
	}
	if record := d.Keys.Organization(agent); slices.Contains(keys, record) {
		found, err := d.Client.Call(d.ctx, kernel.UnprovenFlow, redisclient.Reads, "exists", record)
		if err != nil || found != int64(1) {
			return uuid.Nil, err
		}
		d.Owners.Add(agent, agent)
		return agent, nil
	}
	member, err := d.Client.Call(d.ctx, kernel.UnprovenFlow, redisclient.Reads, "hget", d.Keys.Agent(agent), "organization")
	text, _ := member.(string)
	organization, wrong := uuid.FromBytes([]byte(text))
	if err != nil || wrong != nil {
		return uuid.Nil, err
	}
	d.Owners.Add(agent, organization)
	return organization, nil
}

// sleep returns false when the store is being closed.
func (d *Feeds) sleep(pause time.Duration) bool { return kernel.Rest(d.ctx, pause) == nil }

// Watch returns what the client calls around the calls that may write events.
func (d *Feeds) Watch() redisclient.Watch {
	if d == nil {
		return redisclient.Watch{}
	}
	return redisclient.Watch{Before: d.before, After: d.After}
}

// UnfedFactor is how many events a trail keeps while its feed does not have them, for each that it keeps else.
const UnfedFactor = 10

// FeedFactor is how many events a feed keeps for each that the trail of an agent keeps, and EventRoom how many bytes they may
// take on average: an event takes 64 beside its JSON.
const (
	FeedFactor = 100
	EventRoom  = 512
)

// panickedFor is how long a feed rests after a panic: its cause may be in what it has yet to append.
const panickedFor = time.Second

var errFeedPanicked = errors.New("the loop of a feed panicked")

// recovered keeps a panic from ending the process, counts and logs it, and then does what is left to do. Defer it.
func (d *Feeds) recovered(then func()) {
	cause := recover()
	if cause == nil {
		return
	}
	d.Metrics.Panics.Inc()
	if d.config.Log != nil {
		d.config.Log.Error("the loop of a feed panicked", "cause", cause, "stack", string(debug.Stack()))
	}
	then()
}

// render is Config.render. A panic is an error: the event cannot be written.
func (d *Feeds) render(e event.InFeed) (text []byte, err error) {
	defer d.recovered(func() { err = errFeedPanicked })
	return d.config.Render(e)
}
