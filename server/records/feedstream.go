package records

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/redisstore/records"
	"remit/server/conn"
)

// streamFeed streams the organization's events as they come. Ids of the stream are numbers of events.
func (h *Handlers) streamFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q feedQuery) error {
	events := &tail[records.FeedEvent]{
		organization: key.Organization,
		read: func(ctx context.Context) ([]records.FeedEvent, bool, error) {
			page, err := h.Store.OrganizationEvents(ctx, key, q.after, conn.StreamPage)
			return page.Events, len(page.Events) == conn.StreamPage, err
		},
		await: func(ctx context.Context, most time.Duration) error { return h.awaitFeedFor(ctx, key, q.after, most) },
		write: func(w *bufio.Writer, e records.FeedEvent) (written bool, err error) {
			if q.after = e.Sequence; q.wants(e) {
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
