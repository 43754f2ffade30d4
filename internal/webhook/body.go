package webhook

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"remit/redisstore/records"
	"remit/redisstore/webhooks"
)

// timeFormat is RFC 3339 in UTC with milliseconds, as everywhere in the API.
const timeFormat = "2006-01-02T15:04:05.000Z"

// testEvent returns the event of a test, which is in no feed.
func testEvent(d webhooks.Delivery) *records.FeedEvent {
	return &records.FeedEvent{Type: d.Type, JSON: fmt.Appendf(nil, `{"type":%q,"occurred_at":%q}`, d.Type, d.Created.UTC().Format(timeFormat))}
}

// eventHead is what a body needs to know of an event.
type eventHead struct {
	Time        string    `json:"occurred_at"`
	Agent       uuid.UUID `json:"agent_id"`
	Transaction uuid.UUID `json:"transaction_id"`
	Data        struct {
		PreState jsontext.Value `json:"pre_state"` // the feed has small ones
	} `json:"data"`
}

// bodyOf returns the body of a request that delivers an event, with the members that Standard Webhooks recommends.
func (p *pass) bodyOf(ctx context.Context, e records.FeedEvent) ([]byte, error) {
	var head eventHead
	if err := json.Unmarshal(e.JSON, &head); err != nil {
		return nil, err
	}
	data := e.JSON
	if head.Transaction != uuid.Nil && head.Data.PreState == nil && (e.Type == "transaction.rolled_back" || e.Type == "transaction.expired") {
		state, err := p.deliverer.Store.PreState(ctx, p.loop.organization, head.Agent, head.Transaction)
		if err != nil {
			return nil, err
		}
		if data, err = withPreState(data, state); err != nil {
			return nil, err
		}
	}
	return json.Marshal(struct {
		Type      string         `json:"type"`
		Timestamp string         `json:"timestamp"`
		Data      jsontext.Value `json:"data"`
	}{e.Type, head.Time, data})
}

// withPreState adds the state before a transaction to the data of its event, so that a receiver can compensate. The feed does not
// have one over 4 KiB, which stays readable with the transaction. "" is for a transaction that is forgotten.
func withPreState(event []byte, state string) ([]byte, error) {
	if state == "" {
		return event, nil
	}
	members, data := map[string]jsontext.Value{}, map[string]jsontext.Value{}
	if err := json.Unmarshal(event, &members); err != nil {
		return nil, err
	}
	if given, found := members["data"]; found {
		if err := json.Unmarshal(given, &data); err != nil {
			return nil, err
		}
	}
	data["pre_state"] = jsontext.Value(state)
	var err error
	if members["data"], err = json.Marshal(data, json.Deterministic(true)); err != nil {
		return nil, err
	}
	return json.Marshal(members, json.Deterministic(true))
}
