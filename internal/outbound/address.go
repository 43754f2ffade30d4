package outbound

import (
	"errors"
	"net"
	"net/netip"
	"syscall"
)

// ErrPrivateAddress refuses to connect to an address that is not public. A host that does not exist fails with the same words.
var ErrPrivateAddress = errors.New("the host has no public address")

// ErrPort refuses to connect to a port that no receiver has.
var ErrPort = errors.New("the port is neither 443 nor one from 1024 on")

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

// controlPublic returns a control of sockets that lets them connect to public addresses of other machines only, at ports of receivers.
// It sees the address that the socket connects to, so neither the spelling of a URL nor a name that resolves to another address the
// second time leads around it. interfaces are this machine's addresses, which change: behind a firewall at the edge of the
// network, connections to them would reach ports that it closes.
func controlPublic(interfaces func() ([]net.Addr, error)) func(_, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return ErrPrivateAddress
		}
		parsed, err := netip.ParseAddr(host)
		if err != nil || !isPublic(parsed) || isOwn(parsed.Unmap(), interfaces) {
			return ErrPrivateAddress
		}
		if !isReceiverPort(port) { // a webhook that was created while --webhook-allow-private was set
			return ErrPort
		}
		return nil
	}
}

// isOwn says whether an address is this machine's. When its addresses cannot be read, every address may be.
func isOwn(address netip.Addr, interfaces func() ([]net.Addr, error)) bool {
	all, err := interfaces()
	if err != nil {
		return true
	}
	for _, one := range all {
		if network, is := one.(*net.IPNet); is {
			if own, valid := netip.AddrFromSlice(network.IP); valid && own.Unmap() == address {
				return true
			}
		}
	}
	return false
}
