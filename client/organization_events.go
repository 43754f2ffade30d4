package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// OrganizationEvent is one event of an organization: an event of one of its agents, with its place among all of them.
type OrganizationEvent struct {
	Event

	Sequence     int64  `json:"seq"`           // from 1, without gaps
	PreviousHash string `json:"previous_hash"` // SHA-256 of the JSON of the event before, in hex

	JSON json.RawMessage `json:"-"` // as the service wrote it: its SHA-256 is the PreviousHash of the event after it
}

// AllEvents yields the events of all agents after the one with this number, and then waits for new ones until ctx ends. 0
// begins at the oldest that the service keeps. Remember the Sequence of the last event that you have processed, to go on after it.
func (o *Organization) AllEvents(ctx context.Context, after int64) iter.Seq2[OrganizationEvent, error] {
	return o.caller.organizationEvents(ctx, after, eventWait)
}

// ListAllEvents is AllEvents, but ends with the last event.
func (o *Organization) ListAllEvents(ctx context.Context, after int64) iter.Seq2[OrganizationEvent, error] {
	return o.caller.organizationEvents(ctx, after, 0)
}

// Checkpoint returns a statement of where the organization's events end, signed by the issuer: a JWS in its compact form.
func (o *Organization) Checkpoint(ctx context.Context) (string, error) {
	var jws verbatim
	err := o.caller.do(ctx, call{method: http.MethodGet, path: "/v1/events/checkpoint"}, &jws)
	return string(jws), err
}

func (c *caller) organizationEvents(ctx context.Context, after int64, wait time.Duration) iter.Seq2[OrganizationEvent, error] {
	return func(yield func(OrganizationEvent, error) bool) {
		seconds := strconv.Itoa(int(wait / time.Second))
		for {
			var page []json.RawMessage
			path := withQuery("/v1/events", "after", strconv.FormatInt(after, 10), "limit", perPage, "wait", seconds)
			if err := c.do(ctx, call{method: http.MethodGet, path: path, wait: wait}, &page); err != nil {
				yield(OrganizationEvent{}, err)
				return
			}
			if len(page) == 0 && wait == 0 {
				return
			}
			for _, text := range page {
				e := OrganizationEvent{JSON: text}
				err := json.Unmarshal(text, &e)
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Sequence
			}
		}
	}
}
