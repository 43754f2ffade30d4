package records

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"remit/internal/redisclient"
	"remit/redisstore/internal/kernel"
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

// OrganizationEvents returns at most limit events of the key's organization after the one with this number, from the oldest
// kept on. Errors: ErrInvalidAPIKey, *RoleError, ErrOrganizationSuspended.
func (s *Reader) OrganizationEvents(ctx context.Context, key kernel.APIKey, after int64, limit int) (FeedPage, error) {
	o := key.Organization
	r, err := s.core.RunByKey(ctx, key, s.core.Proven.Flow(key), readFeed,
		[]string{s.core.Keys.Organization(o), s.core.Keys.FeedHead(o), s.core.Keys.Feed(o)}, key.Credential(), after, limit)
	if err != nil {
		return FeedPage{}, err
	}
	page := FeedPage{Last: r.Number(0), Hash: r.Text(1)}
	list := r.List(2)
	for i := range list.Values {
		entry := list.List(i)
		page.Events = append(page.Events, feedEventOf(entry.Text(0), entry.List(1)))
	}
	return page, cmp.Or(r.Err, list.Err)
}

// feedEventOf reads an entry of a feed.
func feedEventOf(id string, fields *redisclient.Reply) FeedEvent {
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
func (s *Reader) EventsAfter(ctx context.Context, organization uuid.UUID, after int64, limit int) ([]FeedEvent, error) {
	ctx, cancel := context.WithTimeout(ctx, redisclient.CallTimeout)
	defer cancel()
	found, err := s.core.Client.Redis().XRangeN(ctx, s.core.Keys.Feed(organization), "("+feedID(after), "+", int64(limit)).Result()
	if err != nil {
		return nil, s.core.Client.Classify(err, redisclient.Reads)
	}
	events := make([]FeedEvent, len(found))
	for i, entry := range found {
		events[i] = FeedEntry(entry)
	}
	return events, nil
}

// FeedEntry reads an entry of a feed's stream.
func FeedEntry(entry redis.XMessage) FeedEvent {
	what, _ := entry.Values["y"].(string)
	text, _ := entry.Values["e"].(string)
	return FeedEvent{sequenceOf(entry.ID), what, []byte(text)}
}

func feedID(sequence int64) string { return strconv.FormatInt(sequence, 10) + "-0" }

// AwaitOrganizationEvent is AwaitEvent for the feed of an organization.
func (s *Reader) AwaitOrganizationEvent(ctx context.Context, organization uuid.UUID, after int64) error {
	return s.awaitEntry(ctx, s.core.Keys.Feed(organization), feedID(after))
}

var readFeed = kernel.NewScript("records/read_feed", redisclient.Reads)
