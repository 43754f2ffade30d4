package server_test

import (
	"slices"
	"testing"
)

// refuses fails the test unless the access token opens nothing, neither an endpoint nor what a proxy guards.
func (w tenant) refuses(access, session, transaction string, status int, code string) {
	w.t.Helper()
	for _, e := range slices.Concat(endpointsOfBoth(w, session, transaction), endpointsOfAgents(w, session, transaction),
		[]endpoint{rollbackOf(transaction)}) {
		w.ask(e.method, e.path, e.body, asAgent(access)).refused(status, code)
	}
	for path, with := range proxyPaths(session) {
		w.get(path, asAgent(access), with).stopped(status, code)
		w.ask("HEAD", path, nil, asAgent(access), with).is(status)
	}
}

// endings are what ends or stops the tokens of a family: one for each request that does. That the store takes such a token for nothing,
// redisstore shows.
var endings = []struct {
	name    string
	do      func(w tenant, tokens pair)
	status  int
	code    string
	refresh string // how a refresh is refused
	others  bool   // the agent's other families live on
}{
	{"reuse of the refresh token", func(w tenant, tokens pair) {
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh})
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(401, "invalid_refresh_token")
	}, 401, "invalid_token", "invalid_refresh_token", true},
	{"its revocation", func(w tenant, tokens pair) {
		w.post("/v1/auth/revoke", fields{"refresh_token": tokens.refresh}, asAgent(tokens.access)).is(200).exactly(fields{"revoked": true})
	}, 401, "invalid_token", "invalid_refresh_token", true},
	{"the revocation of its refresh token by OAuth", func(w tenant, tokens pair) {
		if r := w.postForm("/oauth2/revoke", form("token", tokens.refresh, "token_type_hint", "x"), byBasic(w.agent)).is(200); len(r.body) != 0 {
			w.t.Errorf("a body: %s", r.body)
		}
	}, 401, "invalid_token", "invalid_refresh_token", true},
	{"the revocation of its access token by OAuth", func(w tenant, tokens pair) {
		w.postForm("/oauth2/revoke", byPost(w.agent, "token", tokens.access)).is(200)
	}, 401, "invalid_token", "invalid_refresh_token", true},
	{"its deletion", func(w tenant, tokens pair) {
		w.delete("/v1/agents/"+w.agent.id+"/families/"+tokens.family(), asKey(w.key)).is(200).exactly(fields{"revoked": true})
	}, 401, "invalid_token", "invalid_refresh_token", true},
	{"a rotation that revokes all", func(w tenant, _ pair) {
		w.post("/v1/agents/"+w.agent.id+"/secret/rotate", fields{"revoke_families": true}, asKey(w.key)).is(200)
	}, 401, "invalid_token", "invalid_refresh_token", false},
	{"the agent's revocation", func(w tenant, _ pair) { w.revoke() }, 401, "invalid_token", "invalid_refresh_token", false},
	{"the organization's suspension", func(w tenant, _ pair) { w.suspend() }, 403, "organization_suspended", "organization_suspended", false},
}

func TestWhatEndsAFamilyEndsItOnTheOtherInstanceAtOnce(t *testing.T) {
	t.Parallel()
	for _, test := range endings {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onEachRedis(t, func(t *testing.T, api *client) { // whose setup has no grace: a spent token is reused
				w := api.newTenant()
				there := w.through(api.another(t))
				session, transaction := w.newSession(nil), w.begin(nil)
				bystander, tokens := w.exchange(), w.exchange()
				there.get("/sessions/"+session, asAgent(tokens.access)).is(200) // which remembers the token
				for range 2 {                                                   // the first answer may be lost
					test.do(w, tokens)
				}
				there.readSuspensions()
				there.refuses(tokens.access, session, transaction, test.status, test.code)
				there.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(test.status, test.refresh)
				if test.others {
					there.renew(tokens.refresh).refusedOAuth(400, "invalid_grant")
					there.get("/sessions", asAgent(bystander.access)).is(200)
					there.renew(bystander.refresh).granted(w.client, agentScopes...)
				} else {
					there.get("/sessions", asAgent(bystander.access)).refused(test.status, test.code)
				}
			})
		})
	}
}

func TestAnotherAgentsTokenIsNotRevoked(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		mine := asAgent(w.exchange().access)
		for _, theirs := range []pair{w.newTenant().exchange(), w.exchangeFor(w.newAgent())} {
			w.post("/v1/auth/revoke", fields{"refresh_token": theirs.refresh}, mine).refused(403, "forbidden")
			for _, foreign := range []string{theirs.refresh, theirs.access} {
				w.postForm("/oauth2/revoke", form("token", foreign), byBasic(w.agent)).refusedOAuth(400, "invalid_grant")
			}
			w.get("/sessions", asAgent(theirs.access)).is(200)
			w.post("/v1/auth/refresh", fields{"refresh_token": theirs.refresh}).is(200)
		}
	})
}
