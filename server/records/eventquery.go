package records

import (
	"slices"
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
type EventQuery[P any] struct {
	After P // the event before the page; zero begins at the oldest event
	Limit int
	Types []string      // nil for all
	Wait  time.Duration // how long to wait for the first event
}

// ReadEventQuery reads which events of an agent a request selects, after the id of one.
func ReadEventQuery(ctx *fasthttp.RequestCtx) (EventQuery[string], error) {
	return readEventQuery(ctx, readEventID, "limit", "after", "wait")
}

// readFeedQuery reads which events of an organization a request selects, after the number of one.
func readFeedQuery(ctx *fasthttp.RequestCtx) (EventQuery[int64], error) {
	return readEventQuery(ctx, readSequence, "limit", "after", "types", "wait")
}

func readEventQuery[P any](ctx *fasthttp.RequestCtx, position func(v *web.Validation, field, text string) P, known ...string) (EventQuery[P], error) {
	var v web.Validation
	q := EventQuery[P]{Limit: web.DefaultPage}
	for field, text := range v.Parameters(ctx, "list", known...) {
		switch field {
		case "limit":
			q.Limit = v.PageSize(text)
		case "after":
			q.After = position(&v, field, text)
		case "types":
			q.Types = readTypesFilter(&v, text)
		case "wait":
			q.Wait = v.Wait(field, text, MaxWait)
		}
	}
	if last := ctx.Request.Header.Peek(headerLastEventID); len(last) > 0 && wantsStream(ctx) {
		q.After = position(&v, headerLastEventID, string(last))
	}
	return q, v.Err()
}

func readEventID(v *web.Validation, field, text string) string {
	v.Require(records.ValidEventID(text), field, "is not the id of an event")
	return text
}

// readSequence reads the number of an event, 0 for the one before the first.
func readSequence(v *web.Validation, field, text string) int64 {
	number, err := strconv.ParseUint(text, 10, 53)
	v.Require(err == nil && number < maxSequence, field, "must be the seq of an event, or 0")
	return int64(number) //nolint:gosec // below 2^53
}

// readTypesFilter reads the types of a filter, with commas between.
func readTypesFilter(v *web.Validation, text string) []string {
	var types []string
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(eventTypes, name) {
			v.Add("types", "has a type that does not exist: "+web.Shown(name))
			return nil
		}
		if !slices.Contains(types, name) {
			types = append(types, name)
		}
	}
	return types
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
