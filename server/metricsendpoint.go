package server

import (
	"context"
	"net"
	"time"

	"github.com/valyala/fasthttp"
	"remit/server/internal/web"
)

const scrapeGrace = time.Second / 2

func (s *Server) metricsRoutes(r *web.Routes) {
	r.Get("/metrics", web.NoKey, s.getMetrics)
}

// getMetrics returns all metrics in the text format of Prometheus.
func (s *Server) getMetrics(ctx *fasthttp.RequestCtx) error {
	packed := ctx.Request.Header.HasAcceptEncoding("gzip")
	text, err := s.scrapes.Text(time.Now(), s.registry, packed)
	if err != nil {
		return err
	}
	header := &ctx.Response.Header
	header.SetContentType(string(web.MetricsFormat))
	web.KeepFromCaches(ctx)
	header.Add(fasthttp.HeaderVary, fasthttp.HeaderAcceptEncoding)
	if packed {
		header.SetContentEncoding("gzip")
	}
	ctx.Response.SetBodyRaw(text)
	return nil
}

// ServeMetrics serves only /metrics and /healthz, over plain HTTP, on a separate listener until Shutdown. Set
// Config.MetricsApart with it.
func (s *Server) ServeMetrics(accepting net.Listener) error { return s.metricsHTTP.Serve(accepting) }

// stopMetrics stops ServeMetrics. A scrape in progress may end; idle connections are closed.
func (s *Server) stopMetrics() {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeGrace)
	defer cancel()
	_ = s.metricsHTTP.ShutdownWithContext(ctx) // a scrape that is cut off loses nothing
}

func (s *Server) metricsHandler() fasthttp.RequestHandler {
	r := s.front.NewRoutes()
	s.metricsRoutes(r)
	r.Get("/healthz", web.NoKey, s.healthz)
	return s.front.Around(r.Router.Handler)
}
