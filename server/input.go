package server

import (
	"encoding/base64"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// What several resources ask of their input.

const (
	maxNameLength        = 200      // characters
	maxDescriptionLength = 1000     // characters
	maxMetadata          = 16 << 10 // bytes, without white space
	maxGrace             = 7 * 24 * 3600
	// An API key that ends at once locks its organization out if the answer with the new one is lost. An agent's secret
	// does not: the API key can rotate it again.
	defaultKeyGrace    = 300 // seconds
	defaultSecretGrace = 0   // seconds
	defaultPage        = 50
	maxPage            = 200

	notAnID = "must be a UUID"
)

// parseID reads a UUID in the form of RFC 9562 §4, in any case; the other forms that libraries accept are refused.
func parseID(text string) (uuid.UUID, bool) {
	id, err := uuid.Parse(text)
	return id, err == nil && len(text) == len(uuid.UUID{}.String())
}

// pathID returns the id in the path.
func pathID(ctx *fasthttp.RequestCtx) (uuid.UUID, error) {
	return pathIDNamed(ctx, "id")
}

// pathIDNamed returns the id that the path has at this name.
func pathIDNamed(ctx *fasthttp.RequestCtx, name string) (uuid.UUID, error) {
	text, _ := ctx.UserValue(name).(string)
	id, ok := parseID(text)
	if !ok {
		return uuid.Nil, invalid(name, notAnID)
	}
	return id, nil
}

func (v *validation) name(name optional[string]) {
	length := utf8.RuneCountInString(name.value)
	switch {
	case !name.given:
		v.add("name", "is required")
	case length < 1 || length > maxNameLength:
		v.add("name", "must have 1 to 200 characters")
	}
}

// object returns a JSON object compacted, its numbers untouched, or "" when none was given.
func (v *validation) object(field string, given optional[jsontext.Value], maxBytes int) string {
	if !given.given {
		return ""
	}
	if given.value.Kind() != '{' {
		v.add(field, "must be an object")
		return ""
	}
	compact := given.value.Clone()
	v.require(compact.Compact() == nil, field, "must be an object")
	v.require(len(compact) <= maxBytes, field, "must have at most "+strconv.Itoa(maxBytes>>10)+" KiB")
	return string(compact)
}

func (v *validation) id(field string, given optional[string]) uuid.UUID {
	if !given.given {
		v.add(field, "is required")
		return uuid.Nil
	}
	id, ok := parseID(given.value)
	v.require(ok, field, notAnID)
	return id
}

func (v *validation) within(field string, value, low, high int64) {
	if value < low || value > high {
		v.add(field, "must be from "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10))
	}
}

// rotation is the body of the two requests that replace a credential.
type rotation struct {
	Grace optional[int64] `json:"grace_seconds"`
}

// decodeGrace returns how long the credential in use is to stay valid, usual seconds when the request does not say.
func decodeGrace(ctx *fasthttp.RequestCtx, usual int64) (time.Duration, error) {
	var request rotation
	if err := decode(ctx, &request); err != nil {
		return 0, err
	}
	return request.duration(usual)
}

func (r rotation) duration(usual int64) (time.Duration, error) {
	var v validation
	grace := r.Grace.or(usual)
	v.within("grace_seconds", grace, 0, maxGrace)
	return time.Duration(grace) * time.Second, v.err()
}

// nothing is the body of requests that have no fields.
type nothing struct{}

// readQuery reads the query parameters of a list. statuses are those that it can be filtered by, filters the ids:
// agent_id, session_id.
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

// filterID reads an id that a list is filtered by.
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

// cursor reads the opaque place where a page starts: the id of the last entry before it. Only what cursorOf writes is one:
// base64 would skip line breaks, and the id of nothing would start from the newest again.
func (v *validation) cursor(text string) uuid.UUID {
	raw, _ := base64.RawURLEncoding.DecodeString(text)
	id, err := uuid.FromBytes(raw)
	v.require(err == nil && id != uuid.Nil && cursorOf(id) == text, "cursor", "is not one that a list gave")
	return id
}

func cursorOf(id uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

// announceNext points to the next page with the same filters (RFC 8288).
func announceNext(ctx *fasthttp.RequestCtx, next uuid.UUID) {
	if next != uuid.Nil {
		announce(ctx, "cursor", cursorOf(next))
	}
}

// announce points to the request that differs in this parameter.
func announce(ctx *fasthttp.RequestCtx, parameter, value string) {
	args := fasthttp.AcquireArgs()
	defer fasthttp.ReleaseArgs(args)
	ctx.QueryArgs().CopyTo(args)
	args.Set(parameter, value)
	link := "<" + string(ctx.URI().PathOriginal()) + "?" + args.String() + `>; rel="next"`
	ctx.Response.Header.Set(fasthttp.HeaderLink, link)
}
