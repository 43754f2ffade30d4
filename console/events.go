package console

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
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
	TransactionID string          `json:"transaction_id"`
	AskedID       string          `json:"session_request_id"`
	LeaseID       string          `json:"lease_id"`
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

// Key tells events apart. In the organization's feed ids begin with the agent's id; in the agent's trail they do not.
func (e eventRow) Key() string {
	if strings.Contains(e.ID, ":") {
		return e.ID
	}
	return e.AgentID + ":" + e.ID
}

func (e eventRow) isOfAgent() bool { return strings.HasPrefix(e.Type, "agent.") }

// Details returns the beginning of the event's data as JSON, "" for none.
func (e eventRow) Details() string { return excerpt(string(e.Data)) }

// cut returns the event with no more data than pages show, for those that keep it: strangers choose how long it is.
func (e eventRow) cut() eventRow {
	if len(e.Data) > mostExcerpt {
		e.Data = bytes.Clone(e.Data[:mostExcerpt+1])
	}
	return e
}

const (
	shownEvents = 30 // the latest, of one agent or session
	eventPages  = 10 // of 200, that are read to find them
	mostPages   = 60 // of 200, that are read when the first have none
)

// backwards are the times for which latest looks back, one after another.
var backwards = []time.Duration{time.Second, 8 * time.Second, time.Minute, 8 * time.Minute, time.Hour, 9 * time.Hour, 3 * dayTime, 0}

// latest returns the latest events of an agent that match, newest first. The API lists from the oldest, so it looks at the last second
// first, and then further back. It stops at a time since which there are more events than it reads: those that it has are the latest.
func (a api) latest(agent string, now time.Time, match func(eventRow) bool) (found []eventRow, err error) {
	for _, back := range backwards {
		after, most := "", eventPages
		if back > 0 {
			after = strconv.FormatInt(now.Add(-back).UnixMilli(), 10) + "-0"
		}
		if len(found) == 0 {
			most = mostPages
		}
		round, isWhole, err := a.eventsAfter(agent, after, most, match)
		if err != nil {
			return nil, err
		}
		if !isWhole && len(found) > 0 {
			break
		}
		if found = round; len(found) >= shownEvents || !isWhole {
			break
		}
	}
	return found, nil
}

// eventsAfter returns the last of the events after one that match, and whether it came to the end of the trail.
func (a api) eventsAfter(agent, after string, most int, match func(eventRow) bool) (found []eventRow, isWhole bool, err error) {
	for range most {
		var page []eventRow
		if err := a.get(query("/v1/agents/"+agent+"/events", "limit", "200", "after", after), &page); err != nil {
			return nil, false, err
		}
		for _, e := range page {
			if match(e) {
				found = append([]eventRow{e}, found[:min(len(found), shownEvents-1)]...)
			}
		}
		if len(page) < 200 {
			return found, true, nil
		}
		after = page[len(page)-1].ID
	}
	return found, false, nil
}
