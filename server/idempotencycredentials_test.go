package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/google/uuid"
	"remit/server/identity"
)

// givesCredential is a request whose answer holds one, in a field of that name.
type givesCredential struct {
	name, path, field string
	as                option
	body              fields
	status            int
}

func (d doer) credentialRequests() []givesCredential {
	rotated := d.newAgent()
	return []givesCredential{
		{"organization", "/v1/organizations", "api_key", func(http.Header) {},
			fields{"name": "acme", "metadata": fields{"b": 1, "a": 2}}, 201},
		{"agent", "/v1/agents", "secret", d.byKey,
			fields{"name": "n", "scopes": list("read", "write"), "description": "d", "metadata": fields{"b": 1, "a": list("y", "x")}},
			201},
		{"secret", "/v1/agents/" + rotated.id + "/secret/rotate", "secret", d.byKey, fields{}, 200},
		{"API key", "/v1/organizations/" + d.org + "/api-key/rotate", "api_key", d.byKey, fields{}, 200},
	}
}

// works says whether a credential that an answer gave is the one that counts.
func (d doer) works(r givesCredential, answer *response) bool {
	d.t.Helper()
	credential := answer.text(r.field)
	if r.field == "api_key" {
		return d.get("/v1/agents", asKey(credential)).status == 200
	}
	return d.post("/v1/auth/token", fields{"agent_id": answer.text("id"), "secret": credential}).status == 200
}

// A dump of Redis shows no credential, and nothing from which one could be made.
func TestNoCredentialIsKeptInTheClear(t *testing.T) {
	t.Parallel()
	mini := miniredis.RunT(t)
	d := start(t, setup{redis: "redis://" + mini.Addr(), mini: mini}).newDoer()
	var credentials []string
	for _, r := range d.credentialRequests() {
		credentials = append(credentials, d.post(r.path, r.body, both(r.as, keyed(uuid.NewString()))).is(r.status).text(r.field))
	}
	dump := mini.Dump()
	if !strings.Contains(dump, "i:{") {
		t.Fatal("no outcome is kept")
	}
	for _, credential := range append(credentials, d.key) {
		if strings.Contains(dump, credential) || strings.Contains(dump, credential[4:30]) {
			t.Errorf("%s stands in Redis", credential[:4])
		}
	}
}

// After a rotation without grace whose response was lost, the old key is good only for this replay.
func TestAnOrganizationIsNotLockedOutByALostRotation(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		path, at, key := "/v1/organizations/"+d.org+"/api-key/rotate", fields{"grace_seconds": 0}, keyed(uuid.NewString())
		lost := d.post(path, at, both(d.byKey, key)).is(200)
		d.get("/v1/agents", d.byKey).refused(401, "invalid_api_key")
		d.post(path, at, both(d.byKey, key)).replays(lost)
		d.post(path, at, d.byKey).refused(401, "invalid_api_key")
		d.post(path, fields{"grace_seconds": 1}, both(d.byKey, key)).refused(401, "invalid_api_key")
		d.post(path, at, both(asKey(lost.text("api_key")), key)).refused(422, "idempotency_key_reused").fresh()
	})
}

// The response is sealed with the calling API key, so its successor gets a plain refusal and never another secret.
func TestAResponseIsSealedForTheCallingAPIKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
		key, body := keyed("k"), fields{"name": "n", "scopes": list()}
		first := d.post("/v1/agents", body, both(d.byKey, key)).is(201)
		renewed := d.post("/v1/organizations/"+d.org+"/api-key/rotate", nil, d.byKey).is(200).text("api_key")
		d.post("/v1/agents", body, both(asKey(renewed), key)).refused(422, "idempotency_key_reused").fresh()
		d.post("/v1/agents", body, both(d.byKey, key)).replays(first) // in its grace
	})
}

func TestAnAPIKeyStaysValidForFiveMinutesAfterItsRotationAndASecretNotAtAll(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		d := api.newDoer()
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
	mini := miniredis.RunT(t)
	withToken := func(token string) *client {
		return start(t, setup{redis: "redis://" + mini.Addr(), mini: mini, prefix: "shared:",
			organizations: identity.Organizations{Creation: identity.OrganizationsToken, BootstrapToken: token}})
	}
	api, as := withToken("bootstrap"), asAgent("bootstrap")
	first := api.post("/v1/organizations", fields{"name": "n"}, both(as, keyed("k"))).is(201).fresh()
	api.post("/v1/organizations", fields{"name": "n"}, both(as, keyed("k"))).replays(first)
	api.post("/v1/organizations", fields{"name": "n"}, both(asAgent("guessed"), keyed("k"))).refused(401, "invalid_token").fresh()
	api.post("/v1/organizations", fields{"name": "n"}, keyed("k")).refused(401, "missing_credentials").fresh()
	other := withToken("another").post("/v1/organizations", fields{"name": "n"}, both(asAgent("another"), keyed("k"))).is(201).fresh()
	if other.text("id") == first.text("id") {
		t.Error("another bootstrap token gets the same organization")
	}
}

func TestALostResponseWithACredentialIsReplayed(t *testing.T) {
	t.Parallel()
	proxy := newLosingProxy(t, privateRedis(t).URL())
	d := start(t, setup{redis: "redis://" + proxy.address}).newDoer()
	for _, r := range d.credentialRequests() { // so that Redis knows all scripts
		d.post(r.path, r.body, both(r.as, keyed(uuid.NewString()))).is(r.status)
	}
	d = d.through(d.client)
	before := map[string]int64{"organization": 0, "agent": 1, "secret": 1, "API key": 0} // answers before that to the change
	for _, r := range d.credentialRequests() {
		key := keyed(uuid.NewString())
		proxy.lose.Store(before[r.name] + 1)
		d.post(r.path, r.body, both(r.as, key)).refused(503, "outcome_unknown").fresh()
		again := d.post(r.path, r.body, both(r.as, key)).is(r.status)
		if again.header.Get("Idempotent-Replayed") != "true" || !d.works(r, again) {
			t.Errorf("%s: it is not the first one's answer, or its credential does not work", r.name)
		}
		d.post(r.path, r.body, both(r.as, key)).replays(again)
	}
}
