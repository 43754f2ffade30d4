package redisstore

import (
	"context"
	"slices"
	"sync"
	"time"

	"remit/internal/event"
	"remit/internal/redisclient"

	"github.com/google/uuid"
	lru "github.com/hashicorp/golang-lru/v2"
)

// feeds is this instance's part in the feeds of organizations: it notes which organizations it may change, marks the agents
// that it has changed, and leads the feeds that no other instance leads. docs/events.md has the protocol.
type feeds struct {
	client   *redisclient.Client
	keys     keyspace
	config   Config
	instance string
	now      func() time.Time
	metrics  *feedMetrics

	mu     sync.RWMutex
	active map[uuid.UUID]*activeFeed

	owners  *lru.Cache[uuid.UUID, uuid.UUID] // agents' organizations
	unknown *unknownCalls
	turns   chan struct{} // a place for each feed that is being served

	ctx   context.Context // ends when the store is closed
	work  sync.Mutex      // begin adds to ended, or finish waits for it
	ended sync.WaitGroup
	stop  context.CancelFunc
}

const (
	// enteredFor is how long Redis takes this instance for one that may change an organization's agents. It says so again after
	// renewAfter, and before a call that begins after sureFor: calls end within callTimeout.
	enteredFor = 10 * time.Second
	renewAfter = 3 * time.Second
	sureFor    = 6 * time.Second
	// idleFor is how long after its last call an instance leaves an organization.
	idleFor = 30 * time.Second
	// failedFor is how long an instance goes on when it cannot say so. Should it end meanwhile, its last events may wait until
	// all agents are looked at again.
	failedFor = time.Second
	// arrivalTime is how long after the end of an instance calls that it had sent may still reach Redis.
	arrivalTime = time.Minute
	// flushPause collects marks: an organization's feed is served so often at the most.
	flushPause = 50 * time.Millisecond
	retryAfter = 300 * time.Millisecond
	// leaseTime is how long a leader that has ended keeps others away.
	leaseTime = 3 * time.Second
	// patrolPause is the interval at which an instance looks for feeds with work that nobody does.
	patrolPause = time.Second

	maxFeedOwners = 1 << 16
	feedTurns     = 32
)

func newFeeds(cfg Config) *feeds {
	if cfg.render == nil {
		cfg.render = event.InFeed.JSON
	}
	owners, _ := lru.New[uuid.UUID, uuid.UUID](maxFeedOwners)
	started := time.Now()
	d := &feeds{
		keys: keyspace{cfg.Prefix}, config: cfg, instance: uuid.NewString(), metrics: newFeedMetrics(),
		active: map[uuid.UUID]*activeFeed{}, owners: owners, unknown: newUnknownCalls(), turns: make(chan struct{}, feedTurns),
		now: func() time.Time { return started.Add(time.Since(started)) }, // which never goes back
	}
	d.ctx, d.stop = context.WithCancel(context.Background())
	return d
}

func (d *feeds) start(client *redisclient.Client) {
	d.client = client
	d.begin(d.patrol)
	d.begin(d.markUnknownCalls)
}

// begin runs work of its own, and says whether it does: not when the store is being closed.
func (d *feeds) begin(work func()) bool {
	d.work.Lock()
	defer d.work.Unlock()
	if d.ctx.Err() != nil {
		return false
	}
	d.ended.Go(func() {
		defer d.recovered(func() {})
		work()
	})
	return true
}

// finish marks what is to be marked, leaves the feeds, and returns after at most finishTime. A feed that it cannot finish, or in
// which calls may still run, it does not leave: another instance finds that this one has gone.
func (d *feeds) finish() {
	d.work.Lock()
	d.stop()
	d.work.Unlock()
	d.ended.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), finishTime)
	defer cancel()
	for _, a := range d.all() {
		if ctx.Err() != nil {
			return
		}
		err := d.finishOne(ctx, a)
		quiet := d.client.UnderWay() == 0 // first: the calls that end after this are unsettled, if they may run
		switch {
		case a.unsettled.Load():
			d.writeEntry(ctx, a)
		case err == nil && quiet:
			_ = d.leave(ctx, a)
		}
	}
}

// finishOne does what is left to do for a feed.
func (d *feeds) finishOne(ctx context.Context, a *activeFeed) error {
	for a.isUnfinished() {
		if err := d.serveOnce(ctx, a); err != nil && err != errFeedLost {
			return err
		}
	}
	return nil
}

// before notes that this instance may change an agent, before it does. See redisclient.Watch.
func (d *feeds) before(_ context.Context, f flow, keys []string) {
	organization := uuid.UUID(f.Owner)
	if organization == uuid.Nil {
		organization, _ = d.ownerOf(d.agentIn(keys), keys)
	}
	if organization != uuid.Nil {
		d.enter(organization)
	}
}

// after marks the agent that a call may have changed. See redisclient.Watch.
func (d *feeds) after(f flow, keys []string, mayRun bool) {
	agent := d.agentIn(keys)
	if agent == uuid.Nil {
		return
	}
	organization := uuid.UUID(f.Owner)
	if organization == uuid.Nil {
		organization, _ = d.owners.Get(agent)
	}
	marked := 0
	if organization != uuid.Nil {
		d.mark(organization, agent)
		marked = 1
	}
	if organization == uuid.Nil || mayRun {
		d.unknown.add(agent, unknownCall{organization, slices.Clone(keys), d.now(), marked, mayRun})
	}
	if mayRun && organization != uuid.Nil && d.ctx.Err() != nil { // too late for markUnknownCalls
		d.of(organization).unsettled.Store(true)
	}
}

// agentIn returns the agent whose trail is among the keys, uuid.Nil for none.
func (d *feeds) agentIn(keys []string) uuid.UUID {
	for _, key := range keys {
		if agent := d.keys.agentOfEvents(key); agent != uuid.Nil {
			return agent
		}
	}
	return uuid.Nil
}

// ownerOf returns the agent's organization, uuid.Nil if it has none. An organization with its record among the keys is its own.
func (d *feeds) ownerOf(agent uuid.UUID, keys []string) (uuid.UUID, error) {
	if agent == uuid.Nil {
		return uuid.Nil, nil
	}
	if organization, known := d.owners.Get(agent); known {
		return organization, nil
	}
	if record := d.keys.organization(agent); slices.Contains(keys, record) {
		found, err := d.client.Call(d.ctx, unprovenFlow, reads, "exists", record)
		if err != nil || found != int64(1) {
			return uuid.Nil, err
		}
		d.owners.Add(agent, agent)
		return agent, nil
	}
	member, err := d.client.Call(d.ctx, unprovenFlow, reads, "hget", d.keys.agent(agent), "organization")
	text, _ := member.(string)
	organization, wrong := uuid.FromBytes([]byte(text))
	if err != nil || wrong != nil {
		return uuid.Nil, err
	}
	d.owners.Add(agent, organization)
	return organization, nil
}

// sleep returns false when the store is being closed.
func (d *feeds) sleep(pause time.Duration) bool {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return d.ctx.Err() == nil
	case <-d.ctx.Done():
		return false
	}
}
