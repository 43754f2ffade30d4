package server

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// streamFeed streams the organization's events as they come (WHATWG HTML §9.2), until the client disconnects, the key ends, the
// slot is displaced or the server stops. Ids of the stream are numbers of events.
func (s *Server) streamFeed(ctx *fasthttp.RequestCtx, key redisstore.APIKey, q feedQuery) error {
	request := requestContext(ctx)
	page, err := s.store.OrganizationEvents(request, key, q.after, streamPage) // a refusal is answered before the stream begins
	if err != nil {
		return err
	}
	slot, err := s.waiters.acquire(key.Organization, s.waiterAddress(ctx))
	if err != nil {
		return err
	}
	f := &feedStream{
		stream: stream{server: s, slot: slot, request: request, conn: ctx.Conn(), id: requestID(ctx)}, key: key, query: q,
	}
	keepFromCaches(ctx)
	ctx.Response.Header.SetContentType(eventStream)
	ctx.Response.Header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	ctx.SetConnectionClose()
	ctx.Request.ResetBody() // fasthttp would keep it as long as the stream
	ctx.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer slot.release()
		defer f.recover()
		f.run(w, page.Events)
	})
	return nil
}

// feedStream is one client's stream of an organization's events.
type feedStream struct {
	stream

	key   redisstore.APIKey
	query feedQuery // after moves on
}

// run writes events, and those that follow, until the connection or the authorization ends. Reading the events rechecks the
// authorization.
func (f *feedStream) run(w *bufio.Writer, events []redisstore.FeedEvent) {
	wanted, left := context.WithCancel(f.slot.ctx)
	defer left()
	go f.awaitDisconnect(left)
	for {
		if f.write(w, events) != nil || wanted.Err() != nil {
			return
		}
		if len(events) < streamPage && f.server.awaitFeedFor(wanted, f.key, f.query.after, f.server.pulse) != nil {
			return
		}
		// fasthttp has set one write deadline for the whole response. Each write, the last one too, needs its own.
		if f.conn.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
			return
		}
		page, err := f.server.store.OrganizationEvents(f.request, f.key, f.query.after, streamPage)
		if err != nil {
			return
		}
		events = page.Events
	}
}

// write sends the events that the query wants, or a comment when there are none, which keeps the connection alive and detects a
// dead one.
func (f *feedStream) write(w *bufio.Writer, events []redisstore.FeedEvent) error {
	written := false
	for _, e := range events {
		if f.query.after = e.Sequence; f.query.wants(e) {
			written = true
			fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n\n", e.Sequence, e.Type, e.JSON)
		}
	}
	if !written {
		fmt.Fprint(w, ":\n\n")
	}
	return w.Flush()
}
