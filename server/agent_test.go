package server_test

import "testing"

func TestCreateAgentReturnsTheAgentAndItsSecret(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		for _, test := range []struct{ body, want fields }{
			{
				fields{"name": "scout", "scopes": list("read", "payments:write")},
				fields{"name": "scout", "scopes": list("read", "payments:write"), "metadata": fields{}},
			},
			{
				fields{"name": "mute", "scopes": list()},
				fields{"name": "mute", "scopes": list(), "metadata": fields{}},
			},
			{
				fields{"name": "full", "scopes": list("a"), "description": "does it all", "metadata": fields{"k": "v"}},
				fields{"name": "full", "scopes": list("a"), "description": "does it all", "metadata": fields{"k": "v"}},
			},
		} {
			created := w.post("/v1/agents", test.body, asKey(w.key)).is(201)
			want := test.want.with(fields{"id": anID, "org_id": w.org, "status": "active", "created_at": aboutNow}).with(unlimited)
			created.exactly(want.with(fields{"secret": aSecret}))
			if got, want := created.header.Get("Location"), "/v1/agents/"+created.text("id"); got != want {
				t.Errorf("Location %q, want %q", got, want)
			}
			w.get(created.header.Get("Location"), asKey(w.key)).is(200).exactly(want)
		}
	})
}

// unlimited is what an agent without limits has of them.
var unlimited = fields{
	"limits": fields{"max_value_usd_per_day": nil, "max_actions_per_minute": nil, "max_open_sessions": nil},
	"usage":  fields{"value_used_usd_today": nil, "resets_at": nil, "open_sessions": nil},
}

func TestListAgentsReturnsWhatGetReturnsNewestFirst(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		newer := w.newAgent()
		agents := w.get("/v1/agents", asKey(w.key)).is(200).array()
		for i, id := range []string{newer.id, w.agent.id} {
			one := w.get("/v1/agents/"+id, asKey(w.key)).is(200).object()
			delete(one, "limits") // lists do not show what is used of them
			delete(one, "usage")
			if found := differences(agents[i], one); found != "" {
				t.Errorf("agent %d of the list: %s", i, found)
			}
		}
		if len(agents) != 2 {
			t.Errorf("%d agents, want 2", len(agents))
		}
	})
}

func TestRevokeAgentIsIdempotentAndAnswersEitherMethod(t *testing.T) {
	t.Parallel()
	onBothRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		posted, deleted := w.newAgent(), w.newAgent()
		first := w.post("/v1/agents/"+posted.id+"/revoke", fields{}, asKey(w.key)).is(200)
		first.exactly(fields{"id": posted.id, "status": "revoked", "revoked_at": aboutNow})
		second := w.delete("/v1/agents/"+deleted.id, asKey(w.key)).is(200)
		second.exactly(fields{"id": deleted.id, "status": "revoked", "revoked_at": aboutNow})

		wantSameAnswer(t, first, w.delete("/v1/agents/"+posted.id, asKey(w.key)))
		wantSameAnswer(t, second, w.post("/v1/agents/"+deleted.id+"/revoke", nil, asKey(w.key)))
		w.get("/v1/agents/"+posted.id, asKey(w.key)).is(200).exactly(fields{
			"id": posted.id, "org_id": w.org, "name": "scout", "scopes": list(agentScopes...), "status": "revoked",
			"metadata": fields{}, "created_at": aboutNow, "revoked_at": first.text("revoked_at"),
		}.with(unlimited))
	})
}

func TestRotateAgentSecretEndsTheOldOneAtOnceOnEachInstance(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		rotated := w.post("/v1/agents/"+w.agent.id+"/secret/rotate", nil, asKey(w.key)).is(200)
		rotated.exactly(fields{"id": w.agent.id, "secret": aSecret, "previous_expires_at": aboutNow})
		for _, at := range []tenant{w, there} {
			at.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).refused(401, "invalid_credentials")
			at.exchangeFor(agent{w.agent.id, rotated.text("secret")})
		}
	})
}
