package main

import (
	"context"
	"fmt"
	"net"
	"strings"

	"remit/redisstore"
	"remit/server"
)

// quickstart is three lines that work when pasted: an organization, an agent and a session for it.
const quickstart = `
Try it:

KEY=$(curl -s URL/v1/organizations -H 'Content-Type: application/json' -d '{"name":"acme"}' | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
AGENT=$(curl -s URL/v1/agents -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d '{"name":"scout","scopes":["read"]}' | sed 's/^{"id":"\([^"]*\)".*/\1/')
curl -s URL/v1/sessions -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d "{\"agent_id\":\"$AGENT\",\"max_actions\":100,\"max_value_usd\":5}"

`

// announce says that the service is ready, where, and what of its store is set dangerously. The quickstart begins with
// an organization that anybody may create; it is not for a log in JSON, which container runtimes mix with standard output.
func announce(ctx context.Context, printed printed, store *redisstore.Store, url string, organizations server.OrganizationCreation) {
	log := printed.log
	warnings, err := store.Ready(ctx)
	if err != nil {
		log.Warn("Redis is not writable now; /readyz says when it is", "cause", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	log.Info("listening", "url", url)
	if organizations == server.OrganizationsOpen && !printed.json {
		fmt.Fprint(printed.out, strings.ReplaceAll(quickstart, "URL", url))
	}
}

// ownURL returns the URL at which this machine reaches the address.
func ownURL(scheme string, address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return scheme + "://localhost:" + port
	}
	return scheme + "://" + address.String()
}
