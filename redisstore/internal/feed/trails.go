package feed

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/event"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
)

// Taken is a marked agent whose trail the leader reads.
type Taken struct {
	Name    string // the agent's id, as text
	Cursor  string // id of its last event in the feed, "" for none
	agent   uuid.UUID
	entries []redis.XMessage     // after the cursor
	Lost    bool                 // events between the cursor and these may be gone
	more    bool                 // the trail has more
	length  int64                // of the trail, in events
	states  map[uuid.UUID]string // pre-states, by transaction
	Failed  error                // the read; the trail is marked again
}

// appendTrails reads the trails, appends their events to the feed, and trims those that are long.
func (d *Feeds) appendTrails(ctx context.Context, a *ActiveFeed, trails []*Taken) error {
	d.ReadTrails(ctx, a.Organization, trails)
	if err := d.readStates(ctx, trails); err != nil {
		return err
	}
	var failed error
	p := &Appending{Feeds: d, Feed: a}
	for _, t := range trails {
		if t.Failed != nil {
			failed = t.Failed
		}
		if err := p.add(t); err != nil {
			return err
		}
		if p.count >= appendedAtOnce || p.entries.Len() >= bytesAtOnce {
			if err := p.Send(ctx); err != nil {
				return err
			}
		}
	}
	if err := p.Send(ctx); err != nil {
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
	// SpareEvents is how many events a trail has beyond those that are kept before it is trimmed.
	SpareEvents = 100
)

// trim trims a trail, of events that the feed has. If that fails or must go on, the agent is marked again.
func (d *Feeds) trim(ctx context.Context, a *ActiveFeed, t *Taken) error {
	fed := t.Cursor
	if n := len(t.entries); n > 0 {
		fed = t.entries[n-1].ID
	}
	if fed == "" || t.length <= int64(d.config.EventsKept)+SpareEvents {
		return nil
	}
	r, err := d.Client.Run(ctx, redisclient.Flow{Owner: a.Organization}, trimTrail, []string{d.Keys.Events(t.agent)}, d.config.EventsKept, fed)
	if err != nil || r.Number(0) > 0 {
		a.giveBack([]uuid.UUID{t.agent})
	}
	return err
}

// ReadTrails reads the trails in one pipeline per server, each from its cursor on, which must still be there: else events after
// it may be gone too. An agent of another organization has no events here.
func (d *Feeds) ReadTrails(ctx context.Context, organization uuid.UUID, trails []*Taken) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	owners, pages, lengths := make([]*redis.StringCmd, len(trails)), make([]*redis.XMessageSliceCmd, len(trails)), make([]*redis.IntCmd, len(trails))
	_, err := d.Client.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, t := range trails {
			t.agent, _ = uuid.Parse(t.Name)
			start := "-"
			if t.Cursor != "" {
				start = t.Cursor
			}
			owners[i] = p.HGet(ctx, d.Keys.Agent(t.agent), "organization")
			pages[i] = p.XRangeN(ctx, d.Keys.Events(t.agent), start, "+", trailPage+1)
			lengths[i] = p.XLen(ctx, d.Keys.Events(t.agent))
		}
		return nil
	})
	d.Client.Suspect(err)
	for i, t := range trails {
		owner, err := owners[i].Result()
		if err != nil && err != redis.Nil {
			t.Failed = d.Client.Classify(err, redisclient.Reads)
		}
		page, err := pages[i].Result()
		if err != nil && t.Failed == nil {
			t.Failed = d.Client.Classify(err, redisclient.Reads)
		}
		if t.Failed == nil && (owner == string(organization[:]) || t.agent == organization) {
			t.Take(page)
			if t.length, err = lengths[i].Result(); err == nil && t.Cursor != "" && len(page) == 0 && t.length > 0 {
				err = d.readAgain(ctx, t)
			}
			if err != nil {
				t.Failed = d.Client.Classify(err, redisclient.Reads)
			}
		}
	}
}

// readAgain reads a trail that ends before its cursor, from its beginning: a failover has lost what came after, and the clock went back
// behind it. The feed gets again what it had of the trail, because nothing tells that from what is new.
func (d *Feeds) readAgain(ctx context.Context, t *Taken) error {
	page, err := d.Client.Redis().XRangeN(ctx, d.Keys.Events(t.agent), "-", "+", trailPage+1).Result()
	if t.more = len(page) > trailPage; t.more {
		page = page[:trailPage]
	}
	t.entries, t.Lost = page, len(page) > 0
	return err
}

// Take takes a page of the trail that begins at the cursor.
func (t *Taken) Take(page []redis.XMessage) {
	if t.Cursor != "" && len(page) > 0 {
		switch page[0].ID {
		case t.Cursor:
			page = page[1:]
		case nextEventID(t.Cursor): // the cursor alone is gone
		default:
			t.Lost = true
		}
	}
	if t.more = len(page) >= trailPage; t.more {
		page = page[:trailPage]
	}
	t.entries = page
}

// Appending is what the leader is about to append.
type Appending struct {
	Feeds   *Feeds
	Feed    *ActiveFeed
	count   int      // of events
	lost    int      // of those, how many are EventsLost
	times   []uint64 // of the changes, in ms since 1970
	hash    string
	entries strings.Builder
	Agents  strings.Builder
	due     dueEntries
}

func (p *Appending) add(t *Taken) error {
	cursor, again := "-", "0"
	if t.Lost {
		e := lostEvent(nextEventID(t.Cursor))
		e.Time = timeOfEvent(t.entries[0].ID)
		if err := p.AddEvent(t.agent, e); err != nil {
			return err
		}
	}
	for _, entry := range t.entries {
		e := TrailEvent(entry)
		if state := t.states[e.Transaction]; state != "" && slices.Contains(withPreState, e.Type) {
			e.PreState = jsontext.Value(state)
		}
		err := p.AddEvent(t.agent, e)
		if err != nil { // no version can write it: it must not keep back those after it
			err = p.AddEvent(t.agent, lostEvent(entry.ID))
		}
		if err != nil {
			return err
		}
		cursor = entry.ID
		id, _ := kernel.ParseEventID(cursor)
		p.times = append(p.times, id.Ms)
	}
	if t.more || t.Failed != nil {
		again = "1"
	}
	p.Agents.WriteString(t.Name + " " + cursor + " " + again + "\n")
	return nil
}

// AddEvent adds an event of the agent to what is appended next.
func (p *Appending) AddEvent(agent uuid.UUID, e kernel.Event) error {
	l := p.Feed.Leading
	previous := l.hash
	if p.count > 0 {
		previous = p.hash
	}
	if p.Feeds.config.NotesDue {
		p.due.add(agent, e, p.Feeds.looks)
	}
	next := e.InFeed(p.Feed.Organization, agent, l.Last+int64(p.count)+1, previous)
	text, err := p.Feeds.render(next)
	if err != nil && next.PreState != nil { // it is what a client sent
		next.PreState = nil
		text, err = p.Feeds.render(next)
	}
	if err != nil {
		return err
	}
	p.entries.WriteString(e.Type + " ")
	p.entries.Write(text)
	p.entries.WriteByte('\n')
	p.hash = event.Hash(text)
	p.count++
	if e.Type == kernel.EventsLost {
		p.lost++
	}
	return nil
}

// Send appends what was added. When it fails, the leader knows no longer where the feed ends, and leads no more.
func (p *Appending) Send(ctx context.Context) error {
	if p.Agents.Len() == 0 {
		return nil
	}
	d, o, l := p.Feeds, p.Feed.Organization, &p.Feed.Leading
	r, err := d.Client.Run(ctx, redisclient.Flow{Owner: o}, appendEvents,
		[]string{d.Keys.FeedHead(o), d.Keys.Feed(o), d.Keys.FeedCursors(o), d.Keys.FeedMarked(o), d.Keys.FeedTaken(o), d.Keys.Webhooks(o), d.Keys.Due(o)},
		l.Token, LeaseTime.Milliseconds(), l.Last, p.hash, p.entries.String(), p.Agents.String(),
		d.config.EventsKept*FeedFactor, d.config.EventsKept*FeedFactor*EventRoom, p.due.text())
	if err != nil {
		d.looks.Purge() // Redis may have lost what it had confirmed
		return err
	}
	if l.Last = r.Number(0); p.count > 0 {
		l.hash = p.hash
	}
	if r.Text(1) != "" {
		l.Wake.Owed = strconv.FormatInt(l.Last, 10)
	}
	l.Due.Owed = r.Text(3)
	p.due.stored(d.looks)
	d.Metrics.appended(p, r.Number(2))
	p.count, p.lost, p.times, p.hash, p.due = 0, 0, nil, "", dueEntries{}
	p.entries.Reset()
	p.Agents.Reset()
	return r.Err
}

// TrailEvent reads an entry of a trail. One that cannot be read becomes events.lost: it must not block those after it.
func TrailEvent(entry redis.XMessage) kernel.Event {
	fields := make([]any, 0, 2*len(entry.Values))
	for name, value := range entry.Values {
		fields = append(fields, name, value)
	}
	e, err := kernel.ReadEvent(&redisclient.Reply{Values: []any{entry.ID, fields}})
	if err != nil || e.Type == "" || strings.ContainsAny(e.Type, " \n") {
		return lostEvent(entry.ID)
	}
	return e
}

// lostEvent stands for the event with the id, which cannot be delivered.
func lostEvent(id string) kernel.Event {
	return kernel.Event{ID: id, Type: kernel.EventsLost, Time: timeOfEvent(id), Actor: event.Actor{Type: event.ByKey}}
}

// nextEventID returns the id that follows an event's directly.
func nextEventID(id string) string {
	parsed, _ := kernel.ParseEventID(id)
	return strconv.FormatUint(parsed.Ms, 10) + "-" + strconv.FormatUint(parsed.Sequence+1, 10)
}

// timeOfEvent returns the time in an event's id.
func timeOfEvent(id string) event.Timestamp {
	parsed, _ := kernel.ParseEventID(id)
	return event.Timestamp(time.UnixMilli(int64(parsed.Ms))) //nolint:gosec // ms since 1970, of Redis's clock
}
