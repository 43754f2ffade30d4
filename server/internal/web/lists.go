package web

import (
	"encoding/base64"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// ReadQuery reads the query parameters of a list. statuses and filters are those that the list supports; filters are
// agent_id, session_id and settled_by.
func ReadQuery(ctx *fasthttp.RequestCtx, statuses []redisstore.Status, filters ...string) (redisstore.Query, error) {
	var v Validation
	q := redisstore.Query{Limit: DefaultPage}
	known := append([]string{"limit", "cursor"}, filters...)
	if len(statuses) > 0 {
		known = append(known, "status")
	}
	for field, text := range v.Parameters(ctx, "list", known...) {
		switch field {
		case "limit":
			q.Limit = v.PageSize(text)
		case "cursor":
			q.Before = v.cursor(text)
		case "status":
			q.Status = v.Status(text, statuses)
		case "agent_id":
			q.Agent = v.FilterID(field, text)
		case "session_id":
			q.Session = v.FilterID(field, text)
		case "settled_by":
			q.SettledByExpiry = true
			v.Require(text == SettledByExpiry, field, "must be "+SettledByExpiry)
		}
	}
	return q, v.Err()
}

// Parameters returns the parameters of the query that are among the known ones. It refuses the others, and one that is given
// twice.
func (v *Validation) Parameters(ctx *fasthttp.RequestCtx, of string, known ...string) iter.Seq2[string, string] {
	return func(yield func(field, text string) bool) {
		seen := map[string]bool{}
		for name, value := range ctx.QueryArgs().All() {
			field := string(name)
			v.Require(!seen[field], Shown(field), "is given twice")
			seen[field] = true
			if !slices.Contains(known, field) {
				v.Add(Shown(field), "is not a parameter of this "+of)
			} else if !yield(field, string(value)) {
				return
			}
		}
	}
}

// Wait reads how many seconds to wait, at most so many.
func (v *Validation) Wait(field, text string, most uint64) time.Duration {
	seconds, err := strconv.ParseUint(text, 10, 8)
	v.Require(err == nil && seconds <= most, field, "must be from 0 to "+strconv.FormatUint(most, 10))
	return time.Duration(seconds) * time.Second
}

// SettledByExpiry says of a transaction that its hold was spent because it expired.
const SettledByExpiry = "expiry"

// FilterID reads an id to filter by.
func (v *Validation) FilterID(field, text string) uuid.UUID {
	id, ok := ParseID(text)
	v.Require(ok && id != uuid.Nil, field, NotAnID)
	return id
}

// PageSize reads how many items a page has, 1 to 200.
func (v *Validation) PageSize(text string) int {
	size, err := strconv.ParseUint(text, 10, 16)
	v.Require(err == nil && size >= 1 && size <= MaxPage, "limit", "must be from 1 to 200")
	return int(size)
}

func (v *Validation) Status(text string, statuses []redisstore.Status) redisstore.Status {
	allowed := ""
	for _, status := range statuses {
		if text == string(status) {
			return status
		}
		allowed += " " + string(status)
	}
	v.Add("status", "must be one of"+allowed)
	return ""
}

// cursor reads the opaque cursor of a page: the id of the last entry before it. It accepts only what CursorOf writes:
// base64 decoding would skip line breaks, and the nil id would start again from the newest entry.
func (v *Validation) cursor(text string) uuid.UUID {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	id, err := uuid.FromBytes(raw)
	v.Require(err == nil && id != uuid.Nil && CursorOf(id) == text, "cursor", "is not one that a list gave")
	return id
}

func CursorOf(id uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// AnnounceNext links to the next page with the same filters (RFC 8288).
func AnnounceNext(ctx *fasthttp.RequestCtx, next uuid.UUID) {
	if next != uuid.Nil {
		Announce(ctx, "cursor", CursorOf(next))
	}
}

// AnswerPage writes 200 with what show makes of each item of a page, and links to the next one, unless there is an error.
func AnswerPage[T, A any](ctx *fasthttp.RequestCtx, show func(T) A, page redisstore.Page[T], err error) error {
	if err == nil {
		AnnounceNext(ctx, page.Next)
	}
	return AnswerEach(ctx, show, page.Items, err)
}

// Announce links to the request that differs in this parameter.
func Announce(ctx *fasthttp.RequestCtx, parameter, value string) {
	args := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	ctx.QueryArgs().CopyTo(args)
	args.Set(parameter, value)
	link := "<" + string(ctx.URI().PathOriginal()) + "?" + args.String() + `>; rel="next"`
	ctx.Response.Header.Set(fasthttp.HeaderLink, link)
}
