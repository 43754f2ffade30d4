package server

import (
	"context"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

func (s *Server) healthRoutes(r *routes) {
	r.get("/healthz", s.healthz)
	r.get("/readyz", s.readyz)
}

type healthAnswer struct {
	Status   string   `json:"status"`
	Warnings []string `json:"warnings,omitzero"`
}

// healthz says that the process answers.
func (s *Server) healthz(ctx *fasthttp.RequestCtx) error {
	return answer(ctx, healthAnswer{Status: "ok"})
}

// readyz says that the service can do its work: it has its keys, and Redis can be reached and written.
func (s *Server) readyz(ctx *fasthttp.RequestCtx) error {
	if _, err := s.keys(); err != nil {
		return err
	}
	warnings, err := s.ready.ask(s.store.Ready)
	if err != nil {
		return err
	}
	return answer(ctx, healthAnswer{Status: "ready", Warnings: warnings})
}

// readiness asks Redis once for all that wait for an answer: nobody needs a credential to ask.
type readiness struct {
	mu       sync.Mutex
	asked    time.Time
	warnings []string
	err      error
}

func (r *readiness) ask(redis func(context.Context) ([]string, error)) ([]string, error) {
	arrived := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked.Before(arrived) {
		r.asked = time.Now()
		r.warnings, r.err = redis(context.Background())
	}
	return r.warnings, r.err
}
