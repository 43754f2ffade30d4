package server

import (
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
	"remit/server/internal/web"
)

// handler answers a request, or returns the error to answer.
type handler func(ctx *fasthttp.RequestCtx) error

// noKey stands at an operation that no API key opens. If such an operation came to take a key, only an admin's would open it.
const noKey redisstore.Role = ""

// routes registers the handlers of a router. Each resource registers its own, beside them, with the least role of the API keys
// that open each: a viewer reads whatever contains no credential, an operator also runs and stops, an admin also decides who and
// how much.
type routes struct {
	front      *front
	router     *router.Router
	operations []operation
}

// operation is what was registered for a method and path. GET includes HEAD. The method is "*" where any is taken.
type operation struct {
	method, path string
	role         redisstore.Role
}

func (f *front) newRoutes() *routes {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = f.at("", func(ctx *fasthttp.RequestCtx) error { return noRoute(r, ctx) })
	r.MethodNotAllowed = f.at("", refuseMethod)
	return &routes{front: f, router: r}
}

// noRoute says whether only a slash at the end keeps a path from its route.
func noRoute(r *router.Router, ctx *fasthttp.RequestCtx) error {
	path := string(ctx.URI().PathOriginal())
	without := strings.TrimRight(path, "/")
	if without == path || without == "" {
		return web.ErrNoRoute
	}
	for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
		if h, _ := r.Lookup(method, without, ctx); h != nil {
			return web.ErrSlashAtEnd
		}
	}
	return web.ErrNoRoute
}

func (r *routes) get(path string, role redisstore.Role, h handler) {
	answer := r.at("GET", path, role, h)
	r.router.GET(path, answer)
	r.router.HEAD(path, answer)
}

func (r *routes) post(path string, role redisstore.Role, h handler) {
	r.router.POST(path, r.at("POST", path, role, h))
}

func (r *routes) patch(path string, role redisstore.Role, h handler) {
	r.router.PATCH(path, r.at("PATCH", path, role, h))
}

func (r *routes) put(path string, role redisstore.Role, h handler) {
	r.router.PUT(path, r.at("PUT", path, role, h))
}

func (r *routes) delete(path string, role redisstore.Role, h handler) {
	r.router.DELETE(path, r.at("DELETE", path, role, h))
}

// anyBelow registers a handler for every method at every path below this one, under its route.
func (r *routes) anyBelow(path string, role redisstore.Role, h handler) {
	below := path + "/{path:*}"
	r.operations = append(r.operations, operation{"*", below, role})
	r.router.ANY(below, r.front.atRole(path, role, h))
}

// at notes the operation and returns its handler.
func (r *routes) at(method, path string, role redisstore.Role, h handler) fasthttp.RequestHandler {
	r.operations = append(r.operations, operation{method, path, role})
	return r.front.atRole(routeOf(path), role, h)
}

// routeOf returns the route of a path: the sessions answer at two paths, with and without /v1, under one route.
func routeOf(path string) string {
	if strings.HasPrefix(path, "/sessions") {
		return "/v1" + path
	}
	return path
}

// refuseMethod answers 405. The router lists OPTIONS in Allow, although no route has it.
func refuseMethod(ctx *fasthttp.RequestCtx) error {
	if path := string(ctx.URI().PathOriginal()); path == "*" || path == "/*" { // the router takes these for every path at once
		ctx.Response.Header.Del(fasthttp.HeaderAllow)
		return web.ErrNoRoute
	}
	allowed := strings.Split(string(ctx.Response.Header.Peek(fasthttp.HeaderAllow)), ", ")
	allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == fasthttp.MethodOptions })
	ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(allowed, ", "))
	return web.ErrMethod
}

// at is atRole for what no API key opens.
func (f *front) at(route string, h handler) fasthttp.RequestHandler {
	return f.atRole(route, noKey, h)
}

// atRole adapts a handler to fasthttp: it records the route and the role that it needs, and answers the handler's error.
func (f *front) atRole(route string, role redisstore.Role, h handler) fasthttp.RequestHandler {
	metrics := f.metrics.At(route)
	return func(ctx *fasthttp.RequestCtx) {
		info := web.InfoOf(ctx)
		info.Route, info.Metrics, info.Role = route, metrics, role
		if err := h(ctx); err != nil {
			releaseAnswer(ctx)
			f.answerProblem(ctx, f.hooks.refusal(ctx, err))
			return
		}
		if err := f.reserveWritten(ctx); err != nil {
			releaseAnswer(ctx)
			f.answerInstead(ctx, err)
		}
	}
}
