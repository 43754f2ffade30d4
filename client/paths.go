package client

import (
	"net/url"
	"strings"
)

// The paths of one object. They escape the id, so that no id leads to another path.
func sessionPath(id string) string          { return "/v1/sessions/" + url.PathEscape(id) }
func organizationPath(id string) string     { return "/v1/organizations/" + url.PathEscape(id) }
func agentPath(id string) string            { return "/v1/agents/" + url.PathEscape(id) }
func familyPath(agent, id string) string    { return agentPath(agent) + "/families/" + url.PathEscape(id) }
func transactionPath(id string) string      { return "/v1/transactions/" + url.PathEscape(id) }
func apiKeyPath(id string) string           { return apiKeysPath + "/" + url.PathEscape(id) }
func webhookPath(id string) string          { return webhooksPath + "/" + url.PathEscape(id) }
func sessionKeysPath(session string) string { return sessionPath(session) + "/keys" }
func sessionKeyPath(session, id string) string {
	return sessionKeysPath(session) + "/" + url.PathEscape(id)
}
func trustedIssuerPath(id string) string { return trustedIssuersPath + "/" + url.PathEscape(id) }
func deliveriesPath(hook string) string  { return webhookPath(hook) + "/deliveries" }

const (
	apiKeysPath        = "/v1/api-keys"
	webhooksPath       = "/v1/webhooks"
	trustedIssuersPath = "/v1/trusted-issuers"
)

// withQuery adds the parameters that are not empty. They are name, value, name, value, …
func withQuery(path string, parameters ...string) string {
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		if parameters[i+1] != "" {
			query.Set(parameters[i], parameters[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// withoutQuery returns a path as errors name it.
func withoutQuery(path string) string {
	path, _, _ = strings.Cut(path, "?")
	return path
}
