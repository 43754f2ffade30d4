package webhook

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// errPrivateAddress refuses to connect to an address that is not public. A host that does not exist fails with the same words.
var errPrivateAddress = errors.New("the host has no public address")

// notPublic are the networks in which no public receiver can be, by the special-purpose registries of IANA (RFC 6890). Networks that
// carry an IPv4 address inside an IPv6 one are among them: a gateway would take them into the network behind it.
var notPublic = networks(
	"0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24",
	"192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// publicIPv6 is the only network of public IPv6 addresses. Loopback, link-local, unique local, multicast, mapped and translated
// addresses are outside it.
var publicIPv6 = netip.MustParsePrefix("2000::/3")

func networks(texts ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		parsed[i] = netip.MustParsePrefix(text)
	}
	return parsed
}

// isPublic says whether an address may belong to a receiver on the Internet. None with a zone does: it names an interface of this
// machine.
func isPublic(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsValid() || address.Zone() != "" || address.Is6() && !publicIPv6.Contains(address) {
		return false
	}
	for _, network := range notPublic {
		if network.Contains(address) {
			return false
		}
	}
	return true
}

// controlPublic lets a socket connect to public addresses only. It sees the address that the socket connects to, so neither the
// spelling of a URL nor a name that resolves to another address the second time leads around it.
func controlPublic(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return errPrivateAddress
	}
	parsed, err := netip.ParseAddr(host)
	if err != nil || !isPublic(parsed) {
		return errPrivateAddress
	}
	return nil
}
