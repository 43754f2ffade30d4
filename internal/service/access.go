package service

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"remit/server"
	"remit/server/identity"
)

// accessFlags say who may create organizations, and which proxies are trusted.
type accessFlags struct {
	WebhookAllowPrivate bool                          `help:"Let webhooks, and the key sets (jwks_uri) of agents and trusted issuers, use private addresses, every port and plain http."`
	TrustedProxies      []netip.Prefix                `help:"Networks (CIDR, comma-separated) of the proxies whose X-Forwarded-For header is trusted, and for DPoP what they say of the request's URL."`
	ProofHosts          server.ProofHosts             `help:"Hosts (comma-separated; without :port for every port; no wildcards) that DPoP proofs may name beside the issuer's and loopback names: every other host at which clients reach the service or a proxy. Needs --issuer, without which every host is accepted."`
	Organizations       identity.OrganizationCreation `enum:",open,token,closed" default:"" help:"Who may create organizations: everyone (open), holders of the bootstrap token (token) or no one (closed). Defaults to open on a loopback address without --bootstrap-token, and to token otherwise."`
	BootstrapToken      string                        `help:"File with the token for --organizations=token, which it implies; at least 16 characters. Without it the service generates one and prints it once." type:"existingfile"`
}

func (f accessFlags) check() error {
	switch {
	case f.Organizations != "" && f.Organizations != identity.OrganizationsToken && f.BootstrapToken != "":
		return errors.New("--bootstrap-token needs --organizations=token: in any other mode the token has no effect")
	case slices.ContainsFunc(f.TrustedProxies, func(network netip.Prefix) bool { return network.Addr().Is4In6() }):
		return errors.New("--trusted-proxies: write IPv4 networks as IPv4")
	}
	return nil
}

// minBootstrapToken rejects tokens that an attacker could guess within the rate limits.
const minBootstrapToken = 16 // characters

// organizations returns who may create organizations on a service that listens at this address.
func (f accessFlags) organizations(listens net.Addr) (identity.Organizations, error) {
	organizations := identity.Organizations{Creation: f.Organizations}
	if f.Organizations == "" {
		organizations.Creation = identity.OrganizationsToken
		if f.BootstrapToken == "" && isLoopback(listens) {
			organizations.Creation = identity.OrganizationsOpen
		}
	}
	if f.BootstrapToken == "" {
		return organizations, nil
	}
	text, err := os.ReadFile(f.BootstrapToken)
	if err != nil {
		return identity.Organizations{}, fmt.Errorf("cannot read the bootstrap token: %w", err)
	}
	organizations.BootstrapToken = strings.TrimSpace(string(text))
	if len(organizations.BootstrapToken) < minBootstrapToken {
		return identity.Organizations{}, fmt.Errorf("%s: a bootstrap token needs at least %d characters", f.BootstrapToken, minBootstrapToken)
	}
	return organizations, nil
}

// isLoopback reports whether only this machine can reach the address.
func isLoopback(address net.Addr) bool {
	tcp, isTCP := address.(*net.TCPAddr)
	return isTCP && tcp.IP.IsLoopback()
}
