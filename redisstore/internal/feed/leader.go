package feed

import (
	"cmp"
	"context"
	"time"

	"remit/internal/event"
	"remit/internal/redisclient"
)

// serve marks the feed's agents, and leads the feed unless another instance does, until there is nothing to do.
func (d *Feeds) serve(a *ActiveFeed) {
	defer d.recovered(func() { d.rest(a, true) })
	pause := flushPause
	for d.sleep(pause) {
		select {
		case d.Turns <- struct{}{}:
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
			pause = RetryAfter
		}
	}
}

// rest says whether there is nothing to do for the feed, and then ends its serving.
func (d *Feeds) rest(a *ActiveFeed, always bool) bool {
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if always || !a.isUnfinishedLocked() {
		a.serving = false
		return true
	}
	return false
}

// serveInTurn is serveOnce for who has a place among the turns, which it gives back.
func (d *Feeds) serveInTurn(a *ActiveFeed) error {
	defer func() { <-d.Turns }()
	return d.serveOnce(d.ctx, a)
}

func (d *Feeds) serveOnce(ctx context.Context, a *ActiveFeed) (err error) {
	defer d.recovered(func() {
		a.Mu.Lock()
		defer a.Mu.Unlock()
		a.unserved, err = true, errFeedPanicked
	})
	err = d.Flush(ctx, a)
	a.leads.Store(a.Leading.Token != "")
	defer func() { a.leads.Store(a.Leading.Token != "") }()
	done := true
	if err == nil && a.Leading.Token != "" {
		done, err = d.drain(ctx, a)
	}
	a.Mu.Lock()
	defer a.Mu.Unlock()
	if err == nil {
		a.waits = d.Now()
	}
	a.unserved = err != nil && err != ErrFeedLost || !done
	return err
}

// Flush tells Redis which agents to mark, and leads the feed unless another instance does.
func (d *Feeds) Flush(ctx context.Context, a *ActiveFeed) error {
	if time.Duration(d.Now().UnixNano()-a.Entered.Load()) >= renewAfter {
		d.WriteEntry(ctx, a) // so that what is marked here is found, should this instance end
	}
	agents, lines := a.takeMarks()
	confirmed := false
	defer func() {
		if !confirmed {
			a.giveBack(agents)
		}
	}()
	o := a.Organization
	r, err := d.Client.Run(ctx, redisclient.Flow{Owner: o}, markAgents,
		[]string{d.Keys.Organization(o), d.Keys.FeedHead(o), d.Keys.FeedMarked(o), d.Keys.FeedTaken(o), d.Keys.FeedInstances(o)},
		lines, d.Instance, enteredFor.Milliseconds(), LeaseTime.Milliseconds(), a.Leading.Token, a.confirmedUntil())
	if err != nil {
		return err
	}
	confirmed = true
	a.Confirmed.Store(r.NumberOr0(5))
	a.Leading, err = leadingAt(r)
	return err
}

// leadingAt reads the reply of a script that may have made this instance the leader.
func leadingAt(r *redisclient.Reply) (Leading, error) {
	l := Leading{Token: r.Text(0), Last: r.Number(1), hash: r.Text(2), Wake: Debt{Owed: r.Text(3)}, Due: Debt{Owed: r.Text(4)}}
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
	readTime = LeaseTime / 2
)

// drain appends the events of marked agents until there are none, which ends the leading, or servedAtOnce is over.
func (d *Feeds) drain(ctx context.Context, a *ActiveFeed) (done bool, err error) {
	for began := d.Now(); d.Now().Sub(began) < servedAtOnce; {
		late := d.PayDebts(ctx, a) // which keep no event out of the feed
		batch, err := d.Take(ctx, a)
		if err != nil {
			return false, err
		}
		switch {
		case batch.Look:
			err = d.lookAtAll(ctx, a, batch.Now)
		case len(batch.trails) == 0 && late != nil:
			return false, late
		case len(batch.trails) == 0:
			a.Leading.Token = ""
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
	Now    int64    // ms since 1970, of Redis
	trails []*Taken // to read
	Look   bool     // at all agents
}

// Take takes the agents that were marked, of a feed that this instance leads.
func (d *Feeds) Take(ctx context.Context, a *ActiveFeed) (takenBatch, error) {
	o := a.Organization
	r, err := d.Client.Run(ctx, redisclient.Flow{Owner: o}, TakeAgents,
		[]string{d.Keys.FeedHead(o), d.Keys.FeedMarked(o), d.Keys.FeedTaken(o), d.Keys.FeedCursors(o), d.Keys.FeedInstances(o)},
		a.Leading.Token, LeaseTime.Milliseconds(), takenAtOnce, ArrivalTime.Milliseconds(), a.Leading.Wake.Paid, a.Leading.Due.Paid)
	if err != nil {
		return takenBatch{}, err
	}
	b := takenBatch{Now: r.Number(0), Look: r.Text(3) != ""}
	agents, cursors := r.List(1), r.List(2)
	for i := range agents.Values {
		b.trails = append(b.trails, &Taken{Name: agents.Text(i), Cursor: cursors.Optional(i)})
	}
	return b, cmp.Or(r.Err, agents.Err, cursors.Err)
}
