package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"remit/redisstore"
	"remit/server"
)

// doorFlags say who may ask for what without a credential.
type doorFlags struct {
	RateLimits       string                      `enum:"on,off" default:"on" help:"Limits per client address, organization and agent: on or off."`
	OrganizationRate int                         `default:"10000" help:"How many objects an organization may create a second, at each instance (1 to 1000000)."`
	AgentRate        int                         `default:"5000" help:"How many objects an agent may create a second, at each instance (1 to 1000000)."`
	Quotas           quotas                      `help:"What an organization may hold, as name=value,…: agents, open_sessions, pending_transactions, refresh_families, idempotency_keys, bytes; 0 for any number. Those that are not named keep their generous defaults."`
	TrustedProxies   []netip.Prefix              `help:"Networks (CIDR) of the proxies whose X-Forwarded-For is believed, comma-separated."`
	Organizations    server.OrganizationCreation `enum:",open,token,closed" default:"" help:"Who may create organizations: open (everybody), token (who holds the bootstrap token), closed (nobody). Left out: open on a loopback address without --bootstrap-token, else token."`
	BootstrapToken   string                      `help:"File with the token for --organizations=token. Left out, the service makes one and prints it once." type:"existingfile"`
}

func (f doorFlags) check() error {
	switch {
	case f.OrganizationRate < 1 || f.OrganizationRate > maxRate:
		return errors.New("--organization-rate must be from 1 to 1000000")
	case f.AgentRate < 1 || f.AgentRate > maxRate:
		return errors.New("--agent-rate must be from 1 to 1000000")
	case f.Organizations != "" && f.Organizations != server.OrganizationsToken && f.BootstrapToken != "":
		return errors.New("--bootstrap-token needs --organizations=token: without it the token guards nothing")
	case slices.ContainsFunc(f.TrustedProxies, func(network netip.Prefix) bool { return network.Addr().Is4In6() }):
		return errors.New("--trusted-proxies: write IPv4 networks as IPv4")
	}
	return nil
}

func (f doorFlags) limits() server.Limits { return server.Limits{Off: f.RateLimits == "off"} }

const maxRate = 1_000_000 // a second

// rates are what the store holds organizations and agents to.
func (f doorFlags) rates() redisstore.Rates {
	if f.RateLimits == "off" {
		return redisstore.Rates{}
	}
	return redisstore.Rates{Organization: f.OrganizationRate, Agent: f.AgentRate}
}

// quotas are what an organization may hold, by name.
type quotas map[string]int64

// UnmarshalText is called by the flag parser.
func (q *quotas) UnmarshalText(text []byte) error {
	given, err := redisstore.ParseQuotas(string(text))
	*q = given
	return err
}

// minBootstrapToken keeps out what could be guessed within the limits.
const minBootstrapToken = 16 // characters

// organizations says who may create organizations on a service that listens there.
func (f doorFlags) organizations(listens net.Addr) (server.Organizations, error) {
	organizations := server.Organizations{Creation: f.Organizations}
	if f.Organizations == "" {
		organizations.Creation = server.OrganizationsToken
		if f.BootstrapToken == "" && isLoopback(listens) {
			organizations.Creation = server.OrganizationsOpen
		}
	}
	if f.BootstrapToken == "" {
		return organizations, nil
	}
	text, err := os.ReadFile(f.BootstrapToken)
	if err != nil {
		return server.Organizations{}, fmt.Errorf("cannot read the bootstrap token: %w", err)
	}
	organizations.BootstrapToken = strings.TrimSpace(string(text))
	if len(organizations.BootstrapToken) < minBootstrapToken {
		return server.Organizations{}, fmt.Errorf("%s: a bootstrap token has at least %d characters", f.BootstrapToken, minBootstrapToken)
	}
	return organizations, nil
}

// isLoopback says whether this machine alone reaches the address.
func isLoopback(address net.Addr) bool {
	tcp, isTCP := address.(*net.TCPAddr)
	return isTCP && tcp.IP.IsLoopback()
}
