package server

import (
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

// A server that is told to stop first tells its clients: for a while it goes on as before, and says with every answer
// that the connection closes. Clients at work have then all been told, and those that are not are left with connections
// on which nothing happens. Closing these at once instead would lose every request that is just under way to them.
const (
	drainTime = time.Second            // of telling, at the most
	quietTime = 400 * time.Millisecond // without a request ends it earlier
	drainStep = 5 * time.Millisecond
)

// drain is how far a server is with stopping.
type drain struct {
	most, quiet time.Duration // drainTime and quietTime, but for tests

	begun   atomic.Bool
	lastAsk atomic.Int64 // when the last request came, in ns since 1970
}

// tell adds to an answer that its connection closes, once the server stops.
func (d *drain) tell(ctx *fasthttp.RequestCtx) {
	if d.begun.Load() {
		d.lastAsk.Store(time.Now().UnixNano())
		ctx.SetConnectionClose()
	}
}
