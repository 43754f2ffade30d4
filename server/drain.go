package server

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// A server that stops announces it first: for a while it serves as before, with Connection: close in every response. Then
// clients at work have been told, and the other connections are idle. Closing idle connections at once would lose the
// requests that are in transit on them.
const (
	drainTime = time.Second            // of announcing, at most
	quietTime = 400 * time.Millisecond // without a request ends it earlier
	drainStep = 5 * time.Millisecond
)

// drain is the state of a server that stops.
type drain struct {
	most, quiet time.Duration // drainTime and quietTime, except in tests

	begun       atomic.Bool
	lastRequest atomic.Int64 // in ns since 1970
}

func newDrain() drain { return drain{most: drainTime, quiet: quietTime} }

// begin announces from now on that the server stops.
func (d *drain) begin() {
	d.lastRequest.Store(time.Now().UnixNano())
	d.begun.Store(true)
}

// awaitQuiet waits until no request has come for a while, no connection is open, or the time for that is over.
func (d *drain) awaitQuiet(ctx context.Context, open *conn.Set) {
	ctx, cancel := context.WithTimeout(ctx, d.most)
	defer cancel()
	for open.Len() > 0 && time.Since(time.Unix(0, d.lastRequest.Load())) < d.quiet && pauseUnless(ctx, drainStep) {
	}
}

// closeIdle closes connections as they become idle, until all are closed or ctx ends.
func (d *drain) closeIdle(ctx context.Context, open *conn.Set) {
	for open.CloseIdle(d.quiet) > 0 && pauseUnless(ctx, drainStep) {
	}
}

func pauseUnless(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// announceClose adds Connection: close to a response once the server stops.
func (d *drain) announceClose(ctx *fasthttp.RequestCtx) {
	if d.begun.Load() {
		d.lastRequest.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}
