package server

import (
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// readQuery reads the query parameters of a list. statuses and filters are those that the list supports; filters are
// agent_id and session_id.
func readQuery(ctx *fasthttp.RequestCtx, statuses []redisstore.Status, filters ...string) (redisstore.Query, error) {
	var v validation
	q := redisstore.Query{Limit: defaultPage}
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.require(!seen[field], shown(field), "is given twice")
		seen[field] = true
		switch {
		case field == "limit":
			q.Limit = v.pageSize(text)
		case field == "cursor":
			q.Before = v.cursor(text)
		case field == "status" && len(statuses) > 0:
			q.Status = v.status(text, statuses)
		case field == "agent_id" && slices.Contains(filters, field):
			q.Agent = v.filterID(field, text)
		case field == "session_id" && slices.Contains(filters, field):
			q.Session = v.filterID(field, text)
		default:
			v.add(shown(field), "is not a parameter of this list")
		}
	}
	return q, v.err()
}

// filterID reads an id to filter by.
func (v *validation) filterID(field, text string) uuid.UUID {
	id, ok := parseID(text)
	v.require(ok && id != uuid.Nil, field, notAnID)
	return id
}

func (v *validation) pageSize(text string) int {
	size, err := strconv.ParseUint(text, 10, 16)
	v.require(err == nil && size >= 1 && size <= maxPage, "limit", "must be from 1 to 200")
	return int(size)
}

func (v *validation) status(text string, statuses []redisstore.Status) redisstore.Status {
	allowed := ""
	for _, status := range statuses {
		if text == string(status) {
			return status
		}
		allowed += " " + string(status)
	}
	v.add("status", "must be one of"+allowed)
	return ""
}

// cursor reads the opaque cursor of a page: the id of the last entry before it. It accepts only what cursorOf writes:
// base64 decoding would skip line breaks, and the nil id would start again from the newest entry.
func (v *validation) cursor(text string) uuid.UUID {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	id, err := uuid.FromBytes(raw)
	v.require(err == nil && id != uuid.Nil && cursorOf(id) == text, "cursor", "is not one that a list gave")
	return id
}

func cursorOf(id uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// announceNext links to the next page with the same filters (RFC 8288).
func announceNext(ctx *fasthttp.RequestCtx, next uuid.UUID) {
	if next != uuid.Nil {
		announce(ctx, "cursor", cursorOf(next))
	}
}

// announce links to the request that differs in this parameter.
func announce(ctx *fasthttp.RequestCtx, parameter, value string) {
	args := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	ctx.QueryArgs().CopyTo(args)
	args.Set(parameter, value)
	link := "<" + string(ctx.URI().PathOriginal()) + "?" + args.String() + `>; rel="next"`
	ctx.Response.Header.Set(fasthttp.HeaderLink, link)
}
