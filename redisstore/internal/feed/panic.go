package feed

import (
	"errors"
	"runtime/debug"
	"time"

	"remit/internal/event"
)

// panickedFor is how long a feed rests after a panic: its cause may be in what it has yet to append.
const panickedFor = time.Second

var errFeedPanicked = errors.New("the loop of a feed panicked")

// recovered keeps a panic from ending the process, counts and logs it, and then does what is left to do. Defer it.
func (d *Feeds) recovered(then func()) {
	cause := recover()
	if cause == nil {
		return
	}
	d.Metrics.Panics.Inc()
	if d.config.Log != nil {
		d.config.Log.Error("the loop of a feed panicked", "cause", cause, "stack", string(debug.Stack()))
	}
	then()
}

// render is Config.render. A panic is an error: the event cannot be written.
func (d *Feeds) render(e event.InFeed) (text []byte, err error) {
	defer d.recovered(func() { err = errFeedPanicked })
	return d.config.Render(e)
}
