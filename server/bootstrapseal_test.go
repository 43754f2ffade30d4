package server_test

import (
	"testing"

	"remit/internal/token"
	"remit/server/identity"
)

// A service that makes its bootstrap token knows only the hash. An answer is sealed with the token all the same: a later
// bootstrap token opens no API key of an organization that the one before created.
func TestABootstrapTokenOpensNoAnswerToTheOneBefore(t *testing.T) {
	t.Parallel()
	api := onMiniredis(t, setup{organizations: identity.Organizations{Creation: identity.OrganizationsToken}})
	create := func(bootstrap string) *response {
		return api.post("/v1/organizations", fields{"name": "n"}, both(asAgent(bootstrap), keyed("setup-1")))
	}
	before, after := token.NewBootstrapToken(), token.NewBootstrapToken()
	api.on.server.SetBootstrapHash(token.Hash(before))
	first := create(before).is(201).fresh()
	create(before).replays(first)
	api.on.server.SetBootstrapHash(token.Hash(after))
	second := create(after).is(201).fresh()
	if second.text("id") == first.text("id") || second.text("api_key") == first.text("api_key") {
		t.Error("another bootstrap token gets the organization of the one before")
	}
}
