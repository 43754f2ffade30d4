package server_test

import "testing"

// needs are the members of a refusal that say what the call wanted.
func needs(actions, value any) fields {
	return fields{"needed_actions": actions, "needed_value_usd": value}
}

// The rest of these refusals, and those of charges, holds and leases, are in TestEachRefusalOfTheStoreHasItsStatusCodeAndMembers.
func TestARefusalSaysWhatTheCallNeeded(t *testing.T) {
	onEach(t, planning(fields{"max_actions": 10, "max_value_usd": 5, "max_lease_seconds": 60}), func(t *testing.T, p planner) {
		key, access := asKey(p.key), asAgent(p.token.access)
		child := p.newSession(fields{"parent_session_id": p.session, "max_actions": 4, "max_value_usd": 2})
		p.beginAs(access, fields{"session_id": p.session, "value_usd": 1}).is(201)
		asked := p.askMore(child, fields{"add_actions": 8, "add_value_usd": 6}, access).is(201).text("id")
		charge := fields{"count": 2, "value_usd": num("3.5")}
		own, below := "/v1/sessions/"+p.session, "/v1/sessions/"+child
		for _, test := range []struct {
			method, path string
			body         any
			as           option
			needs        fields
		}{
			{"POST", own + "/actions", charge.with(fields{"dry_run": true}), key, needs(2, num("3.5"))},
			{"GET", authorizePath + "?session_id=" + p.session + "&count=2&value_usd=3.5", nil, access, needs(2, num("3.5"))},
			{"GET", authorizePath + "?session_id=" + p.session + "&count=2&value_usd=3.5&dry_run=true", nil, access, needs(2, num("3.5"))},
			{"POST", "/v1/transactions", fields{"action_type": "call", "session_id": p.session, "value_usd": 4, "dry_run": true}, access, needs(1, 4)},
			{"POST", "/v1/sessions", fields{"agent_id": p.other, "parent_session_id": p.session, "max_actions": 1, "max_value_usd": 4}, access, needs(1, 4)},
			{"PATCH", below, fields{"add_actions": 8, "add_value_usd": 1}, key, needs(8, 1)},
			{"PATCH", below, fields{"max_actions": 3, "max_value_usd": 12}, key, needs(0, 10)},
			{"PATCH", below, fields{"expires_in_seconds": 2592000}, key, needs(0, 0)},
			{"POST", requestPath(child, asked) + "/approve", fields{}, key, needs(8, 6)},
			{"POST", requestPath(child, asked) + "/approve", fields{"add_actions": 7}, key, needs(7, 6)},
		} {
			p.ask(test.method, test.path, test.body, test.as).refused(403, "session_limit_reached").has(test.needs)
		}
		items := p.post("/v1/actions", batchOf(fields{"session_id": p.session, "count": 9}, fields{"session_id": p.session, "value_usd": 4}), key).items(2)
		for i, want := range []fields{needs(9, 0), needs(1, 4)} {
			if found := differences(items[i].body, items[i].body.with(want)); found != "" {
				t.Errorf("item %d: %s", i, found)
			}
		}
	})
}

func TestARefusalOfAnAgentsLimitSaysWhatTheCallNeeded(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		id, key := w.newSession(nil), asKey(w.key)
		w.patch("/v1/agents/"+w.agent.id, fields{"limits": fields{"max_value_usd_per_day": 1, "max_actions_per_minute": 2, "max_open_sessions": 1}}, key).is(200)
		path := "/v1/sessions/" + id + "/actions"
		w.post(path, fields{"value_usd": 2}, key).refused(403, "agent_limit_reached").has(needs(1, 2))
		w.post(path, fields{"count": 3}, key).refused(403, "agent_limit_reached").has(needs(3, 0))
		w.newSession(nil)
		w.post("/v1/sessions", fields{"agent_id": w.agent.id, "max_actions": 3, "max_value_usd": 1}, key).refused(403, "agent_limit_reached").has(needs(3, 1))
		w.post(path, fields{"count": 2}, key).is(200)
		w.post(path, fields{"count": 2}, key).refused(429, "rate_limited").lacks("needed_actions")
	})
}
