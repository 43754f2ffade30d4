package server_test

import (
	"fmt"
	"strings"
)

// trail reads what is new in the audit trail of a tenant's agent.
type trail struct {
	tenant
	newest string // id of the newest event that was read, "" before
}

// trail starts behind all that the tenant's agent has by now.
func (w tenant) trail() *trail {
	w.t.Helper()
	l := &trail{tenant: w}
	l.unread()
	return l
}

func (w tenant) eventsPath() string { return "/v1/agents/" + w.agent.id + "/events" }

// unread returns the events since the last call.
func (l *trail) unread() []fields {
	l.t.Helper()
	query := "?limit=200"
	if l.newest != "" {
		query += "&after=" + l.newest
	}
	events := l.get(l.eventsPath()+query, asKey(l.key)).is(200).array()
	if len(events) > 0 {
		l.newest = events[len(events)-1]["id"].(string)
	}
	return events
}

// gains fails the test unless the request that was answered with this left exactly these events, in this order. They are
// given without what every event has. actor is "api_key" or "agent".
func (l *trail) gains(by *response, actor string, want ...fields) {
	l.t.Helper()
	events := l.unread()
	for i, got := range events {
		if i >= len(want) {
			l.t.Errorf("%s: leaves also %v", by.what, got)
			continue
		}
		wantFields(l.t, fmt.Sprintf("%s: event %d, %v", by.what, i, got["type"]), got, l.common(by, actor).with(want[i]))
	}
	for _, missing := range want[min(len(events), len(want)):] {
		l.t.Errorf("%s: does not leave %v", by.what, missing)
	}
}

// common is what every event has.
func (l *trail) common(by *response, actor string) fields {
	e := fields{"id": matchText("the id of an event", `^\d{13}-\d+$`), "occurred_at": aboutNow, "agent_id": l.agent.id}
	if actor == "time" {
		return e.with(fields{"actor": fields{"type": actor}})
	}
	who := fields{"type": actor, "id": l.agent.id}
	if actor == "api_key" {
		who["id"] = l.org
	}
	return e.with(fields{"actor": who, "request_id": by.header.Get("X-Request-Id")})
}

// gainsNothing fails the test when anything is new.
func (l *trail) gainsNothing(why string) {
	l.t.Helper()
	for _, event := range l.unread() {
		l.t.Errorf("%s: leaves %v", why, event)
	}
}

// change makes a change to the tenant's agent that leaves one event, of type agent.secret_rotated.
func (w tenant) change(options ...option) *response {
	w.t.Helper()
	grace := fields{"grace_seconds": 60}
	return w.post("/v1/agents/"+w.agent.id+"/secret/rotate", grace, append([]option{asKey(w.key)}, options...)...).is(200)
}

// typesOf returns the types of events, for what does not ask more of them.
func typesOf(events []fields) string {
	var types []string
	for _, e := range events {
		types = append(types, fmt.Sprint(e["type"]))
	}
	return strings.Join(types, " ")
}
