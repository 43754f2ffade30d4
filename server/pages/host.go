// Package pages lets what stands beside the API call it inside the process, as a client would: web pages for people, and the metering
// gateway.
package pages

import (
	"errors"
	"strings"

	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/conn"
	"remit/server/internal/access"
	"remit/server/internal/web"
)

// Site is web pages for people, beside the API: package console has them. They call the API through Call, so whatever holds
// for a client of the API holds for who looks at a page.
type Site struct {
	Prefix string                     // of their paths, without a slash at the end
	Answer func(*fasthttp.RequestCtx) // nil serves them nowhere: a request for one gets ErrNotHere
	// Headers sets what every response has, also one that the server gives instead of the page's. Nil sets nothing.
	Headers func(*fasthttp.ResponseHeader)
	// Apart leaves them to ServePages.
	Apart bool
}

// Host is the server as the pages see it.
type Host struct {
	store *redisstore.Store
	front *web.Front
	guard *access.Guard

	api              fasthttp.RequestHandler // every request of the API
	served           *Site                   // nil for none
	answer           fasthttp.RequestHandler // adapted, of the pages
	identify, signIn fasthttp.RequestHandler // inside the process only
	identifyAgent    fasthttp.RequestHandler
}

// New returns a host without pages.
func New(store *redisstore.Store, front *web.Front, guard *access.Guard) *Host {
	h := &Host{store: store, front: front, guard: guard}
	h.identify = front.Around(front.AtRole(pageCallRoute, redisstore.Viewer, h.keyIdentity))
	h.signIn = front.Around(front.AtRole(pageCallRoute, redisstore.Viewer, h.limitedIdentity))
	h.identifyAgent = front.Around(front.At(agentCallRoute, h.agentIdentity))
	return h
}

// Set adds the pages. Call it before the server serves.
func (h *Host) Set(site Site) {
	h.served, h.answer = &site, h.front.At(site.Prefix, func(ctx *fasthttp.RequestCtx) error {
		site.Answer(ctx)
		return nil
	})
}

// ServesPagesApart reports whether the pages have a listener of their own, at which the API is not.
func (h *Host) ServesPagesApart() bool { return h.served.Apart }

// ErrNotHere refuses a page where the pages are not served.
var ErrNotHere = errors.New("the console is not served at this address: --console and --console-listen say whether and where it is")

// Handler returns the handler of every request: of the pages, and of the API.
func (h *Host) Handler(api fasthttp.RequestHandler) fasthttp.RequestHandler {
	h.api = h.front.Around(api)
	nowhere := h.front.At("", func(*fasthttp.RequestCtx) error { return web.ErrNoRoute })
	elsewhere := h.front.At("", func(*fasthttp.RequestCtx) error { return ErrNotHere })
	return h.front.Around(func(ctx *fasthttp.RequestCtx) {
		switch {
		case h.has(ctx):
			h.answer(ctx)
		case isForPages(ctx):
			nowhere(ctx)
		case h.names(ctx):
			elsewhere(ctx)
		default:
			api(ctx)
		}
	})
}

// has reports whether a request is for a page that is served where it came.
func (h *Host) has(ctx *fasthttp.RequestCtx) bool {
	return h.names(ctx) && h.served.Answer != nil && h.served.Apart == isForPages(ctx)
}

// names reports whether the path of a request is a page's.
func (h *Host) names(ctx *fasthttp.RequestCtx) bool {
	if h.served == nil {
		return false
	}
	path := string(ctx.URI().PathOriginal())
	return path == h.served.Prefix || strings.HasPrefix(path, h.served.Prefix+"/")
}

// Decorate sets the headers that every response of a page has, also one that the server gives instead of the page's.
func (h *Host) Decorate(ctx *fasthttp.RequestCtx) {
	if h.has(ctx) && h.served.Headers != nil {
		h.served.Headers(&ctx.Response.Header)
	}
}

// pageCallRoute is the route of what only pages can call, in metrics and logs.
const pageCallRoute = "page"

// isForPages reports whether a request came to the listener of ServePages.
func isForPages(ctx *fasthttp.RequestCtx) bool {
	c := conn.Of(ctx.Conn())
	return c != nil && c.ForPages
}
