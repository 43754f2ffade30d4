package server_test

import "testing"

// usesOfSession are what a suspension of the session forbids its agent and an API key.
func (w tenant) usesOfSession(session string, tokens pair) []func() *response {
	as := asAgent(tokens.access)
	return []func() *response{
		func() *response { return w.post("/v1/sessions/"+session+"/actions", fields{}, as) },
		func() *response { return w.post("/v1/sessions/"+session+"/actions", fields{}, asKey(w.key)) },
		func() *response { return w.post("/v1/sessions/"+session+"/actions", fields{}, as, keyed("one")) },
		func() *response { return w.get("/v1/auth/authorize?session_id="+session, as) },
		func() *response { return w.beginAs(as, fields{"session_id": session, "value_usd": 0.01}) },
		func() *response { return w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, as) },
		func() *response {
			return w.post("/v1/sessions", fields{"parent_session_id": session, "agent_id": w.agent.id, "max_actions": 1, "max_value_usd": 0.1}, asKey(w.key))
		},
	}
}

// What one instance has acknowledged the other obeys on its very next request, whatever that is. Both have served the agent before.
func TestTheOtherInstanceObeysASuspensionOnItsVeryNextRequest(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		path func(w tenant, parent, session string) string
		body fields
		code string
	}{
		"agent":         {func(w tenant, _, _ string) string { return "/v1/agents/" + w.agent.id }, fields{}, "agent_suspended"},
		"all agents":    {func(tenant, string, string) string { return "/v1/agents" }, fields{"all": true}, "agent_suspended"},
		"session":       {func(_ tenant, _, session string) string { return "/v1/sessions/" + session }, fields{}, "session_suspended"},
		"session above": {func(_ tenant, parent, _ string) string { return "/v1/sessions/" + parent }, fields{}, "session_suspended"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) {
				w := api.newTenant()
				there := w.through(api.another(t))
				parent, tokens := w.newSession(fields{"max_value_usd": 5, "max_lease_seconds": 60}), w.exchange()
				session := w.post("/v1/sessions", fields{"agent_id": w.agent.id, "parent_session_id": parent, "max_actions": 60, "max_value_usd": 2,
					"max_lease_seconds": 60}, asKey(w.key)).is(201).text("id")
				lease := w.lease(session, fields{"max_actions": 1, "expires_in_seconds": 60}, asAgent(tokens.access)).is(201).text("id")
				path := test.path(w, parent, session)
				here, uses := w, func(at tenant) []func() *response {
					if test.code == "session_suspended" {
						return at.usesOfSession(session, tokens)
					}
					return at.uses(session, lease, tokens)
				}
				for i := range uses(w) {
					here.post(path+"/suspend", test.body, asKey(w.key)).is(200)
					uses(there)[i]().refused(403, test.code)
					there.post(path+"/resume", test.body, asKey(w.key)).is(200)
					if got := uses(here)[i](); got.status/100 != 2 {
						t.Errorf("%s: %d %s", got.what, got.status, got.body)
					}
					here, there = there, here
				}
			})
		})
	}
}
