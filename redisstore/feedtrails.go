package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
)

// taken is a marked agent whose trail the leader reads.
type taken struct {
	name    string // the agent's id, as text
	cursor  string // id of its last event in the feed, "" for none
	agent   uuid.UUID
	entries []redis.XMessage     // after the cursor
	lost    bool                 // events between the cursor and these may be gone
	more    bool                 // the trail has more
	length  int64                // of the trail, in events
	states  map[uuid.UUID]string // pre-states, by transaction
	failed  error                // the read; the trail is marked again
}

// appendTrails reads the trails, appends their events to the feed, and trims those that are long.
func (d *feeds) appendTrails(ctx context.Context, a *activeFeed, trails []*taken) error {
	d.readTrails(ctx, a.organization, trails)
	if err := d.readStates(ctx, trails); err != nil {
		return err
	}
	var failed error
	p := &appending{feeds: d, feed: a}
	for _, t := range trails {
		if t.failed != nil {
			failed = t.failed
		}
		if err := p.add(t); err != nil {
			return err
		}
		if p.count >= appendedAtOnce || p.entries.Len() >= bytesAtOnce {
			if err := p.send(ctx); err != nil {
				return err
			}
		}
	}
	if err := p.send(ctx); err != nil {
		return err
	}
	for _, t := range trails {
		if err := d.trim(ctx, a, t); err != nil {
			failed = err
		}
	}
	return failed
}

const (
	// appendedAtOnce and bytesAtOnce are from how many events and bytes on they are sent.
	appendedAtOnce = 200
	bytesAtOnce    = 256 << 10
	// spareEvents is how many events a trail has beyond those that are kept before it is trimmed.
	spareEvents = 100
)

// trim trims a trail, of events that the feed has. If that fails or must go on, the agent is marked again.
func (d *feeds) trim(ctx context.Context, a *activeFeed, t *taken) error {
	fed := t.cursor
	if n := len(t.entries); n > 0 {
		fed = t.entries[n-1].ID
	}
	if fed == "" || t.length <= int64(d.config.EventsKept)+spareEvents {
		return nil
	}
	r, err := d.client.Run(ctx, flow{Owner: a.organization}, trimTrail, []string{d.keys.events(t.agent)}, d.config.EventsKept, fed)
	if err != nil || r.Number(0) > 0 {
		a.giveBack([]uuid.UUID{t.agent})
	}
	return err
}

// readTrails reads the trails in one pipeline per server, each from its cursor on, which must still be there: else events after
// it may be gone too. An agent of another organization has no events here.
func (d *feeds) readTrails(ctx context.Context, organization uuid.UUID, trails []*taken) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	owners, pages, lengths := make([]*redis.StringCmd, len(trails)), make([]*redis.XMessageSliceCmd, len(trails)), make([]*redis.IntCmd, len(trails))
	_, err := d.client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, t := range trails {
			t.agent, _ = uuid.Parse(t.name)
			start := "-"
			if t.cursor != "" {
				start = t.cursor
			}
			owners[i] = p.HGet(ctx, d.keys.agent(t.agent), "organization")
			pages[i] = p.XRangeN(ctx, d.keys.events(t.agent), start, "+", trailPage+1)
			lengths[i] = p.XLen(ctx, d.keys.events(t.agent))
		}
		return nil
	})
	d.client.Suspect(err)
	for i, t := range trails {
		owner, err := owners[i].Result()
		if err != nil && err != redis.Nil {
			t.failed = d.client.Classify(err, reads)
		}
		page, err := pages[i].Result()
		if err != nil && t.failed == nil {
			t.failed = d.client.Classify(err, reads)
		}
		if t.failed == nil && (owner == string(organization[:]) || t.agent == organization) {
			t.take(page)
			if t.length, err = lengths[i].Result(); err == nil && t.cursor != "" && len(page) == 0 && t.length > 0 {
				err = d.readAgain(ctx, t)
			}
			if err != nil {
				t.failed = d.client.Classify(err, reads)
			}
		}
	}
}

// readAgain reads a trail that ends before its cursor, from its beginning: a failover has lost what came after, and the clock went back
// behind it. The feed gets again what it had of the trail, because nothing tells that from what is new.
func (d *feeds) readAgain(ctx context.Context, t *taken) error {
	page, err := d.client.Redis().XRangeN(ctx, d.keys.events(t.agent), "-", "+", trailPage+1).Result()
	if t.more = len(page) > trailPage; t.more {
		page = page[:trailPage]
	}
	t.entries, t.lost = page, len(page) > 0
	return err
}

// take takes a page of the trail that begins at the cursor.
func (t *taken) take(page []redis.XMessage) {
	if t.cursor != "" && len(page) > 0 {
		switch page[0].ID {
		case t.cursor:
			page = page[1:]
		case nextEventID(t.cursor): // the cursor alone is gone
		default:
			t.lost = true
		}
	}
	if t.more = len(page) >= trailPage; t.more {
		page = page[:trailPage]
	}
	t.entries = page
}

// appending is what the leader is about to append.
type appending struct {
	feeds   *feeds
	feed    *activeFeed
	count   int      // of events
	lost    int      // of those, how many are EventsLost
	times   []uint64 // of the changes, in ms since 1970
	hash    string
	entries strings.Builder
	agents  strings.Builder
}

func (p *appending) add(t *taken) error {
	cursor, again := "-", "0"
	if t.lost {
		e := lostEvent(nextEventID(t.cursor))
		e.Time = timeOfEvent(t.entries[0].ID)
		if err := p.addEvent(t.agent, e); err != nil {
			return err
		}
	}
	for _, entry := range t.entries {
		e := trailEvent(entry)
		if state := t.states[e.Transaction]; state != "" && slices.Contains(withPreState, e.Type) {
			e.PreState = jsontext.Value(state)
		}
		err := p.addEvent(t.agent, e)
		if err != nil { // no version can write it: it must not keep back those after it
			err = p.addEvent(t.agent, lostEvent(entry.ID))
		}
		if err != nil {
			return err
		}
		cursor = entry.ID
		id, _ := parseEventID(cursor)
		p.times = append(p.times, id.ms)
	}
	if t.more || t.failed != nil {
		again = "1"
	}
	p.agents.WriteString(t.name + " " + cursor + " " + again + "\n")
	return nil
}

func (p *appending) addEvent(agent uuid.UUID, e Event) error {
	l := p.feed.leading
	previous := l.hash
	if p.count > 0 {
		previous = p.hash
	}
	next := e.InFeed(p.feed.organization, agent, l.last+int64(p.count)+1, previous)
	text, err := p.feeds.render(next)
	if err != nil && next.PreState != nil { // it is what a client sent
		next.PreState = nil
		text, err = p.feeds.render(next)
	}
	if err != nil {
		return err
	}
	p.entries.WriteString(e.Type + " ")
	p.entries.Write(text)
	p.entries.WriteByte('\n')
	p.hash = event.Hash(text)
	p.count++
	if e.Type == EventsLost {
		p.lost++
	}
	return nil
}

// send appends what was added. When it fails, the leader knows no longer where the feed ends, and leads no more.
func (p *appending) send(ctx context.Context) error {
	if p.agents.Len() == 0 {
		return nil
	}
	d, o, l := p.feeds, p.feed.organization, &p.feed.leading
	r, err := d.client.Run(ctx, flow{Owner: o}, appendEvents,
		[]string{d.keys.feedHead(o), d.keys.feed(o), d.keys.feedCursors(o), d.keys.feedMarked(o), d.keys.feedTaken(o), d.keys.webhooks(o)},
		l.token, leaseTime.Milliseconds(), l.last, p.hash, p.entries.String(), p.agents.String(),
		d.config.EventsKept*feedFactor, d.config.EventsKept*feedFactor*eventRoom)
	if err != nil {
		return err
	}
	if l.last = r.Number(0); p.count > 0 {
		l.hash = p.hash
	}
	if r.Text(1) != "" {
		l.wake = strconv.FormatInt(l.last, 10)
	}
	d.metrics.appended(p, r.Number(2))
	p.count, p.lost, p.times, p.hash = 0, 0, nil, ""
	p.entries.Reset()
	p.agents.Reset()
	return r.Err
}
