package server

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
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

// announceClose adds Connection: close to a response once the server stops.
func (d *drain) announceClose(ctx *fasthttp.RequestCtx) {
	if d.begun.Load() {
		d.lastRequest.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}
