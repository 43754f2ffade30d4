package records

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

// feedQuery selects events of an organization, oldest first.
type feedQuery struct {
	after int64 // number of the event before the page
	limit int
	types []string      // nil for all
	wait  time.Duration // how long to wait for the first event
}

func readFeedQuery(ctx *fasthttp.RequestCtx) (feedQuery, error) {
	var v web.Validation
	q := feedQuery{limit: web.DefaultPage}
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.Require(!seen[field], web.Shown(field), "is given twice")
		seen[field] = true
		switch field {
		case "limit":
			q.limit = v.PageSize(text)
		case "after":
			q.after = readSequence(&v, field, text)
		case "types":
			q.types = readTypesFilter(&v, text)
		case "wait":
			seconds, err := strconv.ParseUint(text, 10, 8)
			v.Require(err == nil && seconds <= MaxWait, field, "must be from 0 to "+strconv.Itoa(MaxWait))
			q.wait = time.Duration(seconds) * time.Second
		default:
			v.Add(web.Shown(field), "is not a parameter of this list")
		}
	}
	if last := ctx.Request.Header.Peek(headerLastEventID); len(last) > 0 && wantsStream(ctx) {
		q.after = readSequence(&v, headerLastEventID, string(last))
	}
	return q, v.Err()
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
