package console

import (
	"encoding/json"
	"strconv"
	"time"
)

// eventRow is an event as pages show it.
type eventRow struct {
	ID            string          `json:"id"`
	Sequence      int64           `json:"seq"`
	Type          string          `json:"type"`
	OccurredAt    time.Time       `json:"occurred_at"`
	AgentID       string          `json:"agent_id"`
	SessionID     string          `json:"session_id"`
	ChildID       string          `json:"child_session_id"`
	TransactionID string          `json:"transaction_id"`
	AskedID       string          `json:"session_request_id"`
	PreviousHash  string          `json:"previous_hash"`
	Data          json.RawMessage `json:"data"`
	Actor         struct {
		Type string `json:"type"`
	} `json:"actor"`
}

// By says who caused it.
func (e eventRow) By() string {
	if e.Actor.Type == "api_key" {
		return "API key"
	}
	return e.Actor.Type
}

// Details returns the beginning of the event's data as JSON, "" for none.
func (e eventRow) Details() string { return excerpt(string(e.Data)) }

const (
	shownEvents = 30 // the latest, of one agent or session
	eventPages  = 10 // of 200, that are read to find them
)

// latest returns the latest events of an agent that match, newest first. The API lists from the oldest, so it looks at the last
// minute first, then at the last hour, the last day, and at all.
func (a api) latest(agent string, now time.Time, match func(eventRow) bool) ([]eventRow, error) {
	var found []eventRow
	for _, back := range []time.Duration{time.Minute, time.Hour, 24 * time.Hour, 0} {
		after := ""
		if back > 0 {
			after = strconv.FormatInt(now.Add(-back).UnixMilli(), 10) + "-0"
		}
		round, err := a.eventsAfter(agent, after, match)
		if err != nil {
			return nil, err
		}
		if len(round) > 0 && (len(found) == 0 || !round[0].OccurredAt.Before(found[0].OccurredAt)) {
			found = round // otherwise it ended before it came to those
		}
		if len(found) >= shownEvents {
			break
		}
	}
	return found, nil
}

func (a api) eventsAfter(agent, after string, match func(eventRow) bool) ([]eventRow, error) {
	var found []eventRow
	for range eventPages {
		var page []eventRow
		if err := a.get(query("/v1/agents/"+agent+"/events", "limit", "200", "after", after), &page); err != nil {
			return nil, err
		}
		for _, e := range page {
			if match(e) {
				found = append([]eventRow{e}, found[:min(len(found), shownEvents-1)]...)
			}
		}
		if len(page) < 200 {
			break
		}
		after = page[len(page)-1].ID
	}
	return found, nil
}
