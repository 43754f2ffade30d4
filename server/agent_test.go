package server_test

import (
	"slices"
	"testing"
)

func TestAnAgentIsCreatedWithASecretAndListedNewestFirst(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		listed := []fields{w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).object().without("limits", "usage")} // which lists do not show
		for _, body := range []fields{
			{"name": "scout", "scopes": list("read", "payments:write")}, {"name": "mute", "scopes": list()},
			{"name": "full", "scopes": list("a"), "description": "does it all", "metadata": fields{"k": "v"}},
		} {
			created := w.post("/v1/agents", body, asKey(w.key)).is(201)
			want := fields{"id": anID, "org_id": w.org, "status": "active", "created_at": aboutNow, "metadata": fields{}}.with(unlimited).with(body)
			created.exactly(want.with(fields{"secret": aSecret}))
			wantEqual(t, "Location", created.header.Get("Location"), "/v1/agents/"+created.text("id"))
			listed = slices.Insert(listed, 0, w.get(created.header.Get("Location"), asKey(w.key)).is(200).exactly(want).object().without("limits", "usage"))
		}
		w.get("/v1/agents", asKey(w.key)).is(200).isList(t, listed...)
	})
}

// unlimited is what an agent without limits has of them.
var unlimited = fields{
	"limits": fields{"max_value_usd_per_day": nil, "max_actions_per_minute": nil, "max_open_sessions": nil},
	"usage":  fields{"value_used_usd_today": nil, "resets_at": nil, "open_sessions": nil},
}

func TestRevokeAgentIsIdempotentAndAnswersEitherMethod(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path, posted := "/v1/agents/"+w.agent.id, w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200).object()
		first := w.post(path+"/revoke", fields{}, asKey(w.key)).is(200).exactly(fields{"id": w.agent.id, "status": "revoked", "revoked_at": aboutNow})
		wantSameAnswer(t, first, w.delete(path, asKey(w.key)))
		w.get(path, asKey(w.key)).is(200).exactly(posted.with(fields{"status": "revoked", "revoked_at": first.text("revoked_at")}))
		deleted := "/v1/agents/" + w.newAgent().id
		second := w.delete(deleted, asKey(w.key)).is(200)
		wantSameAnswer(t, second, w.post(deleted+"/revoke", nil, asKey(w.key)))
	})
}

func TestChangeAgentChangesWhatItNames(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		path, l := "/v1/agents/"+w.agent.id, w.trail()
		want := w.get(path, asKey(w.key)).is(200).object()
		for _, change := range []struct {
			body, gone fields
			changed    []any
		}{
			{fields{"name": "planner"}, nil, list("name")},
			{fields{"description": "it plans", "metadata": fields{"team": "a"}}, nil, list("description", "metadata")},
			{fields{"scopes": list("write", "read", "admin")}, nil, list("scopes")},
			{fields{"scopes": list()}, nil, list("scopes")},
			{fields{"name": "n", "metadata": fields{}, "scopes": list("read")}, nil, list("name", "metadata", "scopes")},
			{fields{"description": ""}, nil, list("description")},
			{fields{"audiences": list("https://a.example")}, nil, list("audiences")},
			{fields{"audiences": list()}, nil, list("audiences")},
			{fields{"audiences": nil}, nil, list("audiences")},
			{fields{"jwks": keySet(anEd25519Key)}, nil, list("jwks")},
			{fields{"jwks": keySet(anECKey)}, nil, list("jwks")},
			{fields{"jwks_uri": "https://a.example/keys"}, fields{"jwks": nil}, list("jwks", "jwks_uri")},
			{fields{"jwks": keySet(anECKey), "name": "m"}, fields{"jwks_uri": nil}, list("name", "jwks", "jwks_uri")},
			{fields{"jwks": nil}, nil, list("jwks")},
			{fields{"dpop_required": true}, nil, list("dpop_required")},
			{fields{"dpop_required": false, "audiences": list("urn:a")}, nil, list("audiences", "dpop_required")},
		} {
			want = want.with(change.body).with(change.gone)
			for field, value := range want { // none of these is shown
				if value == nil || value == false || value == "" {
					delete(want, field)
				}
			}
			changed := w.patch(path, change.body, asKey(w.key)).is(200).exactly(want)
			l.gains(changed, "api_key", fields{"type": "agent.changed", "data": fields{"changed": change.changed}})
			wantSameAnswer(t, changed, w.patch(path, change.body, asKey(w.key)))
			wantSameAnswer(t, changed, w.get(path, asKey(w.key)))
			l.gainsNothing("the same change again")
		}
	})
}

func TestScopesThatAnAgentLosesAreRefusedAtOnceByEachInstance(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		there := w.through(w.another(t))
		tokens, narrow := w.exchange(), w.grant("write").granted(w.client, "write")
		as := asAgent(tokens.access)
		own, all := w.newSession(fields{"scopes": list("read", "write")}), w.newSession(nil)
		there.get("/v1/auth/verify?scope=write", as).is(200).identifies(w, "read", "write")
		w.patch("/v1/agents/"+w.agent.id, fields{"scopes": list("read", "new")}, asKey(w.key)).is(200)
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
			at.post("/v1/auth/introspect", fields{"token": tokens.access}, asKey(w.key)).is(200).has(fields{"scope": "read"})
			at.grant("write").refusedOAuth(400, "invalid_scope", lacking("write"))
			at.grant().granted(w.client, "read", "new")
			at.post("/sessions", fields{"agent_id": w.agent.id, "scopes": list("write")}, asKey(w.key)).invalid("scopes")
		}
		there.renew(narrow.refresh, "write").refusedOAuth(400, "invalid_scope", lacking("write"))
		there.renew(narrow.refresh).is(200).has(fields{"scope": ""})
		// A scope that it has again is held again, by what names it.
		w.patch("/v1/agents/"+w.agent.id, fields{"scopes": list("write")}, asKey(w.key)).is(200)
		there.post("/sessions/"+own+"/actions", fields{"scope": "write"}, as).is(200)
		there.post("/sessions/"+own+"/actions", fields{"scope": "read"}, as).refused(403, "insufficient_scope")
	})
}
