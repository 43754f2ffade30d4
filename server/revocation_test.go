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
		for path, with := range proxyPaths(session) {
			there.get(path, asAgent(tokens.access), with).stopped(401, "invalid_token")
			there.ask("HEAD", path, nil, asAgent(tokens.access), with).is(401)
		}
		w.charged(session, 0, 0)
	})
}
