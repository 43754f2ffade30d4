package conn

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
)

// Proxies are the networks of trusted proxies, whose X-Forwarded-For is believed.
type Proxies []netip.Prefix

// Include reports whether the address belongs to a trusted proxy.
func (p Proxies) Include(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// Client returns the address of the client behind a connection from peer: the peer's own or, when the peer is a trusted
// proxy, the one that the proxies observed. forwarded are the X-Forwarded-For lines in their order. The result is invalid
// when the peer has no IP address.
//
// It walks the lines from the right, where each proxy appends the address it observed, as long as the last address is a
// trusted proxy's: entries further left come from the client and may be forged. An unreadable entry ends the walk.
func (p Proxies) Client(peer net.Addr, forwarded [][]byte) netip.Addr {
	client := peerAddress(peer)
	for _, line := range slices.Backward(forwarded) {
		for more := true; more; {
			if !p.Include(client) {
				return client
			}
			var last []byte
			line, last, more = cutLast(line)
			observed, ok := parseForwarded(string(bytes.TrimSpace(last)))
			if !ok {
				return client
			}
			client = observed
		}
	}
	return client
}

// Aggregate returns the address under which limits count a client: its own, or the /64 network of an IPv6 address, because a
// single site has a whole /64 (RFC 6177).
func Aggregate(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	return netip.PrefixFrom(address, 64).Masked().Addr()
}

// peerAddress returns the IP address of the other end of a connection, an invalid one when it has none.
func peerAddress(peer net.Addr) netip.Addr {
	tcp, ok := peer.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return normalize(tcp.AddrPort().Addr())
}

// cutLast splits a line at its last comma.
func cutLast(line []byte) (before, last []byte, found bool) {
	if at := bytes.LastIndexByte(line, ','); at >= 0 {
		return line[:at], line[at+1:], true
	}
	return nil, line, false
}

// parseForwarded reads an address. Some proxies append the port.
func parseForwarded(text string) (netip.Addr, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		return normalize(address), true
	}
	withPort, err := netip.ParseAddrPort(text)
	return normalize(withPort.Addr()), err == nil
}

// normalize unwraps an IPv4 address that is mapped into IPv6, and drops the zone, which names an interface of another
// machine.
func normalize(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
