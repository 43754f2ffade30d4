package console

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// policy lets a page load what this service serves and nothing else: no script or style in the page itself, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// WriteHeaders sets what every response says to the browser.
func WriteHeaders(h *fasthttp.ResponseHeader) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
	h.Set(fasthttp.HeaderCacheControl, "no-store")
}

// checkRequest refuses a request that others on the network could read, and a change that another site's page asks for.
func (c *Console) checkRequest(ctx *fasthttp.RequestCtx) error {
	if !c.host.IsPrivate(ctx) {
		return errNotPrivate
	}
	if !ctx.IsPost() {
		return nil
	}
	if body := ctx.Request.Body(); len(body) > mostForm || bytes.Count(body, []byte("&")) > mostFields {
		return errLargeForm // before it is parsed: each field takes memory that the connection keeps
	}
	if !bytes.HasPrefix(ctx.Request.Header.ContentType(), []byte(formType)) {
		return errNoForm
	}
	if !c.isOwnOrigin(ctx) {
		return errOtherSite
	}
	return nil
}

const (
	mostForm   = 16 << 10 // bytes of a form
	mostFields = 32
)

const formType = "application/x-www-form-urlencoded"

// isOwnOrigin reports whether a page of this service sent the request. Browsers say so in Sec-Fetch-Site, older ones in Origin; a
// program without either is no browser, and has no cookie but its own.
func (c *Console) isOwnOrigin(ctx *fasthttp.RequestCtx) bool {
	origin := string(ctx.Request.Header.Peek(fasthttp.HeaderOrigin))
	if site := ctx.Request.Header.Peek("Sec-Fetch-Site"); len(site) > 0 {
		if string(site) != "same-origin" {
			return false
		}
		if origin == "null" { // of a privacy setting
			return true
		}
	}
	return origin == "" || origin == c.ownOrigin(ctx)
}

// ownOrigin is the address at which the request found this service.
func (c *Console) ownOrigin(ctx *fasthttp.RequestCtx) string {
	if c.host.IsHTTPS(ctx) {
		return "https://" + string(ctx.Host())
	}
	return "http://" + string(ctx.Host())
}
