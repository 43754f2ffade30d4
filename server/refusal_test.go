package server_test

import (
	"fmt"
	"testing"
)

// What a refusal is for, redisstore shows. Here each one of the store has its status, its code and its members, and no others.
func TestEachRefusalOfTheStoreHasItsStatusCodeAndMembers(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		w.agent = w.newAgentWith("read", "transactions:rollback")
		key, access := asKey(w.key), asAgent(w.exchange().access)

		// 8 of 10 actions and 4.5 of 5 USD are used or held.
		full := w.leasing(nil)
		w.post("/sessions/"+full+"/actions", fields{"count": 7, "value_usd": num("3.5")}, key).is(200)
		held := "/v1/transactions/" + w.beginAs(access, fields{"session_id": full, "value_usd": 1}).is(201).text("id")
		stands := fields{
			"action_count": 8, "max_actions": 10, "value_used_usd": num("3.5"), "max_value_usd": 5, "value_held_usd": 1,
			"remaining_actions": 2, "remaining_value_usd": num("0.5"), "expires_at": w.session(full)["expires_at"],
		}
		unused := func(session, limit string) fields {
			s := w.session(session)
			return fields{
				"limit": limit, "action_count": 0, "max_actions": s["max_actions"], "value_used_usd": 0, "max_value_usd": s["max_value_usd"],
				"value_held_usd": 0, "remaining_actions": s["max_actions"], "remaining_value_usd": s["max_value_usd"], "expires_at": s["expires_at"],
			}
		}
		unleased, short := w.newSession(nil), w.leasing(fields{"expires_in_seconds": 600, "max_lease_seconds": 3600})
		lower, each := w.newSession(fields{"max_value_usd": 5, "max_committed_usd": 2}), w.newSession(fields{"max_value_usd_per_action": num("0.5")})

		over := map[string]string{"completed": w.newSession(nil), "expired": w.newSession(fields{"expires_in_seconds": 1}), "revoked": ""}
		revoked := w
		revoked.agent = w.newAgent()
		over["revoked"] = revoked.newSession(nil)
		asked := requestPath(over["completed"], w.askMore(over["completed"], fields{"add_actions": 1}, access).is(201).text("id"))
		for range 8 {
			w.askMore(full, fields{"add_actions": 1}, access).is(201)
		}
		revoked.revoke()
		for range 8 {
			w.sessionKey(full)
		}
		bound := w
		bound.agent = w.newAgent()
		proven := bound.newSession(nil)
		w.patch("/v1/agents/"+bound.agent.id, fields{"dpop_required": true}, key).is(200)

		settled := map[string]string{}
		for status, how := range map[string]string{"committed": "/commit", "rolled_back": "/rollback", "expired": ""} {
			settings := fields{"session_id": w.newSession(nil), "value_usd": 2, "reversible": false}
			if status == "expired" {
				settings["expires_in_seconds"] = 1
			}
			settled[status] = "/v1/transactions/" + w.beginAs(access, settings).is(201).text("id")
			if how != "" {
				w.post(settled[status]+how, nil, access).is(200)
			}
		}
		w.post("/sessions/"+over["completed"]+"/end", nil, key).is(200)
		// A commit is undone by who holds the scope, in a session that has it.
		other := w
		other.agent = w.newAgentWith("transactions", "transactions:rollback2", "Admin")
		lacking := asAgent(other.exchange().access)
		undo := func(of tenant, as option, scopes ...string) string {
			path := "/v1/transactions/" + of.beginAs(as, fields{"session_id": of.newSession(fields{"scopes": scopes})}).is(201).text("id")
			w.post(path+"/commit", nil, as).is(200)
			return path + "/rollback"
		}
		for what, status := range map[string]string{"/sessions/" + over["expired"]: "session", settled["expired"]: "transaction"} {
			eventually(t, "the "+status+" has expired", func() bool { return w.get(what, key).text("status") == "expired" })
		}

		type request struct {
			method, path string
			body         any
			as           option
			status       int
			code         string
			members      fields
		}
		charge, lease := "/sessions/"+full+"/actions", "/v1/sessions/"+full+"/leases"
		dead := "/v1/agents/" + revoked.agent.id
		const limit, below, notActive, notPending = "session_limit_reached", "limit_below_usage", "session_not_active", "transaction_not_pending"
		const noScope = "insufficient_scope"
		actions, value := stands.with(fields{"limit": "max_actions"}), stands.with(fields{"limit": "max_value_usd"})
		requests := []request{
			{"POST", charge, fields{"count": 3}, key, 403, limit, actions.with(needs(3, 0))},
			{"POST", charge, fields{"value_usd": num("0.500001")}, access, 403, limit, value.with(needs(1, num("0.500001")))},
			{"POST", charge, fields{"value_usd": 1_000_000_000}, key, 403, limit, value.with(needs(1, 1_000_000_000))},
			{"POST", charge, fields{"count": 1000, "value_usd": num("0.000001")}, access, 403, limit, actions.with(needs(1000, num("0.000001")))},
			{"POST", "/v1/transactions", fields{"action_type": "a", "session_id": full, "value_usd": num("0.500001")}, access, 403, limit,
				value.with(needs(1, num("0.500001")))},
			{"PATCH", held, fields{"value_usd": num("1.500001"), "expires_in_seconds": 3600}, access, 403, limit, value.with(needs(0, num("1.500001")))},
			{"POST", lease, fields{"max_actions": 3, "expires_in_seconds": 30}, access, 403, limit, actions.with(needs(3, 0))},
			{"POST", lease, fields{"max_value_usd": num("0.500001"), "expires_in_seconds": 30}, key, 403, limit, value.with(needs(0, num("0.500001")))},
			{"POST", lease, fields{"max_actions": 1, "expires_in_seconds": 61}, key, 403, limit,
				stands.with(fields{"limit": "max_lease_seconds"}).with(needs(1, 0))},
			{"POST", "/sessions/" + unleased + "/leases", fields{"max_actions": 1, "expires_in_seconds": 1, "partial": true}, access, 403, limit,
				unused(unleased, "max_lease_seconds").with(needs(1, 0))},
			{"POST", "/sessions/" + short + "/leases", fields{"max_actions": 1, "expires_in_seconds": 3600}, access, 403, limit,
				unused(short, "expires_at").with(needs(1, 0))},
			{"POST", "/sessions/" + lower + "/actions", fields{"value_usd": num("2.000001")}, access, 403, limit,
				unused(lower, "max_committed_usd").with(fields{"remaining_value_usd": 2}).with(needs(1, num("2.000001")))},
			{"POST", "/sessions/" + each + "/actions", fields{"value_usd": num("0.500001")}, key, 403, limit,
				unused(each, "max_value_usd_per_action").with(needs(1, num("0.500001")))},
			{"PATCH", "/sessions/" + full, fields{"max_actions": 7, "max_value_usd": 100}, key, 409, below, actions},
			{"PATCH", "/v1/sessions/" + full, fields{"max_value_usd": num("4.499999"), "expires_in_seconds": 5}, key, 409, below, value},
			{"POST", "/v1/sessions/" + full + "/requests", fields{"add_actions": 1, "reason": "r"}, access, 403, limit,
				stands.with(fields{"limit": "max_pending_requests"}).with(needs(1, 0))},
			{"POST", charge, fields{"scope": "admin"}, access, 403, noScope, fields{"required_scope": "admin"}},
			{"POST", charge, fields{"scope": "rea"}, key, 403, noScope, fields{"required_scope": "rea"}},
			{"POST", undo(w, access, "read"), nil, access, 403, noScope, fields{"required_scope": "transactions:rollback"}},
			{"POST", undo(other, lacking, "Admin"), fields{"reason": "r"}, lacking, 403, noScope, fields{"required_scope": "transactions:rollback"}},
			{"POST", asked + "/approve", nil, key, 409, notActive, fields{"session_status": "completed"}},
			{"POST", asked + "/deny", nil, key, 409, notActive, fields{"session_status": "completed"}},
			{"POST", settled["committed"] + "/rollback", nil, key, 409, "transaction_not_reversible", fields{"transaction_status": "committed"}},
			{"POST", settled["committed"] + "/rollback", nil, access, 409, "transaction_not_reversible", fields{"transaction_status": "committed"}},
			{"POST", "/sessions/" + full + "/keys", fields{"name": "n"}, key, 409, "too_many_session_keys", nil},
			{"POST", "/sessions/" + proven + "/keys", nil, key, 409, "session_key_unbound", nil},
			{"PATCH", dead, fields{"name": "x"}, key, 409, "agent_revoked", nil},
			{"POST", dead + "/suspend", nil, key, 409, "agent_revoked", nil},
			{"POST", dead + "/resume", nil, key, 409, "agent_revoked", nil},
			{"POST", dead + "/secret/rotate", nil, key, 409, "agent_revoked", nil},
			{"POST", "/sessions", fields{"agent_id": revoked.agent.id}, key, 409, "agent_revoked", nil},
		}
		for status, id := range over {
			path, is := "/sessions/"+id, fields{"session_status": status}
			requests = append(requests,
				request{"POST", path + "/actions", fields{"value_usd": 1}, key, 403, notActive, is},
				request{"POST", path + "/leases", fields{"max_actions": 1, "expires_in_seconds": 1}, key, 403, notActive, is},
				request{"PATCH", path, fields{"max_actions": 5000}, key, 409, notActive, is},
				request{"POST", path + "/keys", nil, key, 409, notActive, is},
				request{"POST", path + "/suspend", nil, key, 409, notActive, is},
				request{"POST", path + "/resume", nil, key, 409, notActive, is})
			if status != "completed" { // which ends again
				requests = append(requests, request{"POST", path + "/end", nil, key, 409, notActive, is})
			}
			if status != "revoked" { // whose agent has no token
				requests = append(requests,
					request{"POST", path + "/actions", fields{}, access, 403, notActive, is},
					request{"POST", path + "/requests", fields{"add_actions": 1, "reason": "r"}, access, 403, notActive, is},
					request{"POST", "/v1/transactions", fields{"action_type": "a", "session_id": id}, access, 403, notActive, is})
			}
		}
		for status, path := range settled {
			is := fields{"transaction_status": status}
			requests = append(requests, request{"PATCH", path, fields{"value_usd": 1}, access, 409, notPending, is})
			if status != "expired" { // which is committed late
				requests = append(requests, request{"POST", path + "/commit", nil, access, 409, notPending, is})
			}
			if status != "committed" {
				requests = append(requests, request{"POST", path + "/rollback", nil, access, 409, notPending, is},
					request{"POST", path + "/rollback", nil, key, 409, notPending, is})
			}
		}

		before := w.holdings()
		for _, r := range requests {
			refused := w.ask(r.method, r.path, r.body, r.as).refused(r.status, r.code).exactly(problemFields(r.status, r.code, r.members))
			wantEqual(t, refused.what+": Location", refused.header.Get("Location"), "")
			challenge := ""
			if r.code == noScope {
				challenge = fmt.Sprintf(`Bearer realm="remit", error=%q, scope=%q`, noScope, r.members["required_scope"]) + itsMetadata
			}
			if got := refused.header.Get("WWW-Authenticate"); got != challenge || refused.header.Get("Retry-After") != "" {
				t.Errorf("%s: WWW-Authenticate %q, want %q; Retry-After %q", refused.what, got, challenge, refused.header.Get("Retry-After"))
			}
		}
		wantEqual(t, "what there is after refusals", w.holdings(), before)
	})
}
