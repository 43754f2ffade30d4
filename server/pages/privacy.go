package pages

import (
	"bytes"

	"github.com/valyala/fasthttp"
	"remit/server/internal/access"
)

// IsHTTPS reports whether a request came by HTTPS: to this server, or to a trusted proxy, which says so in X-Forwarded-Proto.
func (h *Host) IsHTTPS(ctx *fasthttp.RequestCtx) bool {
	if h.isFromProxy(ctx) {
		protocols := ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedProto)
		return len(protocols) > 0 && isAllHTTPS(protocols)
	}
	return ctx.IsTLS()
}

// IsPrivate reports whether no one on a network can read a request: it came by HTTPS, or from this machine to a loopback name. A
// request with headers of a proxy that is not trusted did not come from this machine. The name keeps out a page of another
// site whose name was made to lead here.
func (h *Host) IsPrivate(ctx *fasthttp.RequestCtx) bool {
	if h.IsHTTPS(ctx) {
		return true
	}
	for _, name := range forwardingHeaders {
		if len(ctx.Request.Header.PeekAll(name)) > 0 {
			return false
		}
	}
	// A proxy that adds no header still speaks HTTP/1.0, as nginx does unless configured otherwise; browsers do not.
	return h.isFromHere(ctx) && access.IsLoopbackName(string(ctx.Host())) && ctx.Request.Header.IsHTTP11()
}

// isFromHere reports whether the other end of the connection is on this machine.
func (h *Host) isFromHere(ctx *fasthttp.RequestCtx) bool {
	return h.front.Proxies.Client(ctx.RemoteAddr(), nil).IsLoopback()
}

// forwardingHeaders are what proxies add.
var forwardingHeaders = []string{
	fasthttp.HeaderXForwardedFor, fasthttp.HeaderXForwardedProto, fasthttp.HeaderXForwardedHost, fasthttp.HeaderForwarded, fasthttp.HeaderVia,
	"X-Real-Ip",
}

func (h *Host) isFromProxy(ctx *fasthttp.RequestCtx) bool {
	return h.front.Proxies.Include(h.front.Proxies.Client(ctx.RemoteAddr(), nil))
}

// isAllHTTPS reports whether each of a chain of proxies was asked by HTTPS.
func isAllHTTPS(lines [][]byte) bool {
	for _, line := range lines {
		for scheme := range bytes.SplitSeq(line, []byte(",")) {
			if !bytes.EqualFold(bytes.TrimSpace(scheme), []byte("https")) {
				return false
			}
		}
	}
	return true
}
