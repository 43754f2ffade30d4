package web

import (
	"net/netip"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// ClientAddress returns the address that a request counts for in limits; see conn.Proxies and conn.Aggregate.
func (f *Front) ClientAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	return conn.Aggregate(f.Proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)))
}

// WaiterAddress returns the address that a waiting request counts for: that of the client, or an invalid one when that is a
// trusted proxy, which did not name the client.
func (f *Front) WaiterAddress(ctx *fasthttp.RequestCtx) netip.Addr {
	client := f.Proxies.Client(ctx.RemoteAddr(), ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor))
	if f.Proxies.Include(client) {
		return netip.Addr{}
	}
	return conn.Aggregate(client)
}
