package server_test

import "testing"

// The router would answer OPTIONS by itself: a proxy that keeps the client's method would let every such request in.
func TestOptionsIsHandledLikeOtherMethods(t *testing.T) {
	t.Parallel()
	onEachRedis(t, func(t *testing.T, api *client) {
		api.ask("OPTIONS", "/v1/auth/verify?scope=admin", nil).stopped(405, "method_not_allowed")
		api.ask("OPTIONS", "/v1/agents", nil).stopped(405, "method_not_allowed")
		api.ask("OPTIONS", "/v1/auth/authorize", nil).stopped(401, "missing_credentials")
		api.ask("OPTIONS", "/v1/auth/verify/x", nil).stopped(401, "missing_credentials")
		if allow := api.ask("PUT", "/v1/agents", nil).header.Get("Allow"); allow != "GET, HEAD, POST" {
			t.Errorf("Allow: %s", allow)
		}
	})
}
