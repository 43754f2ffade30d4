package records

import (
	"bufio"
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// streamPulse is the longest silence of a stream, and between two checks of its authorization.
const streamPulse = 15 * time.Second

// tail streams events as they come (WHATWG HTML §9.2). Its functions share where the stream is: write moves it on.
type tail[T any] struct {
	organization uuid.UUID
	// read returns the next page, and whether there are more. It checks the authorization again.
	read func(context.Context) (page []T, more bool, err error)
	// await waits for the next event, at most for so long. It may return without one.
	await func(context.Context, time.Duration) error
	// write writes an event, unless the client does not want it.
	write func(*bufio.Writer, T) (written bool, err error)
	size  func([]T) int // of a page, in bytes
	over  func() bool   // says whether the authorization has ended by itself
}

// stream begins the response, which lasts until the client disconnects, the authorization ends, the slot is displaced or the server
// stops. A refusal is answered before.
func (t *tail[T]) stream(ctx *fasthttp.RequestCtx, h *Handlers) error {
	request, memory := web.RequestContext(ctx), h.Front.NewPageMemory(ctx)
	if err := memory.Reserve(); err != nil {
		return err
	}
	first, more, err := t.read(request)
	if err != nil {
		memory.Release()
		return err
	}
	slot, err := h.Front.Waiters.Acquire(t.organization, h.Front.WaiterAddress(ctx))
	if err != nil {
		memory.Release()
		return err
	}
	memory.Tenants = h.Front.AnswerTenants(ctx) // the credential is known to be the organization's now
	web.KeepFromCaches(ctx)
	h.Front.Stream(ctx, slot, memory.Release, func(wanted context.Context, s *web.Stream, w *bufio.Writer) {
		page := first
		first = nil // else the first page would stay in memory as long as the stream
		for !t.over() {
			if memory.Keep(t.size(page)) != nil || t.writePage(w, page) != nil || wanted.Err() != nil {
				return
			}
			memory.Release()
			if !more && t.await(wanted, h.Pulse) != nil || memory.Await(wanted, h.Pulse) != nil {
				return
			}
			if s.ExtendDeadline() != nil { // for the last write too
				return
			}
			if page, more, err = t.read(request); err != nil {
				return
			}
		}
	})
	return nil
}

// writePage writes the events, or a comment when there are none, which keeps the connection alive and detects a dead one.
func (t *tail[T]) writePage(w *bufio.Writer, page []T) error {
	any := false
	for _, event := range page {
		written, err := t.write(w, event)
		if err != nil {
			return err
		}
		any = any || written
	}
	if !any {
		if _, err := w.WriteString(":\n\n"); err != nil {
			return err
		}
	}
	return w.Flush()
}
