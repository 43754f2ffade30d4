package records

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"
	"remit/internal/token"
	"remit/redisstore"
	"remit/redisstore/records"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

func (h *Handlers) organizationEventRoutes(r *web.Routes) {
	r.Get("/v1/events", redisstore.Viewer, access.ByKey(h.listOrganizationEvents))
	r.Get("/v1/events/checkpoint", redisstore.Viewer, access.ByKey(h.getCheckpoint))
}

// scannedEvents is how many events one page of a list with types looks at. If few of them match, the page is short or even
// empty, and has a next one.
const scannedEvents = 1000

// listOrganizationEvents returns a page of the organization's events, or a stream of them to a client that accepts one.
func (h *Handlers) listOrganizationEvents(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	query, err := readFeedQuery(ctx)
	if err != nil {
		return err
	}
	if wantsStream(ctx) && !ctx.IsHead() {
		return h.streamFeed(ctx, key, query)
	}
	page, err := h.scanFeed(ctx, key, query, web.MaxPage)
	if err == nil && len(page.events) == 0 && !page.more && query.Wait > 0 && !ctx.IsHead() {
		query.After = page.after
		page, err = h.awaitFeed(ctx, key, query)
	}
	if err != nil {
		return err
	}
	if page.more {
		web.Announce(ctx, "after", strconv.FormatInt(page.after, 10))
	}
	return web.AnswerList(ctx, page.events, func(o web.Object, e records.FeedEvent) (web.Object, error) {
		return append(o, e.JSON...), nil
	})
}

// feedPage is events that match a query.
type feedPage struct {
	events []records.FeedEvent
	after  int64 // number of the last event that was looked at
	more   bool  // there may be more events
}

// scanFeed looks at events until it has a page of those that match, or has looked at enough. It looks at so many at once, at most, and
// reserves memory for as many, and for the page, before it reads.
func (h *Handlers) scanFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q EventQuery[int64], atOnce int) (feedPage, error) {
	reserved := q.Limit
	if len(q.Types) > 0 {
		reserved += atOnce
	}
	if err := h.Front.ReserveAnswer(ctx, reserved*conn.EventBytes); err != nil {
		return feedPage{}, err
	}
	page := feedPage{after: q.After, more: true}
	for scanned := 0; page.more && len(page.events) < q.Limit && scanned < scannedEvents; {
		most := q.Limit - len(page.events)
		if len(q.Types) > 0 {
			most = atOnce
		}
		found, err := h.Store.OrganizationEvents(web.RequestContext(ctx), key, page.after, most)
		if err != nil {
			return feedPage{}, err
		}
		page.more = len(found.Events) == most
		scanned += len(found.Events)
		for _, e := range found.Events {
			if len(page.events) == q.Limit {
				page.more = true
				break
			}
			page.after = e.Sequence
			if q.wants(e) {
				page.events = append(page.events, e)
			}
		}
	}
	return page, nil
}

// awaitFeed waits for events that the query wants, and returns a page of them, or after query.Wait an empty one. While it waits, no memory
// is reserved. The page is small, because the same event may wake thousands.
func (h *Handlers) awaitFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q EventQuery[int64]) (feedPage, error) {
	slot, err := h.Front.Waiters.Acquire(key.Organization, h.Front.WaiterAddress(ctx))
	if err != nil {
		return feedPage{}, err
	}
	defer slot.Release()
	wanted, cancel := context.WithTimeout(slot.Context(), q.Wait)
	defer cancel()
	q.Limit = min(q.Limit, conn.StreamPage)
	for {
		web.ReleaseAnswer(ctx)
		if err := h.awaitFeedFor(wanted, key, q.After, q.Wait); err != nil && wanted.Err() == nil {
			return feedPage{}, err
		}
		page, err := h.scanFeed(ctx, key, q, conn.StreamPage)
		if err != nil || len(page.events) > 0 || page.more || wanted.Err() != nil {
			return page, err
		}
		q.After = page.after
	}
}

// awaitFeedFor waits for any event, of a request that holds a slot. It ends with ctx.
func (h *Handlers) awaitFeedFor(ctx context.Context, key redisstore.APIKey, after int64, patience time.Duration) error {
	return web.Await(ctx, patience, func(ctx context.Context) error {
		return h.Store.AwaitOrganizationEvent(ctx, key.Organization, after)
	})
}

// getCheckpoint returns a signed statement of where the organization's events end.
func (h *Handlers) getCheckpoint(ctx *fasthttp.RequestCtx, key redisstore.APIKey) error {
	keys, err := h.Guard.Keys()
	if err != nil {
		return err
	}
	page, err := h.Store.OrganizationEvents(web.RequestContext(ctx), key, maxSequence, 1)
	if err != nil {
		return err
	}
	signed, err := keys.SignCheckpoint(token.Checkpoint{
		Organization: key.Organization, Sequence: page.Last, Hash: page.Hash, Issued: time.Now(),
	})
	if err != nil {
		return err
	}
	web.KeepFromCaches(ctx) // the next one is another
	ctx.Response.Header.SetContentType("application/jose")
	ctx.SetBodyString(signed)
	return nil
}

// maxSequence is more than any number of an event: Redis counts exactly only so far.
const maxSequence = 1<<53 - 1

func (q EventQuery[P]) wants(e records.FeedEvent) bool {
	return len(q.Types) == 0 || slices.Contains(q.Types, e.Type)
}

// streamFeed streams the organization's events as they come. Ids of the stream are numbers of events.
func (h *Handlers) streamFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q EventQuery[int64]) error {
	events := &tail[records.FeedEvent]{
		organization: key.Organization,
		read: func(ctx context.Context) ([]records.FeedEvent, bool, error) {
			page, err := h.Store.OrganizationEvents(ctx, key, q.After, conn.StreamPage)
			return page.Events, len(page.Events) == conn.StreamPage, err
		},
		await: func(ctx context.Context, most time.Duration) error { return h.awaitFeedFor(ctx, key, q.After, most) },
		write: func(w *bufio.Writer, e records.FeedEvent) (written bool, err error) {
			if q.After = e.Sequence; q.wants(e) {
				written = true
				_, err = fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Sequence, e.Type, e.JSON)
			}
			return written, err
		},
		size: sizeOf,
		over: func() bool { return false }, // a key that has ended is refused at the next read
	}
	return events.stream(ctx, h)
}

// sizeOf returns how many bytes the events take.
func sizeOf(events []records.FeedEvent) (bytes int) {
	for _, e := range events {
		bytes += len(e.JSON)
	}
	return bytes
}
