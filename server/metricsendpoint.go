package server

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
)

const watchersGrace = time.Second / 2

func (s *Server) metricsRoutes(r *routes) {
	r.get("/metrics", s.metrics)
}

// metrics answers with all that is counted, in the text format of Prometheus.
func (s *Server) metrics(ctx *fasthttp.RequestCtx) error {
	packed := ctx.Request.Header.HasAcceptEncoding("gzip")
	text, err := s.scrapes.text(time.Now(), s.counts.registry, packed)
	if err != nil {
		return err
	}
	header := &ctx.Response.Header
	header.SetContentType(string(metricsFormat))
	keepFromCaches(ctx)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if packed {
		header.SetContentEncoding("gzip")
	}
	ctx.Response.SetBodyRaw(text)
	return nil
}

// ServeMetrics answers /metrics and /healthz, and nothing else, on a listener of their own until Shutdown, by plain HTTP.
// The server must have been told so: see Config.MetricsApart.
func (s *Server) ServeMetrics(accepting net.Listener) error { return s.watchers.Serve(accepting) }

// endWatching stops ServeMetrics. A scrape that is under way may end; a connection that says nothing is not waited for.
func (s *Server) endWatching() {
	ctx, cancel := context.WithTimeout(context.Background(), watchersGrace)
	defer cancel()
	_ = s.watchers.ShutdownWithContext(ctx) // who is cut off has nothing to lose
}

func (s *Server) watchersHandler() fasthttp.RequestHandler {
	r := s.newRoutes()
	s.metricsRoutes(r)
	r.get("/healthz", s.healthz)
	return s.around(r.router.Handler)
}
