package records

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore/records"
	"remit/server/internal/web"
)

const headerLastEventID = "Last-Event-ID"

// MaxWait is how many seconds a request may wait for an event.
const MaxWait = 30 // seconds

// EventQuery selects a page of events, oldest first.
type EventQuery struct {
	After string // id of the event before the page; "" begins at the oldest event
	Limit int
	Wait  time.Duration // how long to wait for the first event
}

// ReadEventQuery reads which events a request selects.
func ReadEventQuery(ctx *fasthttp.RequestCtx) (EventQuery, error) {
	var v web.Validation
	q := EventQuery{Limit: web.DefaultPage}
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.Require(!seen[field], web.Shown(field), "is given twice")
		seen[field] = true
		switch field {
		case "limit":
			q.Limit = v.PageSize(text)
		case "after":
			v.Require(records.ValidEventID(text), field, "is not the id of an event")
			q.After = text
		case "wait":
			seconds, err := strconv.ParseUint(text, 10, 8)
			v.Require(err == nil && seconds <= MaxWait, field, "must be from 0 to "+strconv.Itoa(MaxWait))
			q.Wait = time.Duration(seconds) * time.Second
		default:
			v.Add(web.Shown(field), "is not a parameter of this list")
		}
	}
	if last := ctx.Request.Header.Peek(headerLastEventID); len(last) > 0 && wantsStream(ctx) {
		v.Require(records.ValidEventID(string(last)), headerLastEventID, "is not the id of an event")
		q.After = string(last)
	}
	return q, v.Err()
}

func wantsStream(ctx *fasthttp.RequestCtx) bool {
	for accepted := range strings.SplitSeq(string(ctx.Request.Header.Peek(fasthttp.HeaderAccept)), ",") {
		mediaType, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(mediaType), web.EventStream) {
			return true
		}
	}
	return false
}
