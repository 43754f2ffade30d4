package redisstore

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
)

// FeedEvent is an event as the feed keeps it.
type FeedEvent struct {
	Sequence int64
	Type     string
	JSON     []byte // of event.InFeed; its hash is in the event after it
}

// FeedPage is a part of an organization's feed.
type FeedPage struct {
	Events []FeedEvent // oldest first
	Last   int64       // number of the feed's last event, 0 for none
	Hash   string      // of that event
}

const (
	// EventsLost is the type of an event that stands for events of an agent which its trail had no longer when they were to be
	// appended, or which no version could read.
	EventsLost = "events.lost"
	// feedFactor is how many events a feed keeps for each that the trail of an agent keeps, and eventRoom how many bytes they may
	// take on average: an event takes 64 beside its JSON.
	feedFactor = 100
	eventRoom  = 512
	// unfedFactor is how many events a trail keeps while its feed does not have them, for each that it keeps else.
	unfedFactor = 10
)

// OrganizationEvents returns at most limit events of the key's organization after the one with this number, from the oldest
// kept on. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Store) OrganizationEvents(ctx context.Context, key APIKey, after int64, limit int) (FeedPage, error) {
	o := key.Organization
	r, err := s.runByKey(ctx, key, s.proven.flow(key), readFeed,
		[]string{s.keys.organization(o), s.keys.feedHead(o), s.keys.feed(o)}, key.credential(), after, limit)
	if err != nil {
		return FeedPage{}, err
	}
	page := FeedPage{Last: r.Number(0), Hash: r.Text(1)}
	list := r.List(2)
	for i := range list.Values {
		entry := list.List(i)
		page.Events = append(page.Events, feedEventOf(entry.Text(0), entry.List(1)))
	}
	if r.Err == nil {
		r.Err = list.Err
	}
	return page, r.Err
}

// feedEventOf reads an entry of a feed.
func feedEventOf(id string, fields *reply) FeedEvent {
	e := FeedEvent{Sequence: sequenceOf(id)}
	for i := 0; i+1 < len(fields.Values); i += 2 {
		switch fields.Text(i) {
		case "y":
			e.Type = fields.Text(i + 1)
		case "e":
			e.JSON = []byte(fields.Text(i + 1))
		}
	}
	return e
}

// sequenceOf returns the number in the id of an entry of a feed.
func sequenceOf(id string) int64 {
	number, _, _ := strings.Cut(id, "-")
	sequence, _ := strconv.ParseInt(number, 10, 64)
	return sequence
}

// EventsAfter is OrganizationEvents for the service itself, which needs no key.
func (s *Store) EventsAfter(ctx context.Context, organization uuid.UUID, after int64, limit int) ([]FeedEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := s.client.Redis().XRangeN(ctx, s.keys.feed(organization), "("+feedID(after), "+", int64(limit)).Result()
	if err != nil {
		return nil, s.client.Classify(err, reads)
	}
	events := make([]FeedEvent, len(found))
	for i, entry := range found {
		events[i] = feedEntry(entry)
	}
	return events, nil
}

func feedEntry(entry redis.XMessage) FeedEvent {
	what, _ := entry.Values["y"].(string)
	text, _ := entry.Values["e"].(string)
	return FeedEvent{sequenceOf(entry.ID), what, []byte(text)}
}

func feedID(sequence int64) string { return strconv.FormatInt(sequence, 10) + "-0" }

// AwaitOrganizationEvent is AwaitEvent for the feed of an organization.
func (s *Store) AwaitOrganizationEvent(ctx context.Context, organization uuid.UUID, after int64) error {
	return s.awaitEntry(ctx, s.keys.feed(organization), feedID(after))
}

// watch returns what the client calls around the calls that may write events.
func (d *feeds) watch() redisclient.Watch {
	if d == nil {
		return redisclient.Watch{}
	}
	return redisclient.Watch{Before: d.before, After: d.after}
}
