package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"remit/redisstore"
)

// onEachWithFeed runs the test for a tenant of a service that keeps feeds.
func onEachWithFeed(t *testing.T, test func(t *testing.T, w tenant)) {
	t.Helper()
	t.Parallel()
	with := setup{store: redisstore.Config{KeepsFeeds: true}}
	onEachRedisWith(t, with, func(t *testing.T, api *client) { test(t, api.newTenant()) })
}

// orgEvent is an event of an organization, with the bytes it came in.
type orgEvent struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Agent    string `json:"agent_id"`
	Sequence int64  `json:"seq"`
	Previous string `json:"previous_hash"`

	line string
}

// organizationEvents reads a page, and checks its chain.
func (w tenant) organizationEvents(query string) []orgEvent {
	w.t.Helper()
	var lines []json.RawMessage
	w.get("/v1/events"+query, asKey(w.key)).is(200).decode(&lines)
	events := make([]orgEvent, len(lines))
	for i, line := range lines {
		must(0, json.Unmarshal(line, &events[i]))(w.t)
		events[i].line = string(line)
	}
	return events
}

// awaitOrganizationEvents reads the events once there are so many.
func (w tenant) awaitOrganizationEvents(count int) []orgEvent {
	w.t.Helper()
	var events []orgEvent
	eventually(w.t, strconv.Itoa(count)+" events of the organization", func() bool {
		events = w.organizationEvents("")
		return len(events) >= count
	})
	return events
}

func hashOf(line string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(line))) }

func TestTheEventsOfAnOrganizationAreNumberedAndChained(t *testing.T) {
	onEachWithFeed(t, func(t *testing.T, w tenant) {
		for _, agent := range []string{w.agent.id, w.newAgent().id} {
			w.post("/v1/agents/"+agent+"/suspend", nil, asKey(w.key)).is(200)
		}
		events := w.awaitOrganizationEvents(4)
		previous := strings.Repeat("0", 64)
		ids := map[string]bool{}
		for i, e := range events {
			if e.Sequence != int64(i+1) || e.Previous != previous || ids[e.ID] || !strings.HasPrefix(e.ID, e.Agent+":") {
				t.Errorf("after hash %s comes %s", previous, e.line)
			}
			previous, ids[e.ID] = hashOf(e.line), true
		}
		wantEqual(t, "events", len(events), 4)
		if after := w.organizationEvents("?after=3"); len(after) != 1 || after[0].line != events[3].line {
			t.Errorf("after 3 come %+v", after)
		}
		if page := w.get("/v1/events?limit=3", asKey(w.key)).is(200); !strings.Contains(page.header.Get("Link"), "after=3") {
			t.Errorf("Link %q", page.header.Get("Link"))
		}
		suspended := w.organizationEvents("?types=agent.suspended")
		if len(suspended) != 2 || suspended[0].Type != "agent.suspended" {
			t.Errorf("%+v", suspended)
		}
		checkpoint := w.get("/v1/events/checkpoint", asKey(w.key)).is(200)
		said := payloadOf(t, string(checkpoint.body))
		if said["seq"] != float64(4) || said["hash"] != previous || said["org_id"] != w.org {
			t.Errorf("the checkpoint says %v", said)
		}
	})
}

// payloadOf returns the payload of a JWS.
func payloadOf(t *testing.T, jws string) map[string]any {
	t.Helper()
	parts := strings.Split(jws, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWS", jws)
	}
	var payload map[string]any
	must(0, json.Unmarshal(must(base64.RawURLEncoding.DecodeString(parts[1]))(t), &payload))(t)
	return payload
}

func TestAStreamOfAnOrganizationGoesOnAfterItsLastEvent(t *testing.T) {
	onEachWithFeed(t, func(t *testing.T, w tenant) {
		w.awaitOrganizationEvents(1)
		s := w.stream(t, "/v1/events", asKey(w.key), header("Last-Event-ID", "1"))
		if s.answer.StatusCode != 200 {
			t.Fatalf("no stream: %d", s.answer.StatusCode)
		}
		w.post("/v1/agents/"+w.agent.id+"/suspend", nil, asKey(w.key)).is(200)
		if f := must(s.next())(t); f.id != "2" || f.event != "agent.suspended" {
			t.Errorf("%+v", f)
		}
	})
}

// A wait for some types goes on when others come.
func TestAWaitIsForTheTypesThatAreWanted(t *testing.T) {
	onEachWithFeed(t, func(t *testing.T, w tenant) {
		w.awaitOrganizationEvents(1)
		came := make(chan []orgEvent, 1)
		go func() {
			defer close(came)
			came <- w.organizationEvents("?after=1&wait=20&types=agent.resumed")
		}()
		w.post("/v1/agents/"+w.agent.id+"/suspend", nil, asKey(w.key)).is(200)
		w.awaitOrganizationEvents(2)
		time.Sleep(time.Second) // longer than the wait takes to see it
		w.post("/v1/agents/"+w.agent.id+"/resume", nil, asKey(w.key)).is(200)
		if events := <-came; len(events) != 1 || events[0].Type != "agent.resumed" {
			t.Errorf("%+v", events)
		}
	})
}

func TestTheEventsOfAnOrganizationWantGoodParameters(t *testing.T) {
	onEachWithFeed(t, func(t *testing.T, w tenant) {
		for query, field := range map[string]string{
			"?after=x": "after", "?after=-1": "after", "?after=9007199254740992": "after", "?limit=0": "limit", "?limit=201": "limit",
			"?types=": "types", "?types=agent.created,": "types", "?types=agent.painted": "types", "?wait=31": "wait",
			"?after=1&after=2": "after", "?before=1": "before",
		} {
			w.get("/v1/events"+query, asKey(w.key)).invalid(field)
		}
		w.get("/v1/events", asKey(w.key), header("Accept", "text/event-stream"), header("Last-Event-ID", "x")).invalid("Last-Event-ID")
	})
}

// An event has the pre-state of its transaction unless that is large.
func TestTheEventsOfAnOrganizationHaveSmallPreStates(t *testing.T) {
	onEachWithFeed(t, func(t *testing.T, w tenant) {
		access, session := asAgent(w.exchange().access), w.newSession(nil)
		settle := func(state fields, settings fields) string {
			begin := fields{"action_type": "pay", "pre_state": state, "session_id": session}.with(settings)
			return w.post("/v1/transactions", begin, access).is(201).text("id")
		}
		small := settle(fields{"seats": 3, "note": "a\n\u2028<b>"}, nil)
		large := settle(fields{"text": strings.Repeat("x", 5000)}, nil)
		brief := settle(fields{"seats": 4}, fields{"expires_in_seconds": 1})
		for _, id := range []string{small, large} {
			w.post("/v1/transactions/"+id+"/rollback", nil, asKey(w.key)).is(200)
		}
		told := map[string]map[string]any{}
		eventually(t, "an event of each", func() bool {
			w.get("/sessions/"+session, asKey(w.key)).is(200)
			for _, e := range w.get("/v1/events?types=transaction.rolled_back,transaction.expired", asKey(w.key)).is(200).array() {
				told[e["transaction_id"].(string)], _ = e["data"].(map[string]any)
			}
			return len(told) == 3
		})
		for id, want := range map[string]any{small: map[string]any{"seats": num(3), "note": "a\n\u2028<b>"}, large: nil, brief: map[string]any{"seats": num(4)}} {
			if got := told[id]["pre_state"]; !reflect.DeepEqual(got, want) {
				t.Errorf("the pre-state is %v, want %v", got, want)
			}
		}
	})
}
