package server_test

import (
	"github.com/google/uuid"
	"remit/internal/token"
)

// endpoint is one of the service's, with a request that it would carry out for the right caller.
type endpoint struct {
	method, path string
	body         any
}

// endpointsOfOrganizations returns the endpoints that an API key alone opens.
func endpointsOfOrganizations(w tenant, session string) []endpoint {
	return []endpoint{
		{"GET", "/v1/organizations/" + w.org, nil},
		{"POST", "/v1/organizations/" + w.org + "/api-key/rotate", nil},
		{"POST", "/v1/api-keys", fields{"name": "n", "role": "viewer"}},
		{"GET", "/v1/api-keys", nil},
		{"POST", "/v1/api-keys/" + w.org + "/rotate", nil},
		{"DELETE", "/v1/api-keys/" + w.org, nil}, // the only admin's: see useEachEndpoint
		{"POST", "/v1/agents", fields{"name": "n", "scopes": []string{}}},
		{"GET", "/v1/agents", nil},
		{"GET", "/v1/agents/" + w.agent.id, nil},
		{"PATCH", "/v1/agents/" + w.agent.id, fields{"name": "n"}},
		{"POST", "/v1/agents/" + w.agent.id + "/suspend", nil},
		{"POST", "/v1/agents/" + w.agent.id + "/resume", nil},
		{"POST", "/v1/agents/suspend", fields{"all": true}},
		{"POST", "/v1/agents/resume", fields{"all": true}},
		{"POST", "/v1/agents/" + w.agent.id + "/revoke", nil},
		{"DELETE", "/v1/agents/" + w.agent.id, nil},
		{"POST", "/v1/agents/" + w.agent.id + "/secret/rotate", nil},
		{"GET", "/v1/agents/" + w.agent.id + "/families", nil},
		{"DELETE", "/v1/agents/" + w.agent.id + "/families/" + uuid.NewString(), nil},
		{"POST", "/sessions", fields{"agent_id": w.agent.id}},
		{"POST", "/v1/sessions", fields{"agent_id": w.agent.id}},
		{"PUT", "/v1/budget", fields{"max_value_usd": 1_000_000, "period": "none"}},
		{"GET", "/v1/budget", nil},
		{"DELETE", "/v1/budget", nil},
		{"GET", "/v1/usage", nil},
		{"GET", "/v1/events", nil},
		{"GET", "/v1/events/checkpoint", nil},
		{"POST", "/v1/webhooks", fields{"url": "https://example.com/hook"}},
		{"GET", "/v1/webhooks", nil},
		{"GET", "/v1/webhooks/" + session, nil}, // no webhook has this id
		{"PATCH", "/v1/webhooks/" + session, fields{"types": []string{}}},
		{"DELETE", "/v1/webhooks/" + session, nil},
		{"POST", "/v1/webhooks/" + session + "/rotate", nil},
		{"POST", "/v1/webhooks/" + session + "/test", nil},
		{"GET", "/v1/webhooks/" + session + "/deliveries", nil},
		{"POST", "/v1/webhooks/" + session + "/deliveries/" + session + "/retry", nil},
		{"POST", "/v1/trusted-issuers", trustedIssuer(w.agent.id)},
		{"GET", "/v1/trusted-issuers", nil},
		{"GET", "/v1/trusted-issuers/" + session, nil}, // no trusted issuer has this id
		{"PATCH", "/v1/trusted-issuers/" + session, fields{"description": "d"}},
		{"DELETE", "/v1/trusted-issuers/" + session, nil},
		{"PATCH", "/sessions/" + session, fields{"max_actions": 5}},
		{"PATCH", "/v1/sessions/" + session, fields{"max_actions": 5}},
		{"POST", "/sessions/" + session + "/suspend", nil},
		{"POST", "/v1/sessions/" + session + "/suspend", nil},
		{"POST", "/sessions/" + session + "/resume", nil},
		{"POST", "/v1/sessions/" + session + "/resume", nil},
		{"POST", "/sessions/" + session + "/requests/" + session + "/approve", nil}, // no request has this id
		{"POST", "/sessions/" + session + "/requests/" + session + "/deny", nil},
		{"POST", "/v1/sessions/" + session + "/requests/" + session + "/approve", nil},
		{"POST", "/v1/sessions/" + session + "/requests/" + session + "/deny", nil},
	}
}

// endpointsOfAgents returns the endpoints that an access token alone opens.
func endpointsOfAgents(transaction string) []endpoint {
	return []endpoint{
		{"POST", "/v1/transactions", fields{"action_type": "call", "pre_state": fields{}}},
		{"POST", "/v1/transactions/" + transaction + "/commit", nil},
		{"PATCH", "/v1/transactions/" + transaction, fields{"value_usd": 1}},
	}
}

// rollbackOf is the endpoint that an API key opens, and an access token if it holds the scope.
func rollbackOf(transaction string) endpoint {
	return endpoint{"POST", "/v1/transactions/" + transaction + "/rollback", nil}
}

// endpointsOfBoth returns the endpoints that an API key and any access token open.
func endpointsOfBoth(w tenant, session, transaction string) []endpoint {
	all := []endpoint{
		{"POST", "/v1/actions", batchOf(fields{"session_id": session})},
		{"GET", "/v1/transactions", fields{}},
		{"GET", "/v1/transactions/" + transaction, nil},
		{"GET", "/v1/agents/" + w.agent.id + "/events", nil},
		{"GET", "/v1/leases/" + transaction, nil}, // no lease has this id
		{"POST", "/v1/leases/" + transaction + "/settle", fields{"action_count": 0, "value_used_usd": 0}},
	}
	for _, prefix := range []string{"", "/v1"} {
		all = append(all,
			endpoint{"GET", prefix + "/sessions", nil},
			endpoint{"GET", prefix + "/sessions/" + session, nil},
			endpoint{"GET", prefix + "/sessions/" + session + "/tree", nil},
			endpoint{"GET", prefix + "/sessions/" + session + "/usage", nil},
			endpoint{"POST", prefix + "/sessions/" + session + "/actions", fields{}},
			endpoint{"POST", prefix + "/sessions/" + session + "/leases", fields{"max_actions": 1, "expires_in_seconds": 1}},
			endpoint{"GET", prefix + "/sessions/" + session + "/requests", nil},
			endpoint{"GET", prefix + "/sessions/" + session + "/requests/" + session, nil},
			endpoint{"POST", prefix + "/sessions/" + session + "/end", nil},
		)
	}
	return all
}

// newKeyOf returns a well-formed API key that names the organization but is not its key.
func newKeyOf(organization uuid.UUID) string { return token.NewAPIKey(organization) }
