package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/server/identity"
)

// A dump of Redis shows no credential, and nothing from which one could be made.
func TestNoCredentialIsKeptInTheClear(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	d := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini}).newDoer()
	credentials := []string{d.key}
	for _, r := range []struct {
		path, field string
		as          option
		body        fields
	}{
		{"/v1/organizations", "api_key", anonymous, fields{"name": "acme"}},
		{"/v1/agents", "secret", d.byKey, fields{"name": "n", "scopes": list("read", "write")}},
		{"/v1/agents/" + d.newAgent().id + "/secret/rotate", "secret", d.byKey, fields{}},
		{"/v1/organizations/" + d.org + "/api-key/rotate", "api_key", d.byKey, fields{}},
	} {
		credentials = append(credentials, d.post(r.path, r.body, r.as, keyed(uuid.NewString())).text(r.field))
	}
	dump := mini.Dump()
	if !strings.Contains(dump, "i:{") {
		t.Fatal("no outcome is kept")
	}
	for _, credential := range credentials {
		if strings.Contains(dump, credential) || strings.Contains(dump, credential[4:30]) {
			t.Errorf("%s stands in Redis", credential[:4])
		}
	}
}

func TestAnAPIKeyStaysValidForFiveMinutesAfterItsRotationAndASecretNotAtAll(t *testing.T) {
	onEach(t, (*client).newDoer, func(t *testing.T, d doer) {
		for _, body := range []any{nil, fields{}, fields{"grace_seconds": 300}} {
			rotated := d.post("/v1/organizations/"+d.org+"/api-key/rotate", body, d.byKey).is(200)
			rotated.exactly(fields{"api_key": anAPIKey, "previous_expires_at": aboutIn(5 * time.Minute)})
			d.get("/v1/agents", d.byKey).is(200)
			d.byKey = asKey(rotated.text("api_key"))
		}
		d.post("/v1/agents/"+d.agent.id+"/secret/rotate", nil, d.byKey).is(200)
		d.post("/v1/auth/token", fields{"agent_id": d.agent.id, "secret": d.secret}).refused(401, "invalid_credentials")
	})
}

// An answer with a credential is for the API key that asked: also when that has ended, and not for its successor.
func TestOnlyTheAPIKeyThatAskedGetsItsSuccessorAgain(t *testing.T) {
	onEach(t, (*client).newDoer, func(t *testing.T, d doer) {
		path, at, key := "/v1/organizations/"+d.org+"/api-key/rotate", fields{"grace_seconds": 0}, keyed(uuid.NewString())
		first := d.post(path, at, d.byKey, key).is(200)
		d.post(path, at, d.byKey, key).replays(first)
		d.post(path, at, d.byKey).refused(401, "invalid_api_key")
		d.post(path, fields{"grace_seconds": 1}, d.byKey, key).refused(401, "invalid_api_key")
		d.post(path, at, asKey(first.text("api_key")), key).refused(422, "idempotency_key_reused").fresh()
	})
}

// Where anyone may create organizations, only the idempotency key authenticates a repeated request.
func TestAnIdempotencyKeyForAnOrganizationMustBeUnguessable(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		for _, key := range []string{"k", strings.Repeat("k", 31)} {
			api.post("/v1/organizations", fields{"name": "n"}, keyed(key)).invalid("Idempotency-Key").fresh()
		}
		key := fmt.Sprintf("%032d", 7)
		first := api.post("/v1/organizations", fields{"name": "n"}, keyed(key)).is(201).fresh()
		api.post("/v1/organizations", fields{"name": "n"}, keyed(key)).replays(first)
	})
}

func TestTheBootstrapTokenAuthenticatesARepeatedCreation(t *testing.T) {
	t.Parallel()
	as := asAgent("bootstrap")
	api := onMiniredis(t, setup{organizations: identity.Organizations{Creation: identity.OrganizationsToken, BootstrapToken: "bootstrap"}})
	first := api.post("/v1/organizations", fields{"name": "n"}, both(as, keyed("k"))).is(201).fresh()
	api.post("/v1/organizations", fields{"name": "n"}, both(as, keyed("k"))).replays(first)
	api.post("/v1/organizations", fields{"name": "n"}, both(asAgent("guessed"), keyed("k"))).refused(401, "invalid_token").fresh()
	api.post("/v1/organizations", fields{"name": "n"}, keyed("k")).refused(401, "missing_credentials").fresh()
}
