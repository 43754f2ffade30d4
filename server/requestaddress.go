package server

import (
	"net/netip"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// clientAddress returns the address that a request counts for in limits; see conn.Proxies and conn.Aggregate.
func (s *Server) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	return conn.Aggregate(s.proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)))
}

// waiterAddress returns the address that a waiting request counts for: that of the client, or an invalid one when that is a
// trusted proxy, which did not name the client.
func (s *Server) waiterAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	client := s.proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
	if s.proxies.Include(client) {
		return netip.Addr{}
	}
	return conn.Aggregate(client)
}
