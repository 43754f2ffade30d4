package server

import (
	"net/netip"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// clientAddress returns the address that a request counts for in limits; see conn.Proxies and conn.Aggregate.
func (f *front) clientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	return conn.Aggregate(f.proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)))
}

// waiterAddress returns the address that a waiting request counts for: that of the client, or an invalid one when that is a
// trusted proxy, which did not name the client.
func (f *front) waiterAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	client := f.proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
	if f.proxies.Include(client) {
		return netip.Addr{}
	}
	return conn.Aggregate(client)
}
