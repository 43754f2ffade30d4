package server_test

import (
	"github.com/google/uuid"
	"remit/token"
)

// endpoint is one of the service's, with a request that it would carry out for the right caller.
type endpoint struct {
	method, path string
	body         any
}

// endpointsOfOrganizations returns the endpoints that an API key alone opens.
func endpointsOfOrganizations(w tenant) []endpoint {
	return []endpoint{
		{"GET", "/v1/organizations/" + w.org, nil},
		{"POST", "/v1/organizations/" + w.org + "/api-key/rotate", nil},
		{"POST", "/v1/agents", fields{"name": "n", "scopes": []string{}}},
		{"GET", "/v1/agents", nil},
		{"GET", "/v1/agents/" + w.agent.id, nil},
		{"POST", "/v1/agents/" + w.agent.id + "/revoke", nil},
		{"DELETE", "/v1/agents/" + w.agent.id, nil},
		{"POST", "/v1/agents/" + w.agent.id + "/secret/rotate", nil},
		{"POST", "/sessions", fields{"agent_id": w.agent.id}},
		{"POST", "/v1/sessions", fields{"agent_id": w.agent.id}},
	}
}

// endpointsOfBoth returns the endpoints that an API key and an access token open.
func endpointsOfBoth(session string) []endpoint {
	var all []endpoint
	for _, prefix := range []string{"", "/v1"} {
		all = append(all,
			endpoint{"GET", prefix + "/sessions", nil},
			endpoint{"GET", prefix + "/sessions/" + session, nil},
			endpoint{"POST", prefix + "/sessions/" + session + "/actions", nil},
			endpoint{"POST", prefix + "/sessions/" + session + "/end", nil},
		)
	}
	return all
}

// newKeyOf returns a well-formed API key that names the organization but is not its key.
func newKeyOf(organization uuid.UUID) string { return token.NewAPIKey(organization) }
