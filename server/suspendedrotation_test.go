package server_test

import (
	"testing"

	"github.com/google/uuid"
)

// A thief with the key of a suspended organization must not rotate it.
func TestASuspendedOrganizationDoesNotRotateItsAPIKey(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		w := api.newTenant()
		path, key := "/v1/organizations/"+w.org+"/api-key/rotate", keyed(uuid.NewString())
		first := w.post(path, fields{"grace_seconds": 0}, both(asKey(w.key), key)).is(200)
		renewed := first.text("api_key")
		w.suspend()
		w.post(path, nil, asKey(renewed)).refused(403, "organization_suspended")
		w.post(path, nil, both(asKey(renewed), keyed(uuid.NewString()))).refused(403, "organization_suspended").fresh()
		w.post(path, nil, asKey(newKeyOf(uuid.MustParse(w.org)))).refused(401, "invalid_api_key")
		w.resume()
		w.get("/v1/agents", asKey(renewed)).is(200)
	})
}
