package server

import (
	"bufio"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
)

// pageStreamBytes is how much memory a page's stream reserves as long as it lasts.
const pageStreamBytes = 64 << 10

// Stream answers a page's request with a stream of events (WHATWG HTML §9.2) for a viewer of this organization. It counts as a
// request that waits for events, and reserves memory. run's context ends when the client disconnects, when the place or the memory
// is given to another and when the server stops; send writes and fails when nobody reads. It returns the status with which it refuses a stream, 0 if it does not.
func (s *Server) Stream(page *fasthttp.RequestCtx, organization uuid.UUID, run func(ctx context.Context, send func([]byte) error)) int {
	slot, err := s.waiters.acquire(organization, s.waiterAddress(page))
	if err != nil {
		return problemOf(err).Status
	}
	served, address := page.Conn(), s.clientAddress(page)
	held, err := s.unwritten.reserve(pageStreamBytes, time.Now(), slot.end, tenantKey{organization: organization}, tenantKey{address: address})
	if err != nil {
		slot.release()
		return problemOf(err).Status
	}
	t := &stream{server: s, slot: slot, conn: served, id: requestID(page)}
	page.Response.Header.SetContentType(eventStream)
	page.Response.Header.Set("X-Accel-Buffering", "no") // nginx would hold events back
	page.SetConnectionClose()
	page.Request.ResetBody()
	page.SetBodyStreamWriter(func(w *bufio.Writer) {
		defer held.release()
		defer slot.release()
		defer t.recover()
		ctx, left := context.WithCancel(slot.ctx)
		defer left()
		go t.awaitDisconnect(left)
		run(ctx, func(text []byte) error {
			// fasthttp has set one write deadline for the whole response. Each write needs its own.
			if err := served.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
				return err
			}
			if _, err := w.Write(text); err != nil {
				return err
			}
			return w.Flush()
		})
	})
	return 0
}

// Stopping is closed when the server begins to stop.
func (s *Server) Stopping() <-chan struct{} { return s.waiters.ctx.Done() }
