package access

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"remit/server/internal/web"
)

// ProofHosts are the hosts that the htu of a DPoP proof may name, beside those of the issuer and of loopback names. Without them a
// server that a client called with a proof for itself could pass token and proof on to this service, under its own name.
type ProofHosts []ProofHost

// ProofHost is a host, and its port or 0 for every port.
type ProofHost struct {
	name string // in lower case; an address without brackets
	port int
}

// UnmarshalText reads a name or an address, in brackets if it is IPv6, with a port or without. Wildcards are errors.
func (h *ProofHost) UnmarshalText(text []byte) error {
	parsed, err := url.Parse("http://" + string(text))
	if err != nil || parsed.Host != string(text) || !web.IsAuthority(text) || parsed.Hostname() == "" || strings.HasSuffix(parsed.Host, ":") {
		return fmt.Errorf("%q is no host: write a name or an address, with :port or without", text)
	}
	h.name, h.port = hostName(parsed.Hostname()), 0
	if parsed.Port() == "" {
		return nil
	}
	if h.port, err = strconv.Atoi(parsed.Port()); err != nil || h.port < 1 || h.port > 65535 {
		return fmt.Errorf("%q is no host: a port is from 1 to 65535", text)
	}
	return nil
}

// hostName returns the one spelling of a host that is compared.
func hostName(text string) string {
	if address, err := netip.ParseAddr(text); err == nil {
		return address.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(text, "."))
}

// WithIssuer returns the hosts with that of the issuer, at every port.
func (hosts ProofHosts) WithIssuer(issuer string) ProofHosts {
	all := slices.Clone(hosts)
	if parsed, err := url.Parse(issuer); err == nil && parsed.Hostname() != "" {
		all = append(all, ProofHost{name: hostName(parsed.Hostname())})
	}
	return all
}

// allow says whether a proof may name the scheme and host of a request. Without any hosts it may name every one.
func (hosts ProofHosts) allow(scheme, host string) bool {
	if hosts == nil || IsLoopbackName(host) {
		return true
	}
	at, err := url.Parse(scheme + "://" + host)
	if err != nil {
		return false
	}
	port, err := strconv.Atoi(at.Port())
	switch {
	case err != nil && scheme == "https":
		port = 443
	case err != nil:
		port = 80
	}
	name := hostName(at.Hostname())
	return slices.ContainsFunc(hosts, func(h ProofHost) bool { return h.name == name && (h.port == 0 || h.port == port) })
}

// IsLoopbackName reports whether a Host names this machine wherever it is resolved (RFC 6761 §6.3).
func IsLoopbackName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if address, err := netip.ParseAddr(host); err == nil {
		return address.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}
