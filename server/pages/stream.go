package pages

import (
	"bufio"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/conn"
	"remit/server/internal/web"
)

// pageStreamBytes is how much memory a page's stream reserves as long as it lasts.
const pageStreamBytes = 64 << 10

// Stream answers a page's request with a stream of events (WHATWG HTML §9.2) for a viewer of this organization. It counts as a
// request that waits for events, and reserves memory. run's context ends when the client disconnects, when the place or the memory
// is given to another and when the server stops; send writes and fails when the client does not read. It returns the status with which it refuses a stream, 0 if it does not.
func (h *Host) Stream(page *fasthttp.RequestCtx, organization uuid.UUID, run func(ctx context.Context, send func([]byte) error)) int {
	slot, held, err := h.reserveStream(page, organization)
	if err != nil {
		return h.front.Hooks.ProblemOf(err).Status
	}
	h.front.Stream(page, slot, func() { held.Release() }, func(ctx context.Context, stream *web.Stream, w *bufio.Writer) {
		run(ctx, func(text []byte) error { return send(stream, w, text) })
	})
	return 0
}

// reserveStream takes a place and memory. Losing the memory ends the place.
func (h *Host) reserveStream(page *fasthttp.RequestCtx, organization uuid.UUID) (*conn.Slot, *conn.Reservation, error) {
	slot, err := h.front.Waiters.Acquire(organization, h.front.WaiterAddress(page))
	if err != nil {
		return nil, nil, err
	}
	tenants := []conn.Tenant{{Organization: organization}, {Address: h.front.ClientAddress(page)}}
	held, err := h.front.Unwritten.Reserve(pageStreamBytes, time.Now(), slot.End, tenants...)
	if err != nil {
		slot.Release()
	}
	return slot, held, err
}

// send writes a text of a page's stream.
func send(to *web.Stream, w *bufio.Writer, text []byte) error {
	if err := to.ExtendDeadline(); err != nil {
		return err
	}
	if _, err := w.Write(text); err != nil {
		return err
	}
	return w.Flush()
}

// Stopping is closed when the server begins to stop.
func (h *Host) Stopping() <-chan struct{} { return h.front.Waiters.Stopping() }
