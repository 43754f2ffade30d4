package server

import (
	"net"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/server/conn"
)

// Pages are web pages for people, beside the API: package console has them. They call the API through Call, so whatever holds
// for a client of the API holds for who looks at a page.
type Pages struct {
	Prefix string // of their paths, without a slash at the end
	Answer func(*fasthttp.RequestCtx)
	// Headers sets what every response has, also one that the server gives instead of the page's. Nil sets nothing.
	Headers func(*fasthttp.ResponseHeader)
	// Apart leaves them to ServePages.
	Apart bool
}

// SetPages adds pages. Call it before Serve.
func (s *Server) SetPages(p Pages) {
	s.pages = &pages{Pages: p, answer: s.front.At(p.Prefix, func(ctx *fasthttp.RequestCtx) error {
		p.Answer(ctx)
		return nil
	})}
}

// ServePages serves only the pages, on a separate listener until Shutdown. It takes the listener over. Set Pages.Apart with it.
func (s *Server) ServePages(accepting net.Listener) error { return s.serve(accepting, true) }

// pages are the Pages with their adapted handler. Nil has none.
type pages struct {
	Pages

	answer fasthttp.RequestHandler
}

// have reports whether a request is for a page.
func (p *pages) have(ctx *fasthttp.RequestCtx) bool {
	if p == nil || p.Apart != isForPages(ctx) {
		return false
	}
	path := string(ctx.URI().PathOriginal())
	return path == p.Prefix || strings.HasPrefix(path, p.Prefix+"/")
}

// decoratePage sets the headers that every response of a page has, also one that the server gives instead of the page's.
func (s *Server) decoratePage(ctx *fasthttp.RequestCtx) {
	if s.pages.have(ctx) && s.pages.Headers != nil {
		s.pages.Headers(&ctx.Response.Header)
	}
}

// pageCallRoute is the route of what only pages can call, in metrics and logs.
const pageCallRoute = "page"

// isForPages reports whether a request came to the listener of ServePages.
func isForPages(ctx *fasthttp.RequestCtx) bool {
	c := conn.Of(ctx.Conn())
	return c != nil && c.ForPages
}
