package server

import (
	"strings"

	"github.com/valyala/fasthttp"
	"remit/openapi"
	"remit/server/internal/web"
)

func (s *Server) documentRoutes(r *web.Routes) {
	r.Get("/", web.NoKey, redirectToDocs)
	r.Get("/docs", web.NoKey, document("text/html; charset=utf-8", openapi.Page))
	r.Get("/openapi.json", web.NoKey, document("application/json", openapi.JSON))
}

func redirectToDocs(ctx *fasthttp.RequestCtx) error {
	ctx.Response.Header.Set(fasthttp.HeaderLocation, "/docs")
	ctx.SetStatusCode(fasthttp.StatusFound)
	return nil
}

// document answers with the API description in one of its forms, which changes only with the version. Clients cache it and
// revalidate.
func document(mediaType string, read func() openapi.Document) web.Handler {
	return func(ctx *fasthttp.RequestCtx) error {
		described, header := read(), &ctx.Response.Header
		header.Set(fasthttp.HeaderETag, described.ETag)
		header.Set(fasthttp.HeaderCacheControl, "no-cache")
		if isKnown(string(ctx.Request.Header.Peek(fasthttp.HeaderIfNoneMatch)), described.ETag) {
			ctx.SetStatusCode(fasthttp.StatusNotModified)
			return nil
		}
		if described.Policy != "" {
			header.Set(fasthttp.HeaderContentSecurityPolicy, described.Policy)
		}
		header.SetContentType(mediaType)
		ctx.Response.SetBodyRaw(described.Body)
		web.InfoOf(ctx).Shared = true
		return nil
	}
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
