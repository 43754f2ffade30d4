package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"remit/server"
)

// doorFlags say who may ask for what without a credential.
type doorFlags struct {
	RateLimits     string                      `enum:"on,off" default:"on" help:"Limits per client address: on or off."`
	TrustedProxies []netip.Prefix              `help:"Networks (CIDR) of the proxies whose X-Forwarded-For is believed, comma-separated."`
	Organizations  server.OrganizationCreation `enum:",open,token,closed" default:"" help:"Who may create organizations: open (everybody), token (who holds the bootstrap token), closed (nobody). Left out: open on a loopback address without --bootstrap-token, else token."`
	BootstrapToken string                      `help:"File with the token for --organizations=token. Left out, the service makes one and prints it once." type:"existingfile"`
}

func (f doorFlags) check() error {
	switch {
	case f.Organizations != "" && f.Organizations != server.OrganizationsToken && f.BootstrapToken != "":
		return errors.New("--bootstrap-token needs --organizations=token: without it the token guards nothing")
	case slices.ContainsFunc(f.TrustedProxies, func(network netip.Prefix) bool { return network.Addr().Is4In6() }):
		return errors.New("--trusted-proxies: write IPv4 networks as IPv4")
	}
	return nil
}

func (f doorFlags) limits() server.Limits { return server.Limits{Off: f.RateLimits == "off"} }

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
