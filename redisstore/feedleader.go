package redisstore

import (
	"context"
	"time"

	"remit/internal/event"
)

// serve marks the feed's agents, and leads the feed as far as nobody else does, until there is nothing to do.
func (d *feeds) serve(a *activeFeed) {
	defer d.recovered(func() { d.rest(a, true) })
	pause := flushPause
	for d.sleep(pause) {
		select {
		case d.turns <- struct{}{}:
		case <-d.ctx.Done():
			return
		}
		err := d.serveInTurn(a)
		if d.rest(a, false) {
			return
		}
		switch err {
		case nil:
			pause = flushPause
		case errFeedPanicked:
			pause = panickedFor
		default:
			pause = retryAfter
		}
	}
}

// rest says whether there is nothing to do for the feed, and then ends its serving.
func (d *feeds) rest(a *activeFeed, always bool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if always || !a.isUnfinishedLocked() {
		a.serving = false
		return true
	}
	return false
}

// serveInTurn is serveOnce for who has a place among the turns, which it gives back.
func (d *feeds) serveInTurn(a *activeFeed) error {
	defer func() { <-d.turns }()
	return d.serveOnce(d.ctx, a)
}

func (d *feeds) serveOnce(ctx context.Context, a *activeFeed) (err error) {
	defer d.recovered(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.unserved, err = true, errFeedPanicked
	})
	err = d.flush(ctx, a)
	a.leads.Store(a.leading.token != "")
	defer func() { a.leads.Store(a.leading.token != "") }()
	done := true
	if err == nil && a.leading.token != "" {
		done, err = d.drain(ctx, a)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.waits = d.now()
	}
	a.unserved = err != nil && err != errFeedLost || !done
	return err
}

// flush tells Redis which agents to mark, and leads the feed if nobody else does.
func (d *feeds) flush(ctx context.Context, a *activeFeed) error {
	if time.Duration(d.now().UnixNano()-a.entered.Load()) >= renewAfter {
		d.writeEntry(ctx, a) // so that what is marked here is found, should this instance end
	}
	agents, lines := a.takeMarks()
	confirmed := false
	defer func() {
		if !confirmed {
			a.giveBack(agents)
		}
	}()
	o := a.organization
	r, err := d.client.Run(ctx, flow{Owner: o}, markAgents,
		[]string{d.keys.organization(o), d.keys.feedHead(o), d.keys.feedMarked(o), d.keys.feedTaken(o), d.keys.feedInstances(o)},
		lines, d.instance, enteredFor.Milliseconds(), leaseTime.Milliseconds(), a.leading.token, a.confirmedUntil())
	if err != nil {
		return err
	}
	confirmed = true
	a.confirmed.Store(r.NumberOr0(4))
	a.leading, err = leadingAt(r)
	return err
}

// leadingAt reads the reply of a script that may have made this instance the leader.
func leadingAt(r *reply) (leading, error) {
	l := leading{token: r.Text(0), last: r.Number(1), hash: r.Text(2), wake: r.Text(3)}
	if l.hash == "" {
		l.hash = event.NoHash
	}
	return l, r.Err
}

const (
	// servedAtOnce is how long a feed is served at a time while others wait.
	servedAtOnce = time.Second
	// takenAtOnce is how many agents' trails are read in a pipeline, and trailPage how many events of each.
	takenAtOnce = 64
	trailPage   = 50
	// readTime is how long the leader waits for trails. A server that does not answer must not cost it the lease, which it
	// needs to append what it has read from others.
	readTime = leaseTime / 2
)

// drain appends the events of marked agents until there are none, which ends the leading, or servedAtOnce is over.
func (d *feeds) drain(ctx context.Context, a *activeFeed) (done bool, err error) {
	for began := d.now(); d.now().Sub(began) < servedAtOnce; {
		asleep := d.wakeWebhooks(ctx, a) // which keeps no event out of the feed
		batch, err := d.take(ctx, a)
		if err != nil {
			return false, err
		}
		switch {
		case batch.look:
			err = d.lookAtAll(ctx, a, batch.now)
		case len(batch.trails) == 0 && asleep != nil:
			return false, asleep
		case len(batch.trails) == 0:
			a.leading.token = ""
			return true, nil
		default:
			err = d.appendTrails(ctx, a, batch.trails)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// takenBatch is what the leader has to do next.
type takenBatch struct {
	now    int64    // ms since 1970, of Redis
	trails []*taken // to read
	look   bool     // at all agents
}

func (d *feeds) take(ctx context.Context, a *activeFeed) (takenBatch, error) {
	o := a.organization
	r, err := d.client.Run(ctx, flow{Owner: o}, takeAgents,
		[]string{d.keys.feedHead(o), d.keys.feedMarked(o), d.keys.feedTaken(o), d.keys.feedCursors(o), d.keys.feedInstances(o)},
		a.leading.token, leaseTime.Milliseconds(), takenAtOnce, arrivalTime.Milliseconds(), a.leading.woken)
	if err != nil {
		return takenBatch{}, err
	}
	b := takenBatch{now: r.Number(0), look: r.Text(3) != ""}
	agents, cursors := r.List(1), r.List(2)
	for i := range agents.Values {
		b.trails = append(b.trails, &taken{name: agents.Text(i), cursor: cursors.Optional(i)})
	}
	for _, list := range []*reply{agents, cursors} {
		if r.Err == nil {
			r.Err = list.Err
		}
	}
	return b, r.Err
}
