package server

import (
	"context"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"
	"remit/money"
	"remit/redisstore"
)

func (s *Server) eventRoutes(r *routes) {
	r.get("/v1/agents/{id}/events", s.listEvents)
}

const maxWait = 30 // seconds

// eventAnswer is one entry of an agent's audit trail.
type eventAnswer struct {
	ID          string     `json:"id"`
	Type        string     `json:"type"`
	Time        timestamp  `json:"occurred_at"`
	Agent       uuid.UUID  `json:"agent_id"`
	Actor       eventActor `json:"actor"`
	Request     string     `json:"request_id,omitzero"`
	Session     uuid.UUID  `json:"session_id,omitzero"`
	Transaction uuid.UUID  `json:"transaction_id,omitzero"`
	Family      uuid.UUID  `json:"family_id,omitzero"`
	Data        eventData  `json:"data,omitzero"`
}

// eventActor is who asked: an organization by its API key, or the agent.
type eventActor struct {
	Type string    `json:"type"` // api_key or agent
	ID   uuid.UUID `json:"id"`
}

type eventData struct {
	Limit           string          `json:"limit,omitzero"`
	MaxActions      *int64          `json:"max_actions,omitzero"`
	MaxValue        *money.MicroUSD `json:"max_value_usd,omitzero"`
	MaxCommitted    *money.MicroUSD `json:"max_committed_usd,omitzero"`
	Held            *money.MicroUSD `json:"value_held_usd,omitzero"`
	Released        *money.MicroUSD `json:"value_released_usd,omitzero"`
	Charged         *money.MicroUSD `json:"value_usd,omitzero"`
	Overage         *money.MicroUSD `json:"overage_usd,omitzero"`
	Late            bool            `json:"late,omitzero"`
	Expires         timestamp       `json:"expires_at,omitzero"`
	PreviousExpires timestamp       `json:"previous_expires_at,omitzero"`
	Spent           timestamp       `json:"spent_at,omitzero"`
}

func eventOf(e redisstore.Event, agent, organization uuid.UUID) eventAnswer {
	amount := func(name string) *money.MicroUSD {
		if value, told := e.Amounts[name]; told {
			return &value
		}
		return nil
	}
	actor := eventActor{"agent", agent}
	if e.ByKey {
		actor = eventActor{"api_key", organization}
	}
	return eventAnswer{
		ID: e.ID, Type: e.Type, Time: timestamp(e.Time), Agent: agent, Actor: actor, Request: e.Request,
		Session: e.Session, Transaction: e.Transaction, Family: e.Family,
		Data: eventData{
			Limit: e.Limit, MaxActions: e.MaxActions, MaxValue: amount("max_value"), Held: amount("held"),
			MaxCommitted: amount("max_committed"), Late: e.Late,
			Released: amount("released"), Charged: amount("charged"), Overage: amount("overage"),
			Expires: timestamp(e.Times["expires"]), PreviousExpires: timestamp(e.Times["previous_until"]),
			Spent: timestamp(e.Times["spent"]),
		},
	}
}

// eventQuery asks for a page of events, oldest first.
type eventQuery struct {
	after string // id of the event before, "" for from the oldest kept
	limit int
	wait  time.Duration // for the first event, when there is none
}

func readEventQuery(ctx *fasthttp.RequestCtx) (eventQuery, error) {
	var v validation
	q := eventQuery{limit: defaultPage}
	seen := map[string]bool{}
	for name, value := range ctx.QueryArgs().All() {
		field, text := string(name), string(value)
		v.require(!seen[field], shown(field), "is given twice")
		seen[field] = true
		switch field {
		case "limit":
			q.limit = v.pageSize(text)
		case "after":
			v.require(redisstore.ValidEventID(text), field, "is not the id of an event")
			q.after = text
		case "wait":
			seconds, err := strconv.ParseUint(text, 10, 8)
			v.require(err == nil && seconds <= maxWait, field, "must be from 0 to "+strconv.Itoa(maxWait))
			q.wait = time.Duration(seconds) * time.Second
		default:
			v.add(shown(field), "is not a parameter of this list")
		}
	}
	if last := ctx.Request.Header.Peek(headerLastEventID); len(last) > 0 && wantsStream(ctx) {
		v.require(redisstore.ValidEventID(string(last)), headerLastEventID, "is not the id of an event")
		q.after = string(last)
	}
	return q, v.err()
}

// listEvents answers a page of an agent's audit trail, or the trail as it grows to a client that accepts a stream.
func (s *Server) listEvents(ctx *fasthttp.RequestCtx) error {
	asks, agent, err := s.callerAndID(ctx)
	if err != nil {
		return err
	}
	query, err := readEventQuery(ctx)
	if err != nil {
		return err
	}
	if wantsStream(ctx) && !ctx.IsHead() {
		return s.streamEvents(ctx, asks, agent, query)
	}
	events, more, err := s.store.Events(forRequest(ctx), asks.Caller, agent, query.after, query.limit)
	if err == nil && len(events) == 0 && query.wait > 0 && !ctx.IsHead() {
		if err = s.awaitEvent(asks, s.waiterAddress(ctx), agent, query); err == nil {
			events, more, err = s.store.Events(forRequest(ctx), asks.Caller, agent, query.after, query.limit)
		}
	}
	if err != nil {
		return err
	}
	answers := make([]eventAnswer, len(events))
	for i, e := range events {
		answers[i] = eventOf(e, agent, asks.organization())
	}
	if more {
		announce(ctx, "after", events[len(events)-1].ID)
	}
	return answer(ctx, answers)
}

// awaitEvent waits until there may be an event, the time is over, the place is displaced or the server ends.
func (s *Server) awaitEvent(asks caller, from netip.Addr, agent uuid.UUID, q eventQuery) error {
	place, err := s.waiting.enter(asks.organization(), from)
	if err != nil {
		return err
	}
	defer place.leave()
	if err := s.awaitEventFor(place.ctx, agent, q.after, asks.patience(q.wait)); err != nil {
		return err
	}
	if asks.hasExpired() {
		return errInvalidToken
	}
	return nil
}

// awaitEventFor is awaitEvent for who is counted already, and who wants it until ctx ends.
func (s *Server) awaitEventFor(ctx context.Context, agent uuid.UUID, after string, patience time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.store.AwaitEvent(waiting, agent, after); err != waiting.Err() {
		return err
	}
	return nil
}

func wantsStream(ctx *fasthttp.RequestCtx) bool {
	for accepted := range strings.SplitSeq(string(ctx.Request.Header.Peek(fasthttp.HeaderAccept)), ",") {
		mediaType, _, _ := strings.Cut(accepted, ";")
		if strings.EqualFold(strings.TrimSpace(mediaType), eventStream) {
			return true
		}
	}
	return false
}
