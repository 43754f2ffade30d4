package feed

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

const (
	// patrolled is how many feeds a patrol looks at, and patrolWorkers how many at once. With more feeds that have work, several
	// patrols share them.
	patrolled     = 512
	patrolWorkers = 8
)

// patrol leads feeds with work and without a leader, because their leaders or the instances that marked agents have ended, and
// leaves the feeds that this instance has not changed for a while.
func (d *Feeds) patrol() {
	for from := int64(0); d.sleep(patrolPause/2 + rand.N(patrolPause)); { //nolint:gosec // any number will do
		from = d.patrolFrom(from)
		for _, a := range d.All() {
			d.keepEntered(a)
		}
	}
}

// keepEntered leaves a feed that this instance has not changed for a while, and tells Redis of the others.
func (d *Feeds) keepEntered(a *ActiveFeed) {
	defer d.recovered(func() {})
	switch {
	case d.isIdle(a):
		_ = d.leave(d.ctx, a) // a later patrol repeats it
	case time.Duration(d.Now().UnixNano()-a.Entered.Load()) >= renewAfter:
		d.WriteEntry(d.ctx, a)
	}
}

// isIdle says whether no call has used the feed for a while, and nothing is left to do.
func (d *Feeds) isIdle(a *ActiveFeed) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return !a.serving && len(a.Marked) == 0 && d.Now().UnixNano()-a.Used.Load() >= IdleFor.Nanoseconds()
}

// patrolFrom looks at the feeds from this rank on, and returns where the next patrol begins.
func (d *Feeds) patrolFrom(from int64) int64 {
	defer d.recovered(func() {})
	ctx, cancel := context.WithTimeout(d.ctx, redisclient.CallTimeout)
	defer cancel()
	found, err := d.Client.Redis().ZRangeWithScores(ctx, d.Keys.Feeds(), from, from+patrolled-1).Result()
	if err != nil {
		d.Client.Suspect(err)
		return from
	}
	_ = kernel.EachOf(ctx, len(found), patrolWorkers, func(ctx context.Context, i int) error {
		defer d.recovered(func() {})
		d.leadIfNoneDoes(ctx, found[i])
		return nil
	})
	if len(found) < patrolled {
		return 0
	}
	return from + patrolled
}

// leadIfNoneDoes leads the feed if it has work and no leader, and forgets it if it has none.
func (d *Feeds) leadIfNoneDoes(ctx context.Context, entry redis.Z) {
	member, _ := entry.Member.(string)
	organization, err := uuid.FromBytes([]byte(member))
	if err != nil || d.isServing(organization) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	r, err := d.Client.Run(ctx, redisclient.Flow{Owner: organization}, leadFeed,
		[]string{d.Keys.Organization(organization), d.Keys.FeedHead(organization), d.Keys.FeedMarked(organization),
			d.Keys.FeedTaken(organization), d.Keys.FeedInstances(organization)},
		LeaseTime.Milliseconds(), ArrivalTime.Milliseconds())
	if err != nil {
		return
	}
	l, err := leadingAt(r)
	switch {
	case err != nil:
	case l.Token != "":
		d.serveAs(organization, l)
	case r.Text(5) == "":
		_, _ = d.Client.Run(ctx, redisclient.Flow{Owner: organization}, dropFeed, []string{d.Keys.Feeds()}, organization, int64(entry.Score))
	}
}

func (d *Feeds) isServing(organization uuid.UUID) bool {
	d.mu.RLock()
	a := d.active[organization]
	d.mu.RUnlock()
	if a == nil {
		return false
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	return a.serving
}

// serveAs serves the feed that this instance leads now.
func (d *Feeds) serveAs(organization uuid.UUID, l Leading) {
	a := d.Of(organization)
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if !a.serving {
		a.Leading, a.unserved, a.waits = l, true, d.Now()
		d.serveLocked(a)
	}
}
