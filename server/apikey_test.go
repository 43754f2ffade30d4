package server_test

import (
	"slices"
	"testing"
	"time"
)

// apiKey is an API key beside an organization's first one.
type apiKey struct{ id, text string }

// newKey creates an API key of the tenant's organization with this role.
func (w tenant) newKey(role string) apiKey {
	w.t.Helper()
	created := w.post("/v1/api-keys", fields{"name": role, "role": role}, asKey(w.key)).is(201)
	return apiKey{created.text("id"), created.text("api_key")}
}

func TestAnAPIKeyIsCreatedListedUsedAndDeleted(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		created := w.post("/v1/api-keys", fields{"name": "dash board \n é", "role": "viewer", "expires_in_seconds": 3600}, asKey(w.key)).is(201)
		text, id := created.text("api_key"), created.text("id")
		listed := fields{
			"id": id, "name": "dash board \n é", "role": "viewer", "hint": text[len(text)-4:], "created_at": aboutNow,
			"expires_at": aboutIn(time.Hour), "last_used_at": nil,
		}
		created.exactly(listed.with(fields{"api_key": text}))
		wantEqual(t, "Location", created.header.Get("Location"), "/v1/api-keys/"+id)
		first := fields{
			"id": w.org, "name": "first key", "role": "admin", "hint": w.key[len(w.key)-4:], "created_at": aboutNow,
			"expires_at": nil, "last_used_at": aboutNow,
		}
		w.get("/v1/api-keys", asKey(w.key)).is(200).isList(t, listed, first)
		there := w.through(w.another(t))
		there.get("/v1/agents", asKey(text)).is(200)
		w.get("/v1/api-keys", asKey(text)).is(200).isList(t, listed.with(fields{"last_used_at": aboutNow}), first)
		if r := w.delete("/v1/api-keys/"+id, asKey(w.key)).is(204); len(r.body) > 0 {
			t.Errorf("the answer has a body: %s", r.body)
		}
		for _, at := range []tenant{there, w} {
			at.get("/v1/agents", asKey(text)).refused(401, "invalid_api_key")
		}
		w.delete("/v1/api-keys/"+id, asKey(w.key)).refused(404, "not_found")
		w.get("/v1/api-keys", asKey(w.key)).is(200).isList(t, first)
	})
}

func TestTheLastAdminKeyThatNeverExpiresCannotBeDeleted(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		w.newKey("operator")
		w.post("/v1/api-keys", fields{"name": "n", "role": "admin", "expires_in_seconds": 3600}, asKey(w.key)).is(201)
		w.delete("/v1/api-keys/"+w.org, asKey(w.key)).refused(409, "last_admin_key")
		other := w.newKey("admin")
		w.delete("/v1/api-keys/"+w.org, asKey(w.key)).is(204) // a key may delete itself
		w.get("/v1/agents", asKey(w.key)).refused(401, "invalid_api_key")
		w.delete("/v1/api-keys/"+other.id, asKey(other.text)).refused(409, "last_admin_key")
		w.get("/v1/agents", asKey(other.text)).is(200)
	})
}

func TestRotatingAnyAPIKeyKeepsItsIDRoleAndGrace(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		old := w.newKey("viewer")
		path := "/v1/api-keys/" + old.id + "/rotate"
		rotated := w.post(path, fields{"grace_seconds": 60}, asKey(w.key)).is(200)
		fresh := rotated.text("api_key")
		rotated.exactly(fields{"id": old.id, "api_key": anAPIKey, "previous_expires_at": aboutIn(time.Minute)})
		for _, key := range []string{old.text, fresh} {
			w.get("/v1/agents", asKey(key)).is(200)
			w.post("/v1/api-keys", fields{"name": "n", "role": "viewer"}, asKey(key)).refused(403, "insufficient_role")
		}
		last := w.post(path, fields{"grace_seconds": 0}, asKey(w.key)).is(200).text("api_key")
		for _, key := range []string{old.text, fresh} {
			w.get("/v1/agents", asKey(key)).refused(401, "invalid_api_key")
		}
		w.get("/v1/agents", asKey(last)).is(200)

		own := w.post("/v1/api-keys/"+w.org+"/rotate", fields{"grace_seconds": 0}, asKey(w.key)).is(200).text("api_key")
		w.get("/v1/agents", asKey(w.key)).refused(401, "invalid_api_key")
		w.get("/v1/agents", asKey(own)).is(200)
	})
}

func TestAnAdminKeyInItsGraceTimeManagesNoKeysOnceItsSuccessorIsUsed(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		for _, old := range []apiKey{w.newKey("admin"), {w.org, w.key}} {
			fresh := w.post("/v1/api-keys/"+old.id+"/rotate", nil, asKey(old.text)).is(200).text("api_key")
			w.get("/v1/agents", asKey(fresh)).is(200)
			w.get("/v1/agents", asKey(old.text)).is(200)
			w.post("/v1/api-keys", fields{"name": "n", "role": "viewer"}, asKey(old.text)).refused(403, "forbidden")
			w.post("/v1/api-keys/"+w.org+"/rotate", nil, asKey(old.text)).refused(403, "forbidden")
			w.post("/v1/organizations/"+w.org+"/api-key/rotate", nil, asKey(old.text)).refused(403, "forbidden")
			w.delete("/v1/api-keys/"+w.org, asKey(old.text)).refused(403, "forbidden")
		}
	})
}

func TestAnOrganizationHasAtMost64APIKeys(t *testing.T) {
	onEach(t, (*client).newTenant, func(t *testing.T, w tenant) {
		short := w.post("/v1/api-keys", fields{"name": "short", "role": "viewer", "expires_in_seconds": 1}, asKey(w.key)).is(201)
		for range 62 {
			w.newKey("viewer")
		}
		eventually(t, "the short key has expired", func() bool { return w.get("/v1/agents", asKey(short.text("api_key"))).status == 401 })
		w.newKey("operator") // in the place of the one that has expired
		w.post("/v1/api-keys", fields{"name": "n", "role": "viewer"}, asKey(w.key)).refused(403, "quota_exceeded").
			has(fields{"quota": "api_keys", "used": 64, "max": 64})
		listed := w.get("/v1/api-keys", asKey(w.key)).is(200).ids()
		if len(listed) != 64 || slices.Contains(listed, short.text("id")) {
			t.Errorf("%d keys are listed; the one that has expired: %t", len(listed), slices.Contains(listed, short.text("id")))
		}
	})
}
