package event

import (
	"maps"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// stored is an entry of a trail that has every name.
var stored = map[string]string{
	"type": "session.created", "at": "1795380674001", "actor": "agent", "request": "r1 " + id(9), "session": id(1), "transaction": id(2),
	"family": id(3), "lease": id(4), "session_request": id(5), "child": id(6), "issuer": id(7), "session_key": "0199a1b2-c3d4-8e5f-8a9b-0c1d2e3fc300", "limit": "max_actions",
	"max_actions": "1", "add_actions": "2", "max_lease": "3", "actions": "4", "overage_actions": "5", "max_value": "6000000",
	"add_value": "7", "max_committed": "8", "held": "9", "leased": "10", "delegated": "11", "released": "12", "charged": "13",
	"overage": "0", "late": "1", "expires": "253402300799999", "previous_until": "0", "spent": "3", "reason": "<a> \"b\"",
	"changed": "name scopes", "enforcement": "observe", "max_per_action": "14", "limits": "15 - 16", "budget": "session",
	"threshold": "80", "thresholds": "50 100", "settled_by": "expiry", "started": "5", "for": "1",
}

// id returns an id that ends with this digit.
func id(digit byte) string { return "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc30" + string('0'+digit) }

func TestAnEventWithEveryFieldKeepsItsBytes(t *testing.T) {
	t.Parallel()
	const (
		wantJSON = `{"id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc308:5-1","type":"session.created","occurred_at":"2026-11-22T20:51:14.001Z","agent_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc308","actor":{"type":"agent","id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc309"},"request_id":"r1",` +
			`"session_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc301","transaction_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc302","family_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc303","lease_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc304","session_request_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc305","child_session_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc306","trusted_issuer_id":"0199a1b2-c3d4-7e5f-8a9b-0c1d2e3fc307","session_key_id":"0199a1b2-c3d4-8e5f-8a9b-0c1d2e3fc300",` +
			`"data":{"limit":"max_actions","max_actions":1,"add_actions":2,"max_lease_seconds":3,"action_count":4,"overage_actions":5,"max_value_usd":6,"add_value_usd":0.000007,"max_committed_usd":0.000008,"value_held_usd":0.000009,"value_leased_usd":0.00001,"value_delegated_usd":0.000011,"value_released_usd":0.000012,"value_usd":0.000013,"overage_usd":0,` +
			`"late":true,"settled_by":"expiry","expires_at":"9999-12-31T23:59:59.999Z","period_started_at":"1970-01-01T00:00:00.005Z","previous_expires_at":"1970-01-01T00:00:00.000Z","spent_at":"1970-01-01T00:00:00.003Z","reason":"<a> \"b\"","changed":["name","scopes"],"enforcement":"observe","max_value_usd_per_action":0.000014,"limits":{"max_value_usd_per_day":0.000015,"max_actions_per_minute":null,"max_open_sessions":16},"pre_state":{"a":1.50},"budget":"session","threshold":80,"thresholds":[50,100]},` +
			`"seq":7,"previous_hash":"0000000000000000000000000000000000000000000000000000000000000000"}`
		wantHash = "af601b3196b6bdb3c98f459168a7b02d427846ba998623844fcf531c0a62c2e1"
	)
	e, err := Read("5-1", maps.All(stored))
	if err != nil || len(stored) != len(setters) {
		t.Fatalf("%d of %d names are read: %v", len(stored), len(setters), err)
	}
	e.PreState = jsontext.Value(`{ "a" : 1.50 }`)
	inFeed := e.InFeed(uuid.MustParse(id(0)), uuid.MustParse(id(8)), 7, NoHash)
	for _, part := range []any{inFeed, inFeed.Event, inFeed.Data} {
		for _, field := range reflect.ValueOf(part).Fields() {
			if field.IsZero() {
				t.Errorf("a field of %T has no value", part)
			}
		}
	}
	text, err := inFeed.JSON()
	if err != nil || string(text) != wantJSON || Hash(text) != wantHash {
		t.Errorf("%s of hash %s, %v", text, Hash(text), err)
	}
}

func TestAnEventNamesItsActor(t *testing.T) {
	t.Parallel()
	organization, agent, delegate := uuid.MustParse(id(0)), uuid.MustParse(id(1)), uuid.MustParse(id(2))
	for name, test := range map[string]struct {
		stored, request string
		of              uuid.UUID // whose trail it is
		want            Actor
		agent           uuid.UUID
	}{
		"an API key":                   {"key", "r", agent, Actor{ByKey, organization}, agent},
		"the agent":                    {"agent", "r", agent, Actor{ByAgent, agent}, agent},
		"another agent":                {"agent", "r " + id(2), agent, Actor{ByAgent, delegate}, agent},
		"a session key":                {"session_key", "r " + id(2), agent, Actor{BySessionKey, delegate}, agent},
		"time":                         {"time", "", agent, Actor{Type: ByTime}, agent},
		"the gateway":                  {"gateway", "r " + id(2), agent, Actor{Type: ByGateway}, agent},
		"a key, in the organization's": {"key", "", organization, Actor{ByKey, organization}, uuid.Nil},
	} {
		e, err := Read("5-1", maps.All(map[string]string{"actor": test.stored, "request": test.request}))
		fed := e.InFeed(organization, test.of, 1, NoHash)
		if err != nil || fed.Actor != test.want || fed.Agent != test.agent || fed.ID != test.of.String()+":5-1" {
			t.Errorf("%s: %+v, %v", name, fed, err)
		}
	}
}
