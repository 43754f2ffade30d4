package service

import (
	"context"
	"fmt"
	"net"
	"strings"

	"remit/server/identity"
)

// quickstart is lines to paste into a shell: they create an organization, an agent and a session, and charge it.
const quickstart = `
Try it:

URL=BASE JSON='Content-Type: application/json'
field() { sed 's/.*[{,]"'"$1"'":"\([^"]*\)".*/\1/'; }
KEY=$(curl -s $URL/v1/organizations -H "$JSON" -d '{"name":"acme"}' | field api_key)
ANSWER=$(curl -s $URL/v1/agents -H "X-API-Key: $KEY" -H "$JSON" -d '{"name":"scout","scopes":["read"]}')
AGENT=$(printf %s "$ANSWER" | field id) SECRET=$(printf %s "$ANSWER" | field secret)
TOKEN=$(curl -s $URL/v1/auth/token -H "$JSON" -d "{\"agent_id\":\"$AGENT\",\"secret\":\"$SECRET\"}" | field access_token)
SESSION=$(curl -s $URL/v1/sessions -H "X-API-Key: $KEY" -H "$JSON" -d "{\"agent_id\":\"$AGENT\",\"max_actions\":100,\"max_value_usd\":5}" | field id)
curl -s $URL/v1/sessions/$SESSION/actions -H "Authorization: Bearer $TOKEN" -H "$JSON" -d '{"action_type":"llm.call","value_usd":0.37}'; echo

`

// announce logs that the service is ready, its URL, and dangerous settings of its Redis. It prints the quickstart only
// with a Redis of its own, when everyone may create organizations, and never with JSON logs, because container runtimes mix them with
// standard output.
func (s *service) announce(ctx context.Context) {
	log := s.log
	warnings, err := s.store.Ready(ctx)
	if err != nil {
		log.Warn("Redis is not writable; /readyz reports when it is", "cause", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	log.Info("listening", "url", s.url())
	if console := s.consoleURL(); console != "" {
		log.Info("console", "url", console)
	}
	if s.creation == identity.OrganizationsOpen && s.flags.RedisURL == "" && !s.output.json {
		fmt.Fprint(s.output.out, strings.Replace(quickstart, "BASE", s.url(), 1))
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
