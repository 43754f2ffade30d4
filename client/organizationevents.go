package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// OrganizationEvent is one event of an organization: an event of one of its agents, with its place among all of them. Without an
// AgentID it is of the organization itself, such as budget.threshold of its budget.
type OrganizationEvent struct {
	Event

	Sequence     int64  `json:"seq"`           // from 1, without gaps
	PreviousHash string `json:"previous_hash"` // SHA-256 of the JSON of the event before, in hex

	JSON json.RawMessage `json:"-"` // as the service wrote it: its SHA-256 is the PreviousHash of the event after it
}

// AllEvents yields the events of all agents after the one with this number, and then waits for new ones until ctx ends. 0
// begins at the oldest that the service keeps. With types it yields only events of these types.
//
// It goes on after a break, also when the service is unavailable for long, and misses nothing that the service keeps. Remember the
// Sequence of the last event that you have processed: after a crash, go on after it. You then get events again that you had
// processed and not remembered.
func (o *Organization) AllEvents(ctx context.Context, after int64, types ...EventType) iter.Seq2[OrganizationEvent, error] {
	return o.caller.organizationEvents(ctx, &feed{after, types, eventWait})
}

// ListAllEvents is AllEvents, but ends with the last event or its first error.
func (o *Organization) ListAllEvents(ctx context.Context, after int64, types ...EventType) iter.Seq2[OrganizationEvent, error] {
	return o.caller.organizationEvents(ctx, &feed{after, types, 0})
}

// Checkpoint returns a statement of where the organization's events end, signed by the issuer: a JWS in its compact form.
func (o *Organization) Checkpoint(ctx context.Context) (string, error) {
	jws, err := decoded[verbatim](ctx, o.caller, call{method: http.MethodGet, path: "/v1/events/checkpoint"})
	return string(jws), err
}

// feed is where a reader of an organization's events is.
type feed struct {
	after int64
	types []EventType   // empty: all
	wait  time.Duration // 0: it ends with the last event
}

func (c *caller) organizationEvents(ctx context.Context, from *feed) iter.Seq2[OrganizationEvent, error] {
	return func(yield func(OrganizationEvent, error) bool) {
		f := *from // a second loop begins where the first began
		for {
			begun := time.Now()
			page, next, err := f.read(ctx, c)
			if err != nil {
				yield(OrganizationEvent{}, err)
				return
			}
			for _, text := range page {
				e := OrganizationEvent{JSON: text}
				err := json.Unmarshal(text, &e)
				if !yield(e, err) || err != nil {
					return
				}
				f.after = max(f.after, e.Sequence)
			}
			if len(page) == 0 && next <= f.after {
				if f.wait == 0 {
					return
				}
				sleep(ctx, pollPause-time.Since(begun))
			}
			f.after = max(f.after, next)
		}
	}
}

func joined(types []EventType) string {
	texts := make([]string, len(types))
	for i, t := range types {
		texts[i] = string(t)
	}
	return strings.Join(texts, ",")
}

// read reads the next page. With types, next is the number of the last event that the service looked at, if there may be more; a
// page may then be empty.
func (f *feed) read(ctx context.Context, c *caller) (page []json.RawMessage, next int64, err error) {
	path := withQuery("/v1/events", "after", strconv.FormatInt(f.after, 10), "limit", perPage,
		"types", joined(f.types), "wait", strconv.Itoa(int(f.wait/time.Second)))
	var header http.Header
	once := func() (err error) {
		header, err = c.doWithHeader(ctx, call{method: http.MethodGet, path: path, wait: f.wait}, &page)
		return err
	}
	err = poll(ctx, f.wait, once)
	if text, more := nextPage(header, "after"); more {
		next, _ = strconv.ParseInt(text, 10, 64) // 0 for what is no number
	}
	return page, next, err
}
