package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strconv"
	"time"
)

// eventWait is how long the service holds a request back when there is no event yet. It is the longest it allows.
const eventWait = 30 * time.Second

// Event is one entry of an agent's audit trail.
type Event struct {
	ID            string    `json:"id"`
	Type          EventType `json:"type"`
	OccurredAt    time.Time `json:"occurred_at"`
	AgentID       string    `json:"agent_id"`
	Actor         Actor     `json:"actor"`
	RequestID     string    `json:"request_id"`
	SessionID     string    `json:"session_id,omitzero"`     // empty: none
	TransactionID string    `json:"transaction_id,omitzero"` // empty: none
	FamilyID      string    `json:"family_id,omitzero"`      // of tokens; empty: none
	LeaseID       string    `json:"lease_id,omitzero"`       // empty: none

	SessionRequestID string `json:"session_request_id,omitzero"` // the request for more; empty: none
	SessionKeyID     string `json:"session_key_id,omitzero"`     // that was created or deleted; empty: none
	ChildSessionID   string `json:"child_session_id,omitzero"`   // that became or was a part of the session; empty: none

	Data json.RawMessage `json:"data,omitzero"` // nil: none
}

// Actor is who caused an event.
type Actor struct {
	Type string `json:"type"`         // api_key, agent, session_key, gateway, or time: something expired, or a period ended
	ID   string `json:"id,omitempty"` // empty: time or gateway
}

// events yields an agent's events after the given one. With a wait it then waits for new ones instead of ending, and resumes after
// an outage.
func (c *caller) events(ctx context.Context, agent, after string, wait time.Duration) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		after, seconds := after, strconv.Itoa(int(wait/time.Second)) // a second loop begins where the first began
		for {
			var page []Event
			path := withQuery(agentPath(agent)+"/events", "after", after, "limit", perPage, "wait", seconds)
			begun := time.Now()
			err := poll(ctx, wait, func() error {
				return c.do(ctx, call{method: http.MethodGet, path: path, wait: wait}, &page)
			})
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(page) == 0 {
				if wait == 0 {
					return
				}
				sleep(ctx, pollPause-time.Since(begun))
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				after = e.ID
			}
		}
	}
}

// poll reads the next events once, or with a wait until the service is available.
func poll(ctx context.Context, wait time.Duration, once func() error) error {
	if wait == 0 {
		return once()
	}
	return patiently(ctx, "waiting for events", once)
}
