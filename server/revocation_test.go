package server_test

import (
	"slices"
	"testing"
)

// From the moment it is acknowledged, on any instance: DESIGN §2.4, POST /v1/agents/{id}/revoke.
func TestRevokingAnAgentEndsAllItsAccessOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
		there.get("/sessions/"+session, asAgent(tokens.access)).is(200)

		w.revoke()

		there.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).refused(401, "invalid_credentials")
		there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(401, "invalid_refresh_token")
		for _, e := range slices.Concat(endpointsOfBoth(w, session, transaction), endpointsOfAgents(w, session, transaction), []endpoint{
			{"POST", "/v1/auth/revoke", fields{"refresh_token": tokens.refresh}},
			{"GET", "/sessions?agent_id=" + w.agent.id, nil},
			{"GET", "/v1/transactions?agent_id=" + w.agent.id, nil},
		}) {
			there.ask(e.method, e.path, e.body, asAgent(tokens.access)).refused(401, "invalid_token")
		}
	})
}

func TestTheOpenSessionsOfARevokedAgentReadRevoked(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		open, ended, others := w.newSession(nil), w.newSession(nil), w.newSessionOf(w.newAgent(), nil)
		w.post("/sessions/"+ended+"/end", nil, asKey(w.key)).is(200)

		w.revoke()

		want := map[string]string{open: "revoked", ended: "completed", others: "active"}
		for id, status := range want {
			if got := there.session(id)["status"]; got != status {
				t.Errorf("GET /sessions/{id}: %v, want %s", got, status)
			}
			if ids := there.get("/sessions?status="+status, asKey(w.key)).is(200).ids(); len(ids) != 1 || ids[0] != id {
				t.Errorf("GET /sessions?status=%s: %v, want %s", status, ids, id)
			}
		}
		for _, s := range there.get("/sessions", asKey(w.key)).is(200).array() {
			if id := s["id"].(string); s["status"] != want[id] {
				t.Errorf("GET /sessions: %v, want %s", s["status"], want[id])
			}
		}
	})
}

func TestASessionOfARevokedAgentRefusesChargesAndItsEnd(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		session := w.newSession(nil)
		w.revoke()
		before := there.session(session)
		for _, refused := range []*response{
			there.post("/sessions/"+session+"/actions", fields{"value_usd": 1}, asKey(w.key)).refused(403, "session_not_active"),
			there.post("/sessions/"+session+"/end", nil, asKey(w.key)).refused(409, "session_not_active"),
		} {
			if got := refused.text("session_status"); got != "revoked" {
				t.Errorf("%s: session_status %s, want revoked", refused.what, got)
			}
		}
		if found := differences(there.session(session), before); found != "" {
			t.Errorf("the refusals changed it: %s", found)
		}
	})
}
