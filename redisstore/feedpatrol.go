package redisstore

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

const (
	// patrolled is how many feeds a patrol looks at, and patrolWorkers how many at once. With more feeds that have work, several
	// patrols share them.
	patrolled     = 512
	patrolWorkers = 8
)

// patrol leads feeds with work that nobody does, because their leaders or the instances that marked agents have ended, and
// leaves the feeds that this instance has not changed for a while.
func (d *feeds) patrol() {
	for from := int64(0); d.sleep(patrolPause/2 + rand.N(patrolPause)); { //nolint:gosec // any number will do
		from = d.patrolFrom(from)
		for _, a := range d.all() {
			d.keepEntered(a)
		}
	}
}

// keepEntered leaves a feed that this instance has not changed for a while, and tells Redis of the others.
func (d *feeds) keepEntered(a *activeFeed) {
	defer d.recovered(func() {})
	switch {
	case d.isIdle(a):
		_ = d.leave(d.ctx, a) // a later patrol repeats it
	case time.Duration(d.now().UnixNano()-a.entered.Load()) >= renewAfter:
		d.writeEntry(d.ctx, a)
	}
}

// isIdle says whether no call has used the feed for a while, and nothing is left to do.
func (d *feeds) isIdle(a *activeFeed) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.serving && len(a.marked) == 0 && d.now().UnixNano()-a.used.Load() >= idleFor.Nanoseconds()
}

// patrolFrom looks at the feeds from this rank on, and returns where the next patrol begins.
func (d *feeds) patrolFrom(from int64) int64 {
	defer d.recovered(func() {})
	ctx, cancel := context.WithTimeout(d.ctx, callTimeout)
	defer cancel()
	found, err := d.client.Redis().ZRangeWithScores(ctx, d.keys.feeds(), from, from+patrolled-1).Result()
	if err != nil {
		d.client.Suspect(err)
		return from
	}
	places := make(chan struct{}, patrolWorkers)
	var group sync.WaitGroup
	for _, entry := range found {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			defer d.recovered(func() {})
			d.leadIfNobodyDoes(ctx, entry)
		})
	}
	group.Wait()
	if len(found) < patrolled {
		return 0
	}
	return from + patrolled
}

// leadIfNobodyDoes leads the feed if it has work that nobody does, and forgets it if it has none.
func (d *feeds) leadIfNobodyDoes(ctx context.Context, entry redis.Z) {
	member, _ := entry.Member.(string)
	organization, err := uuid.FromBytes([]byte(member))
	if err != nil || d.isServing(organization) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := d.client.Run(ctx, flow{Owner: organization}, leadFeed,
		[]string{d.keys.organization(organization), d.keys.feedHead(organization), d.keys.feedMarked(organization),
			d.keys.feedTaken(organization), d.keys.feedInstances(organization)},
		leaseTime.Milliseconds(), arrivalTime.Milliseconds())
	if err != nil {
		return
	}
	l, err := leadingAt(r)
	switch {
	case err != nil:
	case l.token != "":
		d.serveAs(organization, l)
	case r.Text(4) == "":
		_, _ = d.client.Run(ctx, flow{Owner: organization}, dropFeed, []string{d.keys.feeds()}, organization, int64(entry.Score))
	}
}

func (d *feeds) isServing(organization uuid.UUID) bool {
	d.mu.RLock()
	a := d.active[organization]
	d.mu.RUnlock()
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.serving
}

// serveAs serves the feed that this instance leads now.
func (d *feeds) serveAs(organization uuid.UUID, l leading) {
	a := d.of(organization)
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.serving {
		a.leading, a.unserved, a.waits = l, true, d.now()
		d.serveLocked(a)
	}
}
