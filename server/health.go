package server

import (
	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

func (s *Server) healthRoutes(r *web.Routes) {
	r.Get("/healthz", web.NoKey, s.healthz)
	r.Get("/readyz", web.NoKey, s.readyz)
}

type healthAnswer struct {
	Status   string   `json:"status"`
	Warnings []string `json:"warnings,omitzero"`
}

// healthz reports that the process answers.
func (s *Server) healthz(ctx *fasthttp.RequestCtx) error {
	return web.Answer(ctx, healthAnswer{Status: "ok"})
}

// readyz reports that the service has its keys and that Redis is reachable and writable.
func (s *Server) readyz(ctx *fasthttp.RequestCtx) error {
	if _, err := s.guard.Keys(); err != nil {
		return err
	}
	warnings, err := s.ready.ask(s.store.Ready)
	if err != nil {
		return err
	}
	return web.Answer(ctx, healthAnswer{Status: "ready", Warnings: warnings})
}
