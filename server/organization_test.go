package server_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

func TestCreateOrganizationReturnsTheOrganizationAndItsKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		created := api.post("/v1/organizations", fields{"name": "acme"}).is(201)
		created.exactly(fields{"id": anID, "name": "acme", "api_key": anAPIKey, "metadata": fields{}, "created_at": aboutNow})
		if got, want := created.header.Get("Location"), "/v1/organizations/"+created.text("id"); got != want {
			t.Errorf("Location %q, want %q", got, want)
		}
		if got := created.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Content-Type %q", got)
		}
	})
}

func TestCreateOrganizationKeepsItsMetadataToTheDigit(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		created := api.post("/v1/organizations",
			raw(`{"name":"Ünïcode <&> 日本 \u2028","metadata":{"b":[1, 2.50,1e2],"a":{"deep":null},"ü":12345678901234567890}}`)).is(201)
		want := fields{"id": anID, "name": "Ünïcode <&> 日本 \u2028", "created_at": aboutNow, "metadata": fields{
			"b": []any{num("1"), num("2.50"), num("1e2")}, "a": map[string]any{"deep": nil}, "ü": num("12345678901234567890"),
		}}
		created.exactly(want.with(fields{"api_key": anAPIKey}))
		api.get(created.header.Get("Location"), asKey(created.text("api_key"))).is(200).
			exactly(want.with(fields{"quotas": someResources, "usage": someResources}))
	})
}

func TestGetOrganizationNeverShowsTheKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		w.get("/v1/organizations/"+w.org, asKey(w.key)).is(200).
			exactly(fields{"id": w.org, "name": "acme", "metadata": fields{}, "created_at": aboutNow,
				"quotas": someResources, "usage": someResources})
	})
}

func TestRotateAPIKeyEndsTheOldOneAtOnceOnEachInstance(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		there := w.through(api.another(t))
		rotated := w.post("/v1/organizations/"+w.org+"/api-key/rotate", fields{"grace_seconds": 0}, asKey(w.key)).is(200)
		rotated.exactly(fields{"api_key": anAPIKey, "previous_expires_at": aboutNow})
		fresh := rotated.text("api_key")
		for _, at := range []tenant{w, there} {
			at.get("/v1/agents", asKey(w.key)).refused(401, "invalid_api_key")
			at.get("/v1/agents/"+w.agent.id, asKey(fresh)).is(200)
		}
	})
}

func TestEveryWrongAPIKeyIsRefusedAlike(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		session, transaction := w.newSession(nil), w.begin(nil)
		for _, e := range slices.Concat(endpointsOfOrganizations(w, session), endpointsOfBoth(w, session, transaction),
			[]endpoint{rollbackOf(transaction)}) {
			w.ask(e.method, e.path, e.body).refused(401, "missing_credentials")
			w.ask(e.method, e.path, e.body, asKey("")).refused(401, "missing_credentials")
			wrong := w.ask(e.method, e.path, e.body, asKey(newKeyOf(uuid.MustParse(w.org)))).refused(401, "invalid_api_key")
			for _, key := range []string{"rmk_nonsense", w.key + "0", " " + w.agent.secret, w.key[:len(w.key)-1] + "!"} {
				wantSameAnswer(t, wrong, w.ask(e.method, e.path, e.body, asKey(key)))
			}
			r := w.ask(e.method, e.path, e.body, asKey(w.exchange().access)).refused(401, "invalid_api_key")
			if want := "an access token was sent in X-API-Key: send it as Authorization: Bearer"; r.detail() != want {
				t.Errorf("%s: an access token: %s", e.path, r.body)
			}
			if e.path != "/v1/organizations/"+w.org && e.path != "/v1/organizations/"+w.org+"/api-key/rotate" {
				wantSameAnswer(t, wrong, w.ask(e.method, e.path, e.body, asKey(newKeyOf(uuid.New()))))
			}
		}
		w.get("/v1/agents/"+w.agent.id, asKey(w.key)).is(200)
	})
}
