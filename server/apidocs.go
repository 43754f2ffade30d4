package server

import (
	"strings"

	"github.com/valyala/fasthttp"
	"remit/openapi"
	"remit/server/internal/web"
)

func (s *Server) documentRoutes(r *web.Routes) {
	r.Get("/", web.NoKey, s.root)
	r.Get("/docs", web.NoKey, s.docs)
	r.Get("/openapi.json", web.NoKey, s.openAPI)
}

// openAPI returns the API description.
func (s *Server) openAPI(ctx *fasthttp.RequestCtx) error {
	return answerDocument(ctx, "application/json", openapi.JSON())
}

// docs returns the API description as a page.
func (s *Server) docs(ctx *fasthttp.RequestCtx) error {
	return answerDocument(ctx, "text/html; charset=utf-8", openapi.Page())
}

// root redirects to the page.
func (s *Server) root(ctx *fasthttp.RequestCtx) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, "/docs")
	ctx.SetStatusCode(fasthttp.StatusFound)
	return nil
}

// answerDocument answers with a document that changes only with the version. Clients cache it and revalidate.
func answerDocument(ctx *fasthttp.RequestCtx, mediaType string, document openapi.Document) error {
	header := &ctx.Response.Header
	header.Set(fasthttp.HeaderETag, document.ETag)
	header.Set(fasthttp.HeaderCacheControl, "no-cache")
	if isKnown(string(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), document.ETag) {
		ctx.SetStatusCode(fasthttp.StatusNotModified)
		return nil
	}
	if document.Policy != "" {
		header.Set(fasthttp.HeaderContentSecurityPolicy, document.Policy)
	}
	header.SetContentType(mediaType)
	ctx.Response.SetBodyRaw(document.Body)
	web.InfoOf(ctx).Shared = true
	return nil
}

// isKnown reports whether If-None-Match names the tag, by weak comparison (RFC 9110 §13.1.2).
func isKnown(ifNoneMatch, tag string) bool {
	for given := range strings.SplitSeq(ifNoneMatch, ",") {
		given = strings.TrimPrefix(strings.TrimSpace(given), "W/")
		if given == tag || given == "*" {
			return true
		}
	}
	return false
}
