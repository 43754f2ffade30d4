package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

const (
	eventStream       = "text/event-stream"
	headerLastEventID = "Last-Event-ID"
)

const maxWait = 30 // seconds

// eventQuery selects a page of events, oldest first.
type eventQuery struct {
	after string // id of the event before the page; "" begins at the oldest event
	limit int
	wait  time.Duration // how long to wait for the first event
}

func readEventQuery(ctx *fasthttp.RequestCtx) (eventQuery, error) {
	var v web.Validation
	q := eventQuery{limit: web.DefaultPage}
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.Require(!seen[field], web.Shown(field), "is given twice")
		seen[field] = true
		switch field {
		case "limit":
			q.limit = v.PageSize(text)
		case "after":
			v.Require(redisstore.ValidEventID(text), field, "is not the id of an event")
			q.after = text
		case "wait":
			seconds, err := strconv.ParseUint(text, 10, 8)
			v.Require(err == nil && seconds <= maxWait, field, "must be from 0 to "+strconv.Itoa(maxWait))
			q.wait = time.Duration(seconds) * time.Second
		default:
			v.Add(web.Shown(field), "is not a parameter of this list")
		}
	}
	if last := ctx.Request.Header.Peek(headerLastEventID); len(last) > 0 && wantsStream(ctx) {
		v.Require(redisstore.ValidEventID(string(last)), headerLastEventID, "is not the id of an event")
		q.after = string(last)
	}
	return q, v.Err()
}

func wantsStream(ctx *fasthttp.RequestCtx) bool {
	for accepted := range strings.SplitSeq(string(ctx.Request.Header.Peek(fasthttp.HeaderAccept)), ",") {
		mediaType, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(mediaType), eventStream) {
			return true
		}
	}
	return false
}
