package server_test

import (
	"strings"
	"testing"
)

// uses are what a suspension of the tenant's agent forbids, each with an access token or a secret of it.
func (w tenant) uses(session, lease string, tokens pair) []func() *response {
	as := asAgent(tokens.access)
	return []func() *response{
		func() *response {
			return w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret})
		},
		func() *response { return w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}) },
		func() *response { return w.get("/v1/auth/verify", as) },
		func() *response { return w.get("/v1/auth/authorize?session_id="+session, as) },
		func() *response { return w.post("/sessions/"+session+"/actions", fields{}, as) },
		func() *response { return w.post("/sessions/"+session+"/actions", fields{}, asKey(w.key)) },
		func() *response {
			return w.post("/sessions/"+session+"/actions", fields{}, as, keyed("one"))
		},
		func() *response { return w.post("/v1/actions", batchOf(fields{"session_id": session}), as) },
		func() *response {
			return w.post("/v1/actions", batchOf(fields{"session_id": session}), as, keyed("two"))
		},
		func() *response { return w.beginAs(as, nil) },
		func() *response { return w.beginAs(as, fields{"session_id": session, "value_usd": 0.01}) },
		func() *response {
			return w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, as)
		},
	}
}

func TestASuspendedAgentIsRefusedAtOnceByEachInstanceAndMaySettle(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		session := w.newSession(fields{"max_lease_seconds": 600, "max_value_usd": 1})
		tokens := w.exchange()
		as := asAgent(tokens.access)
		there.get("/v1/auth/verify", as).is(200) // which remembers the token
		commit, rollback := w.begin(fields{"session_id": session}), w.begin(fields{"session_id": session})
		lease := w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, as).is(201).text("id")
		before := w.session(session)

		l := w.trail()
		path := "/v1/agents/" + w.agent.id
		suspended := w.post(path+"/suspend", fields{"reason": "it loops\n\"twice\""}, asKey(w.key)).is(200)
		shown := fields{"suspended_at": aboutNow, "suspension_reason": "it loops\n\"twice\""}
		agent := fields{"id": w.agent.id, "org_id": w.org, "name": "scout", "scopes": list(agentScopes...), "status": "active",
			"metadata": fields{}, "created_at": aboutNow}.with(unlimited)
		suspended.exactly(agent.with(shown))
		l.gains(suspended, "api_key", fields{"type": "agent.suspended", "data": fields{"reason": "it loops\n\"twice\""}})
		wantSameAnswer(t, suspended, there.post(path+"/suspend", fields{"reason": "again"}, asKey(w.key)))
		wantSameAnswer(t, suspended, there.get(path, asKey(w.key)))
		l.gainsNothing("the second suspension")

		for _, at := range []tenant{there, w} {
			for _, use := range at.uses(session, lease, tokens) {
				refused := use().refused(403, "agent_suspended")
				if got, want := refused.text("suspended_at"), suspended.text("suspended_at"); got != want {
					t.Errorf("suspended_at %s, want %s", got, want)
				}
			}
			at.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(w.key)).is(200).inactive()
			at.post("/v1/auth/introspect", fields{"token": tokens.refresh}, asKey(w.key)).is(200).inactive()
			at.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": "rms_" + strings.Repeat("x", 43)}).is(401)
			at.get("/sessions/"+session, as).is(200)
		}
		if found := differences(w.session(session), before); found != "" {
			t.Errorf("refused uses changed the session: %s", found)
		}
		there.post("/v1/transactions/"+commit+"/commit", nil, as).is(200)
		there.post("/v1/transactions/"+rollback+"/rollback", nil, as).is(200)
		settled := there.post("/v1/leases/"+lease+"/settle", fields{"action_count": 1, "value_used_usd": 0,
			"renew": fields{"max_actions": 1, "expires_in_seconds": 60}}, as).is(200)
		if refusal, _ := settled.object()["refusal"].(map[string]any); refusal["code"] != "agent_suspended" {
			t.Errorf("the renewal: %v", settled.object())
		}

		l.unread()
		resumed := there.post(path+"/resume", fields{"reason": "fixed"}, asKey(w.key)).is(200)
		resumed.exactly(agent)
		l.gains(resumed, "api_key", fields{"type": "agent.resumed", "data": fields{"reason": "fixed"}})
		wantSameAnswer(t, resumed, w.post(path+"/resume", nil, asKey(w.key)))
		l.gainsNothing("the second resumption")
		for _, use := range w.uses(session, lease, tokens) {
			if got := use(); got.status/100 != 2 {
				t.Errorf("%s: %d %s", got.what, got.status, got.body)
			}
		}
		there.post("/sessions/"+session+"/end", nil, as).is(200)
	})
}

func TestASuspendedSessionIsRefusedAtOnceByEachInstanceAndMaySettle(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		session, other := w.newSession(fields{"max_lease_seconds": 600, "max_value_usd": 1}), w.newSession(nil)
		tokens := w.exchange()
		as := asAgent(tokens.access)
		hold := w.begin(fields{"session_id": session, "value_usd": 0.1})
		lease := w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, as).is(201).text("id")
		before := w.session(session)
		l := w.trail()
		path := "/v1/sessions/" + session
		suspended := w.post(path+"/suspend", fields{"reason": "a\\nb\n"}, asKey(w.key)).is(200)
		suspended.exactly(before.with(fields{"suspended_at": aboutNow, "suspension_reason": "a\\nb\n"}))
		l.gains(suspended, "api_key", fields{"type": "session.suspended", "session_id": session, "data": fields{"reason": "a\\nb\n"}})
		wantSameAnswer(t, suspended, there.post(path+"/suspend", nil, asKey(w.key)))
		wantSameAnswer(t, suspended, there.get(path, asKey(w.key)))
		l.gainsNothing("the second suspension")

		for _, refuse := range append(there.usesOfSession(session, tokens), func() *response {
			return there.patch("/v1/transactions/"+hold, fields{"value_usd": 0.2}, as)
		}) {
			refused := refuse().refused(403, "session_suspended")
			if got, want := refused.text("suspended_at"), suspended.text("suspended_at"); got != want {
				t.Errorf("suspended_at %s, want %s", got, want)
			}
		}
		items := there.post("/v1/actions", batchOf(fields{"session_id": session}, fields{"session_id": other}), as).is(200).items(2)
		if items[0].status != 403 || items[1].status != 200 {
			t.Errorf("a batch: %+v", items)
		}
		there.post("/v1/transactions/"+hold+"/commit", fields{"value_usd": 0.05}, as).is(200)
		settled := there.post("/v1/leases/"+lease+"/settle", fields{"action_count": 1, "value_used_usd": 0,
			"renew": fields{"max_actions": 1, "expires_in_seconds": 60}}, as).is(200)
		if refusal, _ := settled.object()["refusal"].(map[string]any); refusal["code"] != "session_suspended" {
			t.Errorf("the renewal: %v", settled.object())
		}
		there.post(path+"/actions", fields{}, as).refused(403, "session_suspended") // although it holds nothing any more

		l.unread()
		resumed := there.post(path+"/resume", nil, asKey(w.key)).is(200)
		l.gains(resumed, "api_key", fields{"type": "session.resumed", "session_id": session})
		wantSameAnswer(t, resumed, w.get(path, asKey(w.key)))
		w.post(path+"/actions", fields{}, as, keyed("one")).is(200)
	})
}

func TestAllAgentsAreSuspendedAndResumed(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		revoked := w.newAgent()
		w.post("/v1/agents/"+revoked.id+"/revoke", nil, asKey(w.key)).is(200)
		second := w.newAgent()
		for range 2 { // it may be repeated
			w.post("/v1/agents/suspend", fields{"all": true, "reason": "drill"}, asKey(w.key)).is(200).exactly(fields{"suspended": num(2)})
		}
		for _, a := range []agent{w.agent, second} {
			w.post("/v1/auth/token", fields{"agent_id": a.id, "secret": a.secret}).refused(403, "agent_suspended")
			if got := w.get("/v1/agents/"+a.id, asKey(w.key)).is(200).text("suspension_reason"); got != "drill" {
				t.Errorf("the reason is %q", got)
			}
		}
		later := w.newAgent()
		w.exchangeFor(later)
		other.exchange()
		w.post("/v1/agents/resume", fields{"all": true}, asKey(w.key)).is(200).exactly(fields{"resumed": num(3)})
		w.exchange()
		w.exchangeFor(second)
		w.post("/v1/agents/"+revoked.id+"/resume", nil, asKey(w.key)).refused(409, "agent_revoked")
		w.post("/v1/agents/"+revoked.id+"/suspend", nil, asKey(w.key)).refused(409, "agent_revoked")
	})
}

func TestAllAgentsAreSuspendedOnRequestAlone(t *testing.T) {
	t.Parallel()
	w := onMiniredis(t, setup{}).newTenant()
	for _, what := range []string{"/v1/agents/suspend", "/v1/agents/resume"} {
		w.post(what, fields{"all": false}, asKey(w.key)).invalid("all")
	}
	w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).lacks("suspended_at")
	session, longest := w.newSession(nil), strings.Repeat("é", 500)
	w.post("/sessions/"+session+"/suspend", fields{"reason": longest}, asKey(w.key)).is(200)
	if got := w.session(session)["suspension_reason"]; got != longest {
		t.Errorf("the reason is %v", got)
	}
}
