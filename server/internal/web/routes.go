package web

import (
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// Handler answers a request, or returns the error to answer.
type Handler func(ctx *fasthttp.RequestCtx) error

// NoKey stands at an operation that no API key opens. If such an operation came to take a key, only an admin's would open it.
const NoKey redisstore.Role = ""

// Routes registers the handlers of a router. Each resource registers its own, beside them, with the least role of the API keys
// that open each: a viewer reads whatever contains no credential, an operator also runs and stops, an admin also decides who and
// how much.
type Routes struct {
	front      *Front
	Router     *router.Router
	Operations []Operation
}

// Operation is what was registered for a method and path. GET includes HEAD. The method is "*" where any is taken.
type Operation struct {
	Method, Path string
	Role         redisstore.Role
}

func (f *Front) NewRoutes() *Routes {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = f.At("", func(ctx *fasthttp.RequestCtx) error { return noRoute(r, ctx) })
	r.MethodNotAllowed = f.At("", refuseMethod)
	return &Routes{front: f, Router: r}
}

// noRoute says whether only a slash at the end keeps a path from its route.
func noRoute(r *router.Router, ctx *fasthttp.RequestCtx) error {
	path := string(ctx.URI().PathOriginal())
	without := strings.TrimRight(path, "/")
	if without == path || without == "" {
		return ErrNoRoute
	}
	for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
		if h, _ := r.Lookup(method, without, ctx); h != nil {
			return ErrSlashAtEnd
		}
	}
	return ErrNoRoute
}

func (r *Routes) Get(path string, role redisstore.Role, h Handler) {
	answer := r.at("GET", path, role, h)
	r.Router.GET(path, answer)
	r.Router.HEAD(path, answer)
}

func (r *Routes) Post(path string, role redisstore.Role, h Handler) {
	r.Router.POST(path, r.at("POST", path, role, h))
}

func (r *Routes) Patch(path string, role redisstore.Role, h Handler) {
	r.Router.PATCH(path, r.at("PATCH", path, role, h))
}

func (r *Routes) Put(path string, role redisstore.Role, h Handler) {
	r.Router.PUT(path, r.at("PUT", path, role, h))
}

func (r *Routes) Delete(path string, role redisstore.Role, h Handler) {
	r.Router.DELETE(path, r.at("DELETE", path, role, h))
}

// AnyBelow registers a handler for every method at every path below this one, under its route.
func (r *Routes) AnyBelow(path string, role redisstore.Role, h Handler) {
	below := path + "/{path:*}"
	r.Operations = append(r.Operations, Operation{"*", below, role})
	r.Router.ANY(below, r.front.AtRole(path, role, h))
}

// at notes the operation and returns its handler.
func (r *Routes) at(method, path string, role redisstore.Role, h Handler) fasthttp.RequestHandler {
	r.Operations = append(r.Operations, Operation{method, path, role})
	return r.front.AtRole(routeOf(path), role, h)
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
		return ErrNoRoute
	}
	allowed := strings.Split(string(ctx.Response.Header.Peek(fasthttp.HeaderAllow)), ", ")
	allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == fasthttp.MethodOptions })
	ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(allowed, ", "))
	return ErrMethod
}

// At is AtRole for what no API key opens.
func (f *Front) At(route string, h Handler) fasthttp.RequestHandler {
	return f.AtRole(route, NoKey, h)
}

// AtRole adapts a handler to fasthttp: it records the route and the role that it needs, and answers the handler's error.
func (f *Front) AtRole(route string, role redisstore.Role, h Handler) fasthttp.RequestHandler {
	metrics := f.Metrics.At(route)
	return func(ctx *fasthttp.RequestCtx) {
		info := InfoOf(ctx)
		info.Route, info.Metrics, info.Role = route, metrics, role
		err := h(ctx)
		if info.Idempotency.IsReplay() {
			f.Metrics.replays.Inc()
			ctx.Response.Header.Set(headerReplayed, "true")
		}
		if err != nil {
			ReleaseAnswer(ctx)
			f.AnswerProblem(ctx, f.Hooks.Refusal(ctx, err))
			return
		}
		if err := f.reserveWritten(ctx); err != nil {
			ReleaseAnswer(ctx)
			f.answerInstead(ctx, err)
		}
	}
}
