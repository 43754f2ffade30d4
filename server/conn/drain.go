package conn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// A server that stops announces it first: for a while it serves as before, with Connection: close in every response. Then
// clients at work know, and the other connections are idle. Closing idle connections at once would lose the
// requests that are in transit on them.
const (
	drainTime = time.Second            // of announcing, at most
	quietTime = 400 * time.Millisecond // without a request ends it earlier
	DrainStep = 5 * time.Millisecond
)

// Drain is the state of a server that stops.
type Drain struct {
	Most, Quiet time.Duration // drainTime and quietTime, except in tests

	Begun       atomic.Bool
	lastRequest atomic.Int64 // in ns since 1970
}

// NewDrain returns the state of a server that does not stop.
func NewDrain() Drain { return Drain{Most: drainTime, Quiet: quietTime} }

// Begin announces from now on that the server stops.
func (d *Drain) Begin() {
	d.lastRequest.Store(time.Now().UnixNano())
	d.Begun.Store(true)
}

// AwaitQuiet waits until no request has come for a while, no connection is open, or the time for that is over.
func (d *Drain) AwaitQuiet(ctx context.Context, open *Set) {
	ctx, cancel := context.WithTimeout(ctx, d.Most)
	defer cancel()
	for open.Len() > 0 && time.Since(time.Unix(0, d.lastRequest.Load())) < d.Quiet && pauseUnless(ctx, DrainStep) {
	}
}

// CloseIdle closes connections as they become idle, until all are closed or ctx ends.
func (d *Drain) CloseIdle(ctx context.Context, open *Set) {
	for open.CloseIdle(d.Quiet) > 0 && pauseUnless(ctx, DrainStep) {
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

// AnnounceClose adds Connection: close to a response once the server stops.
func (d *Drain) AnnounceClose(ctx *fasthttp.RequestCtx) {
	if d.Begun.Load() {
		d.lastRequest.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}
