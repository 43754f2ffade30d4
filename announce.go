package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"remit/redisstore"
)

// quickstart is three lines that work when pasted: an organization, an agent and a session for it.
const quickstart = `
Try it:

KEY=$(curl -s URL/v1/organizations -H 'Content-Type: application/json' -d '{"name":"acme"}' | sed 's/.*"api_key":"\([^"]*\)".*/\1/')
AGENT=$(curl -s URL/v1/agents -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d '{"name":"scout","scopes":["read"]}' | sed 's/^{"id":"\([^"]*\)".*/\1/')
curl -s URL/v1/sessions -H "X-API-Key: $KEY" -H 'Content-Type: application/json' -d "{\"agent_id\":\"$AGENT\",\"max_actions\":100,\"max_value_usd\":5}"

`

// announce says that the service is ready and what of its store is set dangerously.
func announce(ctx context.Context, log *slog.Logger, store *redisstore.Store, address net.Addr) {
	warnings, err := store.Ready(ctx)
	if err != nil {
		log.Warn("Redis is not writable now; /readyz says when it is", "cause", err)
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	url := ownURL(address)
	log.Info("listening", "url", url)
	fmt.Fprint(os.Stdout, strings.ReplaceAll(quickstart, "URL", url))
}

// ownURL returns the URL at which this machine reaches the address.
func ownURL(address net.Addr) string {
	host, port, err := net.SplitHostPort(address.String())
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return "http://localhost:" + port
	}
	return "http://" + address.String()
}

type healthcheck struct {
	Listen string `default:"127.0.0.1:8080" help:"Where the service listens."`
}

// Run asks /readyz of the service on this machine, for containers without a shell.
func (c *healthcheck) Run() error {
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	client := http.Client{Timeout: 3 * time.Second}
	response, err := client.Get("http://" + net.JoinHostPort(host, port) + "/readyz")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("not ready: %s", response.Status)
	}
	return nil
}
