package server

import (
	"bytes"
	"net"
	"net/netip"
	"slices"

	"github.com/valyala/fasthttp"
)

// trustedProxies are the networks of the proxies whose word about their clients is taken.
type trustedProxies []netip.Prefix

func (p trustedProxies) include(address netip.Addr) bool {
	return slices.ContainsFunc(p, func(network netip.Prefix) bool { return network.Contains(address) })
}

// clientAddress returns the address that the request counts for: that of the peer or, when the peer is a trusted proxy,
// the one that the proxies saw. An IPv6 address stands for its /64, for a single client has the whole of one (RFC 6177).
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	client := s.proxies.clientOf(peerAddress(ctx), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
	return ofClient(client)
}

// holderAddress returns the address that a place is held for: that of the client, or none when that is a trusted
// proxy, which did not say for whom it asks.
func (s *Server) holderAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	client := s.proxies.clientOf(peerAddress(ctx), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
	if s.proxies.include(client) {
		return netip.Addr{}
	}
	return ofClient(client)
}

// ofClient returns what stands for a client with this address.
func ofClient(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	return netip.PrefixFrom(address, 64).Masked().Addr()
}

// peerAddress returns the other end of the connection; none, when that is no IP address.
func peerAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	peer, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return plain(peer.AddrPort().Addr())
}

// clientOf walks the lines of X-Forwarded-For from the right, where each proxy adds whom it saw, as long as a trusted
// proxy has said so: what stands further left is the client's own and may be a lie. Garbage ends the walk.
func (p trustedProxies) clientOf(peer netip.Addr, lines [][]byte) netip.Addr {
	client := peer
	for _, line := range slices.Backward(lines) {
		for more := true; more; {
			if !p.include(client) {
				return client
			}
			var last []byte
			line, last, more = cutLast(line)
			seen, ok := parseForwarded(string(bytes.TrimSpace(last)))
			if !ok {
				return client
			}
			client = seen
		}
	}
	return client
}

// cutLast returns what stands before and behind the last comma.
func cutLast(line []byte) (before, last []byte, found bool) {
	if at := bytes.LastIndexByte(line, ','); at >= 0 {
		return line[:at], line[at+1:], true
	}
	return nil, line, false
}

// parseForwarded reads an address, to which some proxies add the port.
func parseForwarded(text string) (netip.Addr, bool) {
	if address, err := netip.ParseAddr(text); err == nil {
		return plain(address), true
	}
	withPort, err := netip.ParseAddrPort(text)
	return plain(withPort.Addr()), err == nil
}

// plain returns an IPv4 address that is wrapped into IPv6 as what it is, and no zone: it names one of our interfaces.
func plain(address netip.Addr) netip.Addr { return address.Unmap().WithZone("") }
