package server_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// suspend suspends the tenant's organization as the operator does, and the instance reads so.
func (w tenant) suspend() {
	w.t.Helper()
	must(w.on.kept.Suspend(w.t.Context(), uuid.MustParse(w.org)))(w.t)
	w.readSuspensions()
}

func (w tenant) resume() {
	w.t.Helper()
	if err := w.on.kept.Resume(w.t.Context(), uuid.MustParse(w.org)); err != nil {
		w.t.Fatal(err)
	}
	w.readSuspensions()
}

func (w tenant) readSuspensions() {
	w.t.Helper()
	if err := w.on.kept.ReadSuspensions(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func TestEveryEndpointRefusesASuspendedOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w, other := api.newTenant(), api.newTenant()
		session, tokens, transaction := w.newSession(nil), w.exchange(), w.begin(nil)
		before := w.session(session)
		w.suspend()
		forged := newKeyOf(uuid.MustParse(w.org))
		both := append(endpointsOfBoth(w, session, transaction), rollbackOf(transaction))
		for _, e := range slices.Concat(endpointsOfOrganizations(w, session), both) {
			w.ask(e.method, e.path, e.body, asKey(w.key)).refused(403, "organization_suspended")
			w.ask(e.method, e.path, e.body, asKey(forged)).refused(401, "invalid_api_key") // a stranger does not learn it
		}
		authorize := "/v1/auth/authorize?session_id=" + session
		for _, e := range slices.Concat(endpointsOfAgents(w, session, transaction), both, []endpoint{
			{"POST", "/v1/auth/revoke", fields{"refresh_token": tokens.refresh}},
			{"GET", "/v1/auth/verify", nil}, {"GET", authorize, nil}, {"POST", authorize, nil},
		}) {
			w.ask(e.method, e.path, e.body, asAgent(tokens.access)).refused(403, "organization_suspended")
		}
		w.post("/v1/auth/token", fields{"agent_id": w.agent.id, "secret": w.agent.secret}).refused(403, "organization_suspended")
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).refused(403, "organization_suspended")
		other.get("/v1/agents", asKey(other.key)).is(200)
		other.get("/v1/auth/verify", asAgent(other.exchange().access)).is(200)

		w.resume()
		w.get("/v1/auth/verify", asAgent(tokens.access)).is(200)
		w.post("/v1/auth/refresh", fields{"refresh_token": tokens.refresh}).is(200)
		if found := differences(w.session(session), before); found != "" {
			t.Errorf("while it was suspended its session changed: %s", found)
		}
	})
}

func TestTheOAuthFaceRefusesASuspendedOrganization(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		tokens := w.exchange()
		w.suspend()
		for _, refused := range []*response{
			w.postForm("/oauth2/token", form("grant_type", "client_credentials"), byBasic(w.agent)),
			w.postForm("/oauth2/token", form("grant_type", "refresh_token", "refresh_token", tokens.refresh), byBasic(w.agent)),
			w.postForm("/oauth2/introspect", form("token", tokens.access), byBasic(w.agent)),
			w.postForm("/oauth2/revoke", form("token", tokens.refresh), byBasic(w.agent)),
		} {
			refused.refusedOAuth(400, "unauthorized_client", own("organization_suspended"))
		}
	})
}
