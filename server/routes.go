package server

import (
	"slices"
	"strings"

	"github.com/fasthttp/router"
	"github.com/valyala/fasthttp"
	"remit/redisstore"
)

// handler answers a request, or returns the error to answer.
type handler func(ctx *fasthttp.RequestCtx) error

// routes registers the handlers of a router. Each resource registers its own, beside them.
type routes struct {
	server *Server
	router *router.Router
}

func (s *Server) newRoutes() *routes {
	r := router.New()
	r.RedirectTrailingSlash, r.RedirectFixedPath, r.HandleOPTIONS = false, false, false
	r.NotFound = s.at("", func(ctx *fasthttp.RequestCtx) error { return noRoute(r, ctx) })
	r.MethodNotAllowed = s.at("", refuseMethod)
	return &routes{s, r}
}

// noRoute says whether only a slash at the end keeps a path from its route.
func noRoute(r *router.Router, ctx *fasthttp.RequestCtx) error {
	path := string(ctx.URI().PathOriginal())
	without := strings.TrimRight(path, "/")
	if without == path || without == "" {
		return errNoRoute
	}
	for _, method := range []string{"GET", "POST", "PATCH", "PUT", "DELETE"} {
		if h, _ := r.Lookup(method, without, ctx); h != nil {
			return errSlashAtEnd
		}
	}
	return errNoRoute
}

// get registers a handler for GET and HEAD.
func (r *routes) get(path string, h handler) {
	r.router.GET(path, r.at("GET", path, h))
	r.router.HEAD(path, r.at("GET", path, h))
}

func (r *routes) post(path string, h handler)   { r.router.POST(path, r.at("POST", path, h)) }
func (r *routes) patch(path string, h handler)  { r.router.PATCH(path, r.at("PATCH", path, h)) }
func (r *routes) put(path string, h handler)    { r.router.PUT(path, r.at("PUT", path, h)) }
func (r *routes) delete(path string, h handler) { r.router.DELETE(path, r.at("DELETE", path, h)) }

// anyBelow registers a handler for every method at every path below this one, under its route. No API key opens it.
func (r *routes) anyBelow(path string, h handler) {
	r.router.ANY(path+"/{path:*}", r.server.at(path, h))
}

// at registers the role that the operation needs. It panics for one that roles.go does not list, so no operation is forgotten.
func (r *routes) at(method, path string, h handler) fasthttp.RequestHandler {
	operation := method + " " + routeOf(path)
	role, listed := roles[operation]
	if !listed {
		panic("server: roles.go does not list " + operation)
	}
	return r.server.atRole(routeOf(path), role, h)
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
		return errNoRoute
	}
	allowed := strings.Split(string(ctx.Response.Header.Peek(fasthttp.HeaderAllow)), ", ")
	allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == fasthttp.MethodOptions })
	ctx.Response.Header.Set(fasthttp.HeaderAllow, strings.Join(allowed, ", "))
	return errMethod
}

// at is atRole for what no API key opens.
func (s *Server) at(route string, h handler) fasthttp.RequestHandler {
	return s.atRole(route, noKey, h)
}

// atRole adapts a handler to fasthttp: it records the route and the role that it needs, and answers the handler's error.
func (s *Server) atRole(route string, role redisstore.Role, h handler) fasthttp.RequestHandler {
	metrics := s.metrics.http.at(route)
	return func(ctx *fasthttp.RequestCtx) {
		info := infoOf(ctx)
		info.route, info.metrics, info.role = route, metrics, role
		if err := h(ctx); err != nil {
			releaseAnswer(ctx)
			s.answerProblem(ctx, s.keyFirst(ctx, err))
			return
		}
		if err := s.reserveWritten(ctx); err != nil {
			releaseAnswer(ctx)
			s.answerInstead(ctx, err)
		}
	}
}
