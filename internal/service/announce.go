package service

import (
	"context"
	"fmt"
	"net"
	"strings"

	"remit/redisstore"
	"remit/server/identity"
)

// quickstart is three lines to paste into a shell: they create an organization, an agent and a session.
const quickstart = `
Try it:

KEY=$(curl -s URL/v1/organizations -H 'Content-Type: application/json' -d '{"name":"acme"}' | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
AGENT=$(curl -s URL/v1/agents -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d '{"name":"scout","scopes":["read"]}' | sed 's/^{"id":"\([^"]*\)".*/\1/')
curl -s URL/v1/sessions -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d "{\"agent_id\":\"$AGENT\",\"max_actions\":100,\"max_value_usd\":5}"

`

// announce logs that the service is ready, its URL, and dangerous settings of its Redis. It prints the quickstart only when
// everyone may create organizations, and never with JSON logs, because container runtimes mix them with standard output.
func announce(ctx context.Context, output output, store *redisstore.Store, url, console string, organizations identity.OrganizationCreation) {
	log := output.log
	warnings, err := store.Ready(ctx)
	if err != nil {
		log.Warn("Redis is not writable; /readyz reports when it is", "cause", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	log.Info("listening", "url", url)
	if console != "" {
		log.Info("console", "url", console)
	}
	if organizations == identity.OrganizationsOpen && !output.json {
		fmt.Fprint(output.out, strings.ReplaceAll(quickstart, "URL", url))
	}
}

// localURL returns the URL at which this machine reaches the address.
func localURL(scheme string, address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return scheme + "://localhost:" + port
	}
	return scheme + "://" + address.String()
}
