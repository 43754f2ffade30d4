package server

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// A route that the table does not list would be opened by nobody knows which key.
func TestARouteWithoutARoleEndsTheProcessAtItsStart(t *testing.T) {
	t.Parallel()
	s := New(Config{Store: runServer(t, "", Config{Limits: Limits{Off: true}}).store, Log: slog.New(slog.DiscardHandler)})
	handler := func(*fasthttp.RequestCtx) error { return nil }
	for method, register := range map[string]func(*routes){
		"GET": func(r *routes) { r.get("/v1/new", handler) }, "POST": func(r *routes) { r.post("/v1/new", handler) },
		"PATCH": func(r *routes) { r.patch("/v1/new", handler) }, "PUT": func(r *routes) { r.put("/v1/new", handler) },
		"DELETE": func(r *routes) { r.delete("/v1/new", handler) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, "does not list "+method+" /v1/new") {
					t.Errorf("%s: %q", method, said)
				}
			}()
			register(s.newRoutes())
		}()
	}
}
