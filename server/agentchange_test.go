package server_test

import "testing"

func TestChangeAgentChangesWhatItNames(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path := "/v1/agents/" + w.agent.id
		want := w.get(path, asKey(w.key)).is(200).object()
		l := w.trail()
		for _, change := range []struct {
			body    fields
			changed []any
		}{
			{fields{"name": "planner"}, list("name")},
			{fields{"description": "it plans", "metadata": fields{"team": "a"}}, list("description", "metadata")},
			{fields{"scopes": list("write", "read", "admin")}, list("scopes")},
			{fields{"scopes": list()}, list("scopes")},
			{fields{"name": "n", "metadata": fields{}, "scopes": list("read")}, list("name", "metadata", "scopes")},
		} {
			changed := w.patch(path, change.body, asKey(w.key)).is(200)
			want = want.with(change.body)
			changed.exactly(want)
			l.gains(changed, "api_key", fields{"type": "agent.changed", "data": fields{"changed": change.changed}})
			wantSameAnswer(t, changed, w.patch(path, change.body, asKey(w.key)))
			wantSameAnswer(t, changed, w.get(path, asKey(w.key)))
			l.gainsNothing("the same change again")
		}
		w.patch(path, fields{"description": ""}, asKey(w.key)).is(200)
		if _, described := w.get(path, asKey(w.key)).is(200).object()["description"]; described {
			t.Error("an empty description is shown")
		}
	})
}

func TestScopesThatAnAgentLosesAreRefusedAtOnceByEachInstance(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		tokens, narrow := w.exchange(), w.grant("write").granted(w.client, "write")
		as := asAgent(tokens.access)
		own, all := w.newSession(fields{"scopes": list("read", "write")}), w.newSession(nil)
		there.get("/v1/auth/verify?scope=write", as).is(200).identifies(w, "read", "write")
		narrowed := fields{"scopes": list("read", "new")}
		w.patch("/v1/agents/"+w.agent.id, narrowed, asKey(w.key)).is(200)
		for _, at := range []tenant{there, w} {
			for _, session := range []string{own, all} {
				for _, by := range []option{as, asKey(w.key)} {
					at.post("/sessions/"+session+"/actions", fields{"scope": "write"}, by).refused(403, "insufficient_scope")
					at.post("/sessions/"+session+"/actions", fields{"scope": "read"}, by).is(200)
					items := at.post("/v1/actions", batchOf(fields{"session_id": session, "scope": "write"}, fields{"session_id": session, "scope": "read"}), by).is(200).items(2)
					if items[0].status != 403 || items[1].status != 200 {
						t.Errorf("a batch: %+v", items)
					}
				}
				at.get("/v1/auth/authorize?scope=write&session_id="+session, as).stopped(403, "insufficient_scope")
				at.get("/v1/auth/authorize?scope=read&session_id="+session, as).identifies(w, "read")
			}
			at.get("/v1/auth/verify?scope=write", as).stopped(403, "insufficient_scope")
			at.get("/v1/auth/verify", as).identifies(w, "read")
			if got := at.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(w.key)).is(200).text("scope"); got != "read" {
				t.Errorf("the token is described with %q", got)
			}
			at.grant("write").refusedOAuth(400, "invalid_scope", lacking("write"))
			at.grant().granted(w.client, "read", "new")
			at.post("/sessions", fields{"agent_id": w.agent.id, "scopes": list("write")}, asKey(w.key)).invalid("scopes")
		}
		there.renew(narrow.refresh, "write").refusedOAuth(400, "invalid_scope", lacking("write"))
		empty := there.renew(narrow.refresh).is(200)
		if got := empty.object()["scope"]; got != "" {
			t.Errorf("the refreshed token holds %v", got)
		}
		// A scope that it has again is held again, by what names it.
		w.patch("/v1/agents/"+w.agent.id, fields{"scopes": list("write")}, asKey(w.key)).is(200)
		there.post("/sessions/"+own+"/actions", fields{"scope": "write"}, as).is(200)
		there.post("/sessions/"+own+"/actions", fields{"scope": "read"}, as).refused(403, "insufficient_scope")
	})
}
